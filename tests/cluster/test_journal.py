"""The journal: its chain, its order, and what it says of a file that is spoilt or a disk that is full."""

import asyncio
import hashlib
import os
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deep20ray_cluster.errors import JournalError, JournalFull
from deep20ray_cluster.journal import Event, Journal, chain_of, read_events


def event(number: int, run: str = "run", **body: Any) -> Event:
    return Event(run, "trial", 1, number, "reply", "guesser", 0, 1000 + number, {"number": number, **body})


def filled(path: Path, count: int = 5) -> list[Event]:
    events = [event(number, f"run-{number % 2}", text=f"é {number}") for number in range(count)]
    journal = Journal(path)
    journal.note(*events)
    journal.close()
    return events


def change(path: Path, statement: str) -> None:
    db = sqlite3.connect(path)
    db.execute(statement)
    db.commit()
    db.close()


def test_events_come_back_as_they_went_in(tmp_path: Path) -> None:
    events = filled(tmp_path / "j")
    assert list(read_events(tmp_path / "j")) == events
    assert list(read_events(tmp_path / "j", "run-1")) == [event for event in events if event.run == "run-1"]
    assert stat.S_IMODE((tmp_path / "j").stat().st_mode) == 0o600


def test_the_chain_is_what_the_module_says(tmp_path: Path) -> None:
    filled(tmp_path / "j")
    events = list(read_events(tmp_path / "j", "run-0"))
    head = hashlib.sha256(b"deep20ray-journal-v1").digest()
    for each in events:
        head = hashlib.sha256(head + bytes.fromhex(each.digest)).digest()
    digests, last = chain_of(events)
    assert (digests, last) == ([each.digest for each in events], head.hex())
    db = sqlite3.connect(tmp_path / "j")
    assert db.execute("SELECT head FROM events WHERE run = 'run-0' ORDER BY seq DESC LIMIT 1").fetchone() == (last,)
    db.close()


async def test_a_reopened_journal_goes_on_with_its_chains(tmp_path: Path) -> None:
    events = filled(tmp_path / "j")
    journal = Journal(tmp_path / "j")
    await journal.append(event(9, "run-1"))
    journal.close()
    assert list(read_events(tmp_path / "j")) == [*events, event(9, "run-1")]
    Journal(tmp_path / "j").close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = '{\"number\":7}' WHERE seq = 2",
        "UPDATE events SET at = at + 1 WHERE seq = 3",
        "UPDATE events SET turn = 8 WHERE seq = 1",
        "DELETE FROM events WHERE seq = 1",
        "UPDATE events SET head = '" + "0" * 64 + "' WHERE seq = 5",
        "UPDATE events SET seq = 20 - seq",
    ],
)
def test_a_changed_removed_or_moved_event_breaks_the_chain(tmp_path: Path, statement: str) -> None:
    filled(tmp_path / "j")
    change(tmp_path / "j", statement)
    with pytest.raises(JournalError, match="chain of run run-[01] is broken; restore"):
        Journal(tmp_path / "j")


@pytest.mark.parametrize("body", ["not json", "[1]", '{"a":1e400}', '{"a":123456789012345678901234567890}'])
def test_an_event_that_no_driver_wrote_is_refused(tmp_path: Path, body: str) -> None:
    filled(tmp_path / "j")
    change(tmp_path / "j", f"UPDATE events SET body = '{body}' WHERE seq = 4")
    with pytest.raises(JournalError, match="an event of run run-1 can't be read; restore"):
        Journal(tmp_path / "j")


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "j")
    change(tmp_path / "j", "UPDATE events SET kind = 'gift' WHERE seq = 4")
    with pytest.raises(JournalError, match="can't be read"):
        Journal(tmp_path / "j")


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to be looked at" * 40, b"SQLite format 3\0" + b"\xff" * 4000])
def test_what_is_not_a_database_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "j").write_bytes(content)
    with pytest.raises(JournalError, match="not a readable journal"):
        Journal(tmp_path / "j")
    assert (tmp_path / "j").read_bytes() == content


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    change(tmp_path / "j", "CREATE TABLE events (seq INTEGER PRIMARY KEY, note TEXT)")
    with pytest.raises(JournalError, match="not a readable journal"):
        Journal(tmp_path / "j")


def test_a_missing_journal_is_not_begun_anew_for_a_sweep_that_had_one(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="there is no journal here"):
        Journal(tmp_path / "j", new=False)
    with pytest.raises(JournalError, match="there is no journal here"):
        list(read_events(tmp_path / "j"))
    assert not (tmp_path / "j").exists()


async def test_an_append_returns_after_all_that_was_noted_before_it_and_not_sooner(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    journal.note(event(0), event(1))
    await journal.append(event(2))
    assert [each.turn for each in read_events(tmp_path / "j")] == [0, 1, 2]
    await journal.append()
    journal.close()


async def test_group_commits_keep_the_order_of_calling(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")

    async def writer(first: int) -> None:
        for step in range(20):
            journal.note(event(first * 100 + step, f"run-{first % 3}"))
            await journal.append(event(first * 100 + step + 50, f"run-{first % 3}"))
            assert event(first * 100 + step + 50, f"run-{first % 3}") in list(read_events(tmp_path / "j"))[-40:]

    await asyncio.gather(*(writer(first) for first in range(8)))
    journal.close()
    turns = [each.turn for each in read_events(tmp_path / "j")]
    assert len(turns) == len(set(turns)) == 320
    for first in range(8):
        own = [turn % 100 for turn in turns if turn // 100 == first]
        assert own == [turn for step in range(20) for turn in (step, step + 50)]
    Journal(tmp_path / "j").close()


async def test_what_can_not_be_journalled_is_refused_to_its_caller_and_stops_nobody_else(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    with pytest.raises(ValueError, match="."):
        await journal.append(event(0, text="\ud800"))
    with pytest.raises(ValueError, match="."):
        journal.note(event(0, number_too=float("nan")))
    await journal.append(event(1))
    journal.close()
    assert [each.turn for each in read_events(tmp_path / "j")] == [1]


def test_what_was_noted_is_written_even_when_the_loop_that_waited_is_gone(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")

    async def leave() -> None:
        waiting = [asyncio.create_task(journal.append(event(number))) for number in range(50)]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()

    asyncio.run(leave())
    journal.note(event(50))
    journal.close()
    assert [each.turn for each in read_events(tmp_path / "j")] == list(range(51))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("mounting a small file system is not permitted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


async def test_a_full_disk_stops_the_journal_and_keeps_what_it_has(small_disk: Path) -> None:
    journal = Journal(small_disk / "j")
    await journal.append(event(0), event(1))
    with pytest.raises(JournalFull, match="can't be written.*free space"):
        for number in range(2, 200):
            await journal.append(event(number, text=os.urandom(20_000).hex()))
    kept = number
    with pytest.raises(JournalFull):
        journal.note(event(1000))
    with pytest.raises(JournalFull):
        await journal.append(event(1001))
    journal.close()
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    journal = Journal(small_disk / "j")
    assert [each.turn for each in journal.events()] == list(range(kept))
    await journal.append(event(kept))
    journal.close()


async def test_a_full_disk_on_opening_is_not_called_a_spoilt_journal(small_disk: Path) -> None:
    filled(small_disk / "j")
    with (small_disk / "ballast").open("wb", buffering=0) as ballast, pytest.raises(OSError, match="space"):
        while True:
            ballast.write(b"x" * 4096)
    with pytest.raises(JournalFull, match="free space"):
        journal = Journal(small_disk / "j")
        try:
            await journal.append(event(1))
        finally:
            journal.close()
    (small_disk / "ballast").unlink()
    assert len(list(read_events(small_disk / "j"))) == 5
