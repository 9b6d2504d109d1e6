"""What the journal remembers of one trial, so that its next attempt, or its resumption, pays for nothing twice.

``Memory.of`` folds a trial's events. Replies stay usable across attempts, except those of the call at which an attempt ended by
infrastructure: only the failed call is superseded.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from deep20ray.canonical import Digest
from deep20ray_actors.outcomes import Audit, Outcome
from deep20ray_cluster.errors import PlanMismatch
from deep20ray_cluster.journal import Event
from deep20ray_cluster.records import read_audit, read_outcome

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
        if self.failed in self.calls:
            made = list(self.calls)
            for key in made[made.index(self.failed) :]:
                if key[0] == self.failed[0]:
                    del self.calls[key]
        self.failed = self.cause = None
