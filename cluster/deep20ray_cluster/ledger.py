"""The ledger of a budget, in integer micro-dollars: what is spent, what is held for calls in flight, and whether one more fits.

Pure: no clock, no waiting, no prices. A sweep has one purse, and each run may have a smaller one inside it. What is held for a call is
the most that it can cost, so spent and held together never pass a limit; only a call that is settled at more than was held for it, by a
provider that charges more than its price, can do that, and then nothing more is held.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(slots=True)
class Purse:
    """One limit, None for none, and what counts against it."""

    limit: int | None
    spent: int = 0
    held: int = 0
    flights: int = 0
    """Calls that something is held for."""

    def fits(self, amount: int) -> bool:
        """Whether so much may be held besides what is spent and held already."""
        return self.limit is None or self.spent + self.held + amount <= self.limit


@dataclass(slots=True)
class Hold:
    """An amount held for one call of a run, until it is settled."""

    run: str
    amount: int
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now: calls in flight may turn out cheaper than what is held for them."""


@dataclass(frozen=True, slots=True)
class Reached:
    """Never: nothing is in flight that could make room. ``run`` is whose limit it is; None for the sweep's."""

    run: str | None


class Ledger:
    """All purses of a sweep."""

    def __init__(self, limit: int | None, limits: Mapping[str, int], spent: Mapping[str, int]) -> None:
        """``limit`` is the sweep's, ``limits`` those of runs; ``spent`` is by run, so far."""
        self.total = Purse(limit, sum(spent.values()))
        self.runs = {run: Purse(limits.get(run), spent.get(run, 0)) for run in limits.keys() | spent.keys()}

    def reserve(self, run: str, amount: int) -> Hold | Wait | Reached:
        """Holds an amount for a call of a run, if it fits."""
        own = self._of(run)
        for purse, whose in ((self.total, None), (own, run)):
            if not purse.fits(amount) and not purse.flights:
                return Reached(whose)
        if not (self.total.fits(amount) and own.fits(amount)):
            return Wait()
        for purse in (self.total, own):
            purse.held += amount
            purse.flights += 1
        return Hold(run, amount)

    def limits(self, run: str) -> bool:
        """Whether any limit is set for a run's calls."""
        return self.total.limit is not None or self._of(run).limit is not None

    def without_room(self, run: str, amount: int) -> tuple[str | None, ...]:
        """Whose limits such a call of a run would pass, as ``Reached`` names them; the sweep's first."""
        return tuple(whose for purse, whose in ((self.total, None), (self._of(run), run)) if not purse.fits(amount))

    def settle(self, hold: Hold, cost: int) -> None:
        """Ends a hold: the call cost so much, 0 if it was never sent. A second time changes nothing."""
        if hold.settled:
            return
        hold.settled = True
        for purse in (self.total, self._of(hold.run)):
            purse.held -= hold.amount
            purse.flights -= 1
            purse.spent += cost

    def _of(self, run: str) -> Purse:
        return self.runs.setdefault(run, Purse(None))
