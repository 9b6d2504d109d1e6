"""The controller: how fast, and how many calls at once, where nobody told the limit or it was told wrong. Pure; times are arguments.

Slow start: starts a second double, from few, until a reply is throttled. That fixes a pace, because limits are rates: a little less than
what was accepted of late. From there the pace rises along a cubic (RFC 9438, section 4.2): fast back to where it was refused, slowly past
it, then faster; each refusal takes a part off again. Concurrency follows from the pace and begins at its ceiling; where a provider has
no room, or nothing tells a rate, a part is taken off it, and grows back by one a round.

One event makes one decrease: what started before the last one, and what comes back within the cooldown, is of the same event. The
cooldown is this module's alone: it makes nobody wait. It knows nothing of Retry-After's clock, which is the turnstile's.
"""

from collections import deque

FIRST = 16.0
"""Starts a second, before anything is known."""
_DOUBLES, _SOON = 0.5, 5.0
"""Seconds in which the pace doubles in slow start, and after its first refusal."""
_ANY = 1e5
"""Starts a second beyond which there is no pace."""
COOLDOWN = 0.5
"""Seconds after a decrease without another one."""
_NARROWER = 0.7
"""The part of the concurrency that a decrease leaves."""
_SLOWER = 0.95
"""The part of the accepted rate that a decrease leaves."""
_BACK = 6.0
"""Seconds in which the pace is back where it was refused."""
_CURVE = (1 - _SLOWER) / _BACK**3
_ENOUGH = 4
"""Accepted starts that make a rate."""
_BIN = 0.1
"""Seconds that are counted together."""
_SHORTEST, _RECENT, _LONGEST = 0.5, 1.0, 60.0
"""Seconds over which a rate is taken: in slow start, usually, at most."""


class Controller:
    """One gate's."""

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self._window = float("inf")
        self._top: float | None = None
        """The pace that was refused; None in slow start."""
        self._felt = True
        """Whether the pace was refused once only, so that it is a guess."""
        self._since: float | None = None
        """When the slow start began, or the pace was refused last."""
        self._decreased = float("-inf")
        self._bins: deque[list[float]] = deque()

    @property
    def window(self) -> int:
        """Calls that may be in flight."""
        return max(1, int(min(self.ceiling, self._window)))

    def pace(self, now: float) -> float | None:
        """Starts a second; None for any."""
        elapsed = 0.0 if self._since is None else max(0.0, now - self._since)
        if self._top is None:
            return None if elapsed > 10 * _DOUBLES else float(FIRST * 2 ** (elapsed / _DOUBLES))
        pace = self._top * _SLOWER * 2 ** (elapsed / _SOON) if self._felt else self._top * (1 + _CURVE * (elapsed - _BACK) ** 3)
        return None if pace > _ANY else float(pace)

    def forget(self) -> None:
        """The rate is known now: what was felt out before is worth nothing, and there is nothing to feel out."""
        self._top, self._since = None, float("-inf")
        self._window = float("inf")

    def started(self, at: float) -> None:
        """A call starts. Starts come in order."""
        if self._since is None:
            self._since = at
        if self._bins and at - self._bins[-1][0] < _BIN:
            self._bins[-1][1] += 1
        else:
            self._bins.append([at, 1])
        while self._bins[0][0] < at - _LONGEST:
            self._bins.popleft()

    def served(self, *, full: bool) -> None:
        """A call was served; ``full`` says whether as many were in flight as may be."""
        if full and self._window < self.ceiling:
            self._window += 1 / self._window

    def congested(
        self, now: float, started: float, in_flight: int, wait: float | None, known: float | None = None, *, throttled: bool
    ) -> bool:
        """A call was pushed back. Returns whether that was an event of its own, and made a decrease.

        Args:
            started: when that call started.
            in_flight: calls in flight, itself included.
            wait: seconds that the provider asked to wait, which says how far back a rate must be looked for.
            known: the rate that was told or learned, a second.
            throttled: by a rate, rather than for want of room at the provider.
        """
        if throttled:
            self._refused(started)
        if started <= self._decreased or now < self._decreased + COOLDOWN:
            return False
        paced = throttled and self._paced(now, wait, known)
        if not paced:
            self._window = max(1.0, min(self._window, in_flight) * _NARROWER)
        self._decreased = now
        return True

    def held(self, until: float) -> None:
        """Nothing starts until then, so no pace rises before."""
        if self._since is not None:
            self._since = max(self._since, until)

    def _paced(self, now: float, wait: float | None, known: float | None) -> bool:
        """Takes the pace down to what was accepted, where that can be told. Half of it stays, lest a lull be taken for a limit."""
        least, part = (_SHORTEST, 0.25) if self._top is None and known is None else (_RECENT, 0.5)
        accepted = self._accepted(now, min(_LONGEST, max(least, 2 * (wait or 0.0))))
        pace = min((each for each in (self.pace(now), known) if each is not None), default=accepted)
        if pace is None:
            return False
        self._felt = self._top is None
        self._top, self._since = max(pace * part, min(pace, accepted or 0.0)), now
        return accepted is not None

    def _refused(self, started: float) -> None:
        for each in reversed(self._bins):
            if each[0] <= started:
                each[1] = max(0, each[1] - 1)
                return

    def _accepted(self, now: float, seconds: float) -> float | None:
        """Accepted starts a second, over that time and over enough of them; None if there weren't enough."""
        count, since = 0.0, now
        for at, starts in reversed(self._bins):
            if count >= _ENOUGH and now - at > seconds:
                break
            if at <= now:
                count, since = count + starts, at
        return count / max(_SHORTEST, now - since) if count >= _ENOUGH else None
