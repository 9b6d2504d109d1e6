"""The journal: an append-only, chained record of every paid reply, in one SQLite file beside the driver.

Guarantees: events are stored in the order given; ``append`` returns once its events, and all before them, are synced to disk;
each run's events form a hash chain, recomputed whenever the file is opened. Commits happen on one writer thread, in groups,
so that the event loop never waits for a disk. It knows nothing of games or providers.

Chain: head_0 = SHA-256("deep20ray-journal-v1"); head_n = SHA-256(head_(n-1) || digest of event n), both as raw bytes.
"""

import asyncio
import hashlib
import json
import sqlite3
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from deep20ray.canonical import Digest, canonical, sha256, text
from deep20ray_cluster.errors import JournalError, JournalFull

CHAIN_START = sha256(b"deep20ray-journal-v1")

Kind = Literal["attempt", "started", "reply", "lost", "closed", "ended", "infrastructure", "withheld", "reused"]
"""attempt: an attempt opened; started: a call is about to be sent; reply: it came back, delivered or as a fault; lost: it never did;
closed: a turn's token is final; ended: the game is over; infrastructure: the attempt ended without an outcome of the game;
withheld: the next call was not sent, because the budget has no room for it; reused: a question has an earlier answer."""
_KINDS = frozenset(get_args(Kind))


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the journal. ``body`` is a JSON object; ``at`` is UTC milliseconds."""

    run: str
    trial: str
    attempt: int
    turn: int
    kind: Kind
    call: str
    ask: int
    at: int
    body: dict[str, Any]

    @property
    def digest(self) -> Digest:
        """Digest of all fields.

        Raises:
            rfc8785.CanonicalizationError: the body isn't JSON.
        """
        return self.digest_with(canonical(self.body))

    def digest_with(self, body: bytes) -> Digest:
        """The same, for whoever has the body's canonical JSON already: that of the whole is put together around it."""
        before = f'{{"ask":{self.ask},"at":{self.at},"attempt":{self.attempt},"body":'
        after = f',"call":{text(self.call)},"kind":{text(self.kind)},"run":{text(self.run)},"trial":{text(self.trial)},"turn":{self.turn}}}'
        return sha256(before.encode() + body + after.encode())


def chained(head: Digest, event: Digest) -> Digest:
    """The next head of a chain."""
    return Digest(hashlib.sha256(bytes.fromhex(head) + bytes.fromhex(event)).hexdigest())


_TABLE = """
CREATE TABLE IF NOT EXISTS events (
  seq INTEGER PRIMARY KEY, run TEXT NOT NULL, trial TEXT NOT NULL, attempt INTEGER NOT NULL, turn INTEGER NOT NULL,
  kind TEXT NOT NULL, call TEXT NOT NULL, ask INTEGER NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL, head TEXT NOT NULL
) STRICT
"""
_INSERT = "INSERT INTO events (run, trial, attempt, turn, kind, call, ask, at, body, head) VALUES (?,?,?,?,?,?,?,?,?,?)"
_SELECT = "SELECT run, trial, attempt, turn, kind, call, ask, at, body, head FROM events"


@dataclass(frozen=True, slots=True)
class _Line:
    """An event ready to be written: whatever can't be is refused in the caller's hands, and never stops the writer."""

    event: Event
    digest: Digest
    body: str

    @classmethod
    def of(cls, event: Event) -> "_Line":
        body = canonical(event.body)
        return cls(event, event.digest_with(body), body.decode())


class Journal:
    """An open journal. One driver at a time writes; the folder's lock sees to that."""

    def __init__(self, path: Path, *, new: bool = True) -> None:
        """Opens the file, or creates it where it may be ``new``, and checks every chain.

        Raises:
            JournalError: it is missing, it is not a journal, or a chain is broken.
            JournalFull: the disk has no room to open it.
        """
        if not new and not path.exists():
            raise JournalError(f"{path}: there is no journal here; restore it from a copy, or start the sweep in another folder")
        self.path = path
        self._heads: dict[str, Digest] = {}
        self._queue: deque[tuple[list[_Line], asyncio.Future[None] | None]] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._failure: JournalFull | None = None
        self._db = _open(path)
        try:
            self._db.execute(_TABLE)
            for event, head in _rows(self._db, path):
                try:
                    expected = chained(self._heads.get(event.run, CHAIN_START), event.digest)
                except ValueError:  # a body that no driver wrote
                    raise _spoilt(path, event.run) from None
                if head != expected:
                    raise JournalError(f"{path}: the chain of run {event.run} is broken; restore the file from a copy")
                self._heads[event.run] = expected
        except JournalError:
            self._db.close()
            raise
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise _unreadable(path, error) from None
        self._thread = threading.Thread(target=self._write_forever, name="journal", daemon=True)
        self._thread.start()

    def note(self, *events: Event) -> None:
        """Queues events; the next ``append``, of anyone, or the writer's own pace makes them durable.

        Raises:
            JournalFull: an earlier write failed.
        """
        self._put(events, None)

    async def append(self, *events: Event) -> None:
        """Queues events and waits until they, and all before them, are on disk.

        Raises:
            JournalFull: they could not be written.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._put(events, done)
        await done

    def events(self, run: str | None = None) -> Iterator[Event]:
        """Events in order, of one run or of all, from a reading connection of its own."""
        return read_events(self.path, run)

    def close(self) -> None:
        """Writes what is queued and closes the file."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()
        self._db.close()

    def _put(self, events: Iterable[Event], done: asyncio.Future[None] | None) -> None:
        lines = [_Line.of(event) for event in events]
        with self._wake:
            if self._failure is not None:
                raise self._failure
            self._queue.append((lines, done))
            self._wake.notify()

    def _write_forever(self) -> None:
        while True:
            with self._wake:
                while not self._queue and not self._closing:
                    self._wake.wait()
                batch = list(self._queue)
                self._queue.clear()
            if not batch:
                return
            failure = self._failure or self._commit([line for lines, _ in batch for line in lines])
            if failure is not None:
                with self._wake:
                    self._failure = failure
            for _, done in batch:
                if done is not None:
                    # A loop that has ended waits for nothing; what is queued is written all the same.
                    with suppress(RuntimeError):
                        done.get_loop().call_soon_threadsafe(_settle, done, failure)

    def _commit(self, lines: Sequence[_Line]) -> JournalFull | None:
        heads = dict(self._heads)
        rows = []
        for line in lines:
            event = line.event
            heads[event.run] = head = chained(heads.get(event.run, CHAIN_START), line.digest)
            rows.append((event.run, event.trial, event.attempt, event.turn, event.kind, event.call, event.ask, event.at, line.body, head))
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.executemany(_INSERT, rows)
        except sqlite3.Error as error:
            return JournalFull(f"{self.path}: can't be written ({error}); free space or fix the folder, then resume")
        self._heads = heads
        return None


def read_events(path: Path, run: str | None = None) -> Iterator[Event]:
    """Events of a journal, in order, without opening it for writing.

    Raises:
        JournalError: it is missing or not a journal.
    """
    if not path.exists():
        raise JournalError(f"{path}: there is no journal here")
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        for event, _ in _rows(db, path, run):
            yield event
    except sqlite3.DatabaseError as error:
        raise _unreadable(path, error) from None
    finally:
        db.close()


def chain_of(events: Iterable[Event]) -> tuple[list[Digest], Digest]:
    """The event digests of one run and the head they fold to."""
    digests = [event.digest for event in events]
    head = CHAIN_START
    for digest in digests:
        head = chained(head, digest)
    return digests, head


def _open(path: Path) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
    except sqlite3.DatabaseError as error:
        raise _unreadable(path, error) from None
    path.chmod(0o600)
    return db


_NO_ROOM = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})


def _unreadable(path: Path, error: sqlite3.Error) -> JournalError | JournalFull:
    # The low byte is the kind; the rest says where in SQLite it happened.
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NO_ROOM:
        return JournalFull(f"{path}: can't be opened ({error}); free space on its disk, then resume")
    return JournalError(f"{path}: not a readable journal ({error}); restore the file from a copy or start the sweep in another folder")


def _rows(db: sqlite3.Connection, path: Path, run: str | None = None) -> Iterator[tuple[Event, str]]:
    where, values = (" WHERE run = ?", (run,)) if run else ("", ())
    for row in db.execute(f"{_SELECT}{where} ORDER BY seq", values):
        try:
            body = json.loads(row[8])
        except ValueError:
            raise _spoilt(path, row[0]) from None
        event = Event(row[0], row[1], row[2], row[3], cast(Kind, row[4]), row[5], row[6], row[7], body)
        if row[4] not in _KINDS or not isinstance(body, dict):
            raise _spoilt(path, row[0])
        yield event, row[9]


def _spoilt(path: Path, run: str) -> JournalError:
    return JournalError(f"{path}: an event of run {run} can't be read; restore the file from a copy")


def _settle(done: asyncio.Future[None], failure: JournalFull | None) -> None:
    if done.done():
        return
    if failure is None:
        done.set_result(None)
    else:
        done.set_exception(failure)
