"""The circuit breaker: how many trials in a row, in journal order, have ended by infrastructure, and what stops because of it.

Each run has a row of its own, so that a model whose provider is dead stops while others play on. A row of the whole sweep counts only
failures at what all models share, the support roles and their searches, and ends it at once. It knows no clock and no provider.

After a breaker opened, a resume stops at the very next failure unless a trial ends first; a repair begins anew.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from deep20ray.answers import Role
from deep20ray_cluster.journal import Event, Mark

BREAKER = 5
"""Trials in a row, in journal order, that end by infrastructure before their run, or the sweep, stops."""


class Breaker:
    """The rows as they stand."""

    def __init__(self) -> None:
        self._runs: Counter[str] = Counter()
        self._shared = 0

    @classmethod
    def of(cls, events: Iterable[Event | Mark]) -> "Breaker":
        """What the journal says. A row that has opened the breaker is one failure short of it again."""
        breaker = cls()
        for event in events:
            match event.kind:
                case "ended":
                    breaker.ended(event.run)
                case "infrastructure":
                    breaker.failed(event.run, event.call)
                case "attempt":
                    breaker._repaired(event.run)
                case _:
                    pass
        breaker._shared = min(breaker._shared, BREAKER - 1)
        for run, row in breaker._runs.items():
            breaker._runs[run] = min(row, BREAKER - 1)
        return breaker

    def ended(self, run: str) -> None:
        """A trial of that run has its score."""
        self._runs[run] = self._shared = 0

    def failed(self, run: str, call: str) -> Literal["run", "sweep"] | None:
        """A trial of that run ended by infrastructure at that call. Returns what must stop, if anything."""
        self._runs[run] += 1
        if call != Role.GUESSER.value:
            self._shared += 1
        if self._shared >= BREAKER:
            return "sweep"
        return "run" if self._runs[run] >= BREAKER else None

    def _repaired(self, run: str) -> None:
        """A new attempt was opened: where the breaker was open, somebody saw to it."""
        if self._runs[run] >= BREAKER:
            self._runs[run] = 0
        if self._shared >= BREAKER:
            self._shared = 0
