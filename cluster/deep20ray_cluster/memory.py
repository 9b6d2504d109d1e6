"""What the journal remembers of one trial, so that its next attempt, or its resumption, pays for nothing twice.

``Memory.of`` folds a trial's events; ``recall`` reads them when the trial's turn comes, so that the memories of trials in play are all
that is held. A ``Standing`` is what is kept of every trial. Replies stay usable across attempts, except those of the call at which an
attempt ended by infrastructure: only the failed call is superseded.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deep20ray.canonical import Digest
from deep20ray_actors.outcomes import Audit, Outcome
from deep20ray_cluster.errors import JournalError, PlanMismatch
from deep20ray_cluster.journal import Event, Journal, Mark
from deep20ray_cluster.records import read_audit, read_outcome

if TYPE_CHECKING:
    from deep20ray_cluster.plan import TrialKey

MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Reply:
    """A journalled reply, delivered or a fault."""

    message: Digest
    outcome: Outcome
    audit: Audit
    at: int


@dataclass(frozen=True, slots=True)
class LostCall:
    """A call that was sent and never came back."""

    message: Digest


@dataclass(slots=True)
class Memory:
    """One trial so far."""

    attempt: int = 1
    closed: int = 0
    """The last closed turn."""
    ended: bool = False
    failed: tuple[int, str] | None = None
    """The (turn, call) at which the current attempt ended by infrastructure."""
    cause: str | None = None
    calls: dict[tuple[int, str], list[Reply | LostCall]] = field(default_factory=dict)
    reused: dict[int, dict[str, Any]] = field(default_factory=dict)
    """By turn, the earlier answer that its question was given, as journalled."""
    dangling: list[Event] = field(default_factory=list)
    """Calls that were started and have no reply: their driver died."""

    @classmethod
    def of(cls, events: Iterable[Event]) -> "Memory":
        """The memory of one trial, from its events in order."""
        memory = cls()
        open_: dict[tuple[int, int, str, int], Event] = {}
        for event in events:
            key = (event.attempt, event.turn, event.call, event.ask)
            match event.kind:
                case "attempt":
                    memory.reopen(event.attempt)
                case "started":
                    open_[key] = event
                case "reply":
                    open_.pop(key, None)
                    memory._add(
                        event, Reply(Digest(event.body["message_sha256"]), read_outcome(event.body), read_audit(event.body), event.at)
                    )
                case "lost":
                    open_.pop(key, None)
                    memory._add(event, LostCall(Digest(event.body["message_sha256"])))
                case "reused":
                    memory.reused[event.turn] = event.body
                case "closed":
                    memory.closed = max(memory.closed, event.turn)
                case "ended":
                    memory.ended = True
                case "infrastructure":
                    memory.failed, memory.cause = (event.turn, event.call), event.body["cause"]
        memory.dangling = list(open_.values())
        return memory

    @property
    def exhausted(self) -> bool:
        """Whether the last attempt that is allowed has ended by infrastructure."""
        return self.failed is not None and self.attempt >= MAX_ATTEMPTS

    def began(self, turn: int) -> bool:
        """Whether anything but the Guesser was called in that turn, other than the one call that a repair makes anew."""
        return any(made == turn and call != "guesser" for made, call in self.calls)

    @property
    def midway(self) -> bool:
        """Whether the turn that is open has begun to be answered."""
        waiting = {(event.turn, event.call) for event in self.dangling}
        return any(made > self.closed and call != "guesser" for made, call in (*self.calls, *waiting))

    def lose(self, event: Event) -> None:
        """Counts a dangling call as lost."""
        self._add(event, LostCall(Digest(event.body["message_sha256"])))

    def recall(self, turn: int, call: str, ask: int, message: Digest) -> Reply | LostCall | None:
        """The record of one call, or None where it has not been made.

        Raises:
            PlanMismatch: another message was sent then than would be sent now.
        """
        records = self.calls.get((turn, call), [])
        if ask >= len(records):
            return None
        record = records[ask]
        if record.message != message:
            raise PlanMismatch(
                f"turn {turn}, {call}: the journal holds the reply to another message; resume with the version that began the sweep"
            )
        return record

    def _add(self, event: Event, record: Reply | LostCall) -> None:
        self.calls.setdefault((event.turn, event.call), []).append(record)

    def reopen(self, attempt: int) -> None:
        """Opens another attempt, which keeps all but the failed call and what followed from it in its turn."""
        self.attempt = attempt
        for key in superseded(self.calls, self.failed):
            del self.calls[key]
        self.failed = self.cause = None


def superseded(calls: Iterable[tuple[int, str]], failed: tuple[int, str] | None) -> list[tuple[int, str]]:
    """Of the calls that were made, in order: the one that failed and what followed from it in its turn."""
    made = list(calls)
    if failed is None or failed not in made:
        return []
    return [call for call in made[made.index(failed) :] if call[0] == failed[0]]


def recall(journal: Journal, key: "TrialKey") -> Memory:
    """One trial's memory, read from disk: not for an event loop.

    Raises:
        JournalError: an event can't be read by this version.
    """
    try:
        return Memory.of(journal.events(*key))
    except (KeyError, TypeError, ValueError):
        why = "an event lacks what this version needs; resume with the version that began the sweep"
        raise JournalError(f"{journal.path}: {why}") from None


@dataclass(slots=True)
class Standing:
    """Where one trial stands, in a few words; see ``Memory`` for what they mean."""

    begun: bool = False
    attempt: int = 1
    ended: bool = False
    failed: bool = False
    midway: bool = False

    @property
    def exhausted(self) -> bool:
        """Whether the last attempt that is allowed has ended by infrastructure."""
        return self.failed and self.attempt >= MAX_ATTEMPTS


def standings(keys: "Iterable[TrialKey]", marks: Iterable[Mark]) -> "dict[TrialKey, Standing]":
    """Where each trial stands, by one pass over a journal's marks; it holds the calls of open turns only."""
    folds: dict[tuple[str, str], _Fold] = defaultdict(_Fold)
    for mark in marks:
        folds[mark.run, mark.trial].see(mark)
    return {key: folds[key].standing() if key in folds else Standing() for key in keys}


@dataclass(slots=True)
class _Fold:
    """``Memory.of`` without what was said."""

    attempt: int = 1
    closed: int = 0
    ended: bool = False
    failed: tuple[int, str] | None = None
    calls: dict[tuple[int, str], None] = field(default_factory=dict)
    waiting: set[tuple[int, int, str, int]] = field(default_factory=set)

    def see(self, mark: Mark) -> None:
        match mark.kind:
            case "attempt":
                self.attempt = mark.attempt
                for call in superseded(self.calls, self.failed):
                    del self.calls[call]
                self.failed = None
            case "started":
                self.waiting.add((mark.attempt, mark.turn, mark.call, mark.ask))
            case "reply" | "lost":
                self.waiting.discard((mark.attempt, mark.turn, mark.call, mark.ask))
                self.calls[mark.turn, mark.call] = None
            case "closed":
                self.closed = max(self.closed, mark.turn)
                self.calls = {call: None for call in self.calls if call[0] > self.closed}
            case "ended":
                self.ended = True
            case "infrastructure":
                self.failed = (mark.turn, mark.call)
            case "withheld" | "reused":
                pass

    def standing(self) -> Standing:
        open_ = (*self.calls, *((turn, call) for _, turn, call, _ in self.waiting))
        midway = any(turn > self.closed and call != "guesser" for turn, call in open_)
        return Standing(True, self.attempt, self.ended, self.failed is not None, midway)
