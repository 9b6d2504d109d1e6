"""Meters: one provider's limit in a minute, and when the next call may start under it. Pure; times are arguments, in seconds.

Guarantees that no 60 seconds hold more than the limit, a call alone that is larger than it excepted; a call weighs its reservation until
it is settled. Starts are spaced as calls really weigh, so that a minute's worth doesn't go out at its beginning. What a reply says is
left of the limit is believed, so that others who use the same account live.
"""

from collections import deque
from dataclasses import dataclass

from deep20ray_actors.leases import Stand

MINUTE = 60.0
MARGIN = 0.99
"""The part of a rate that starts are spaced by: calls arrive less evenly than they leave."""
LATE = 0.02
"""Seconds by which a start may be late without moving the later ones: a timer's own delay must not add up."""
_KEPT = MINUTE + 0.1
"""Seconds after which a start counts no longer: a little more, for starts that are late."""
_DAY = 600.0
"""Seconds. A limit that takes longer than this to come back is a day's and says nothing about a minute."""
_TYPICAL = 0.1
"""The weight of the newest call in what calls typically use."""


@dataclass(slots=True, eq=False)
class Charge:
    """What one start weighs on one meter."""

    at: float
    weight: float
    spaced: float
    """What the starts after it were spaced by."""
    total: float
    """Of all charges, this one included."""
    counted: bool = True
    """Whether it is within the last minute."""


class Meter:
    """One limit. ``pace`` is a second rate, of a controller's, in starts a second."""

    def __init__(self, told: int | None = None, share: float = 1.0, *, tokens: bool = False) -> None:
        """``tokens``: calls weigh much and differ, so those in flight count as not yet seen by a reply that says what is left."""
        self.told = told
        self.share = share
        self.learned: int | None = None
        self.pace: float | None = None
        self._tokens = tokens
        self._free = float("-inf")
        self._typical: float | None = None
        self._window: deque[Charge] = deque()
        self._sum = 0.0
        self._total = 0.0
        self._left: tuple[float, float, float, float] | None = None

    @property
    def limit(self) -> float | None:
        """What may start in a minute: the tighter of what was told and learned, of it the share."""
        known = [each for each in (self.told, self.learned) if each is not None]
        return min(known) * self.share if known else None

    @property
    def rate(self) -> float | None:
        """What starts are spaced by, a second."""
        limit = None if self.limit is None else self.limit * MARGIN / MINUTE
        rates = [each for each in (limit, self.pace) if each is not None]
        return min(rates) if rates else None

    def earliest(self, weight: float, at: float) -> float:
        """When a call of that weight may start, from ``at`` on."""
        if self.rate is not None:
            at = max(at, self._free)
        if self.limit is None or not weight:
            return at
        return max(at, self._room(weight, at, self.limit), self._refilled(weight, self.limit))

    def charge(self, weight: float, at: float) -> Charge:
        """A call of that weight starts. Starts come in order."""
        spaced = weight if self._typical is None else min(weight, self._typical)
        if self.rate is not None:
            self._free = max(self._free, at - LATE) + spaced / self.rate
        self._total += weight
        self._sum += weight
        charge = Charge(at, weight, spaced, self._total)
        self._window.append(charge)
        self._prune(at)
        return charge

    def settle(self, charge: Charge, used: float, *, typical: bool) -> None:
        """What a call weighed after all; ``typical`` says whether it was a whole call, which later ones may be expected to be like."""
        if charge.counted:
            self._sum += used - charge.weight
        charge.weight = used
        if typical:
            self._typical = used if self._typical is None else self._typical + _TYPICAL * (used - self._typical)
            if self.rate is not None:
                self._free += (used - charge.spaced) / self.rate

    def told_by(self, stand: Stand, charge: Charge | None, now: float) -> bool:
        """What a delivered reply says of the limit; ``charge`` is its call's, if it was weighed. Returns whether the limit is news."""
        if not stand.limit or stand.limit <= 0 or _period(stand) > _DAY:
            return False
        if stand.remaining is not None:
            reset = float("inf") if stand.reset is None else stand.reset
            total = self._total if charge is None or not self._tokens else charge.total
            self._left = (now, stand.remaining - (1 - self.share) * stand.limit, total, reset)
        changed, self.learned = stand.limit != self.learned, stand.limit
        return changed

    def _room(self, weight: float, at: float, limit: float) -> float:
        """When the last minute has room."""
        over = self._sum + weight - limit
        for charge in self._window:
            if over <= 0:
                break
            at, over = max(at, charge.at + _KEPT), over - charge.weight
        return at

    def _refilled(self, weight: float, limit: float) -> float:
        """When what was left has grown enough, at the limit's rate or by its reset, less what started since."""
        if self._left is None:
            return float("-inf")
        at, left, total, reset = self._left
        missing = min(weight, limit) + self._total - total - left
        return at + min(missing / (limit / MINUTE), reset) if missing > 0 else float("-inf")

    def _prune(self, at: float) -> None:
        while self._window and self._window[0].at <= at - _KEPT:
            charge = self._window.popleft()
            charge.counted = False
            self._sum = self._sum - charge.weight if self._window else 0.0


def _period(stand: Stand) -> float:
    """Seconds in which the whole limit comes back, as far as the headers tell; 0 if they don't."""
    if not stand.limit or stand.remaining is None or stand.reset is None or stand.remaining >= stand.limit:
        return 0.0
    return stand.reset * stand.limit / (stand.limit - stand.remaining)
