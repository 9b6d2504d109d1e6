"""The controller: how many calls at once, and how fast, where nobody told the limit or it was told wrong. Pure; times are arguments.

Concurrency starts small, doubles with every round of replies until something pushes back, then grows by one a round, and falls by a
part when it is pushed back. A throttled reply also fixes a pace, because limits are rates: a little less than what was accepted of
late. The pace rises along a cubic (RFC 9438, section 4.2): fast back to where it was refused, slowly past it, then faster.

One event makes one decrease: what started before the last one, and what comes back within the cooldown, is of the same event. The
cooldown is this module's alone: it makes nobody wait. It knows nothing of Retry-After's clock, which is the turnstile's.
"""

from collections import deque

FIRST = 16
"""Calls at once, before anything is known."""
COOLDOWN = 1.0
"""Seconds after a decrease without another one."""
_NARROWER = 0.7
"""The part of the concurrency that a decrease leaves."""
_SLOWER = 0.95
"""The part of the accepted rate that a decrease leaves."""
_BACK = 10.0
"""Seconds in which the pace is back where it was refused."""
_CURVE = (1 - _SLOWER) / _BACK**3
_ENOUGH = 4
"""Accepted starts that make a rate."""
_BIN = 0.1
"""Seconds that are counted together."""
_SHORTEST, _RECENT, _LONGEST = 0.5, 2.0, 60.0
"""Seconds over which a rate is taken: at least, usually, at most."""


class Controller:
    """One gate's."""

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self._window = float(min(ceiling, FIRST))
        self._threshold = float("inf")
        self._top: float | None = None
        self._since = 0.0
        self._decreased = float("-inf")
        self._bins: deque[list[float]] = deque()

    @property
    def window(self) -> int:
        """Calls that may be in flight."""
        return max(1, min(self.ceiling, int(self._window)))

    def pace(self, now: float) -> float | None:
        """Starts a second; None while nothing was throttled."""
        if self._top is None:
            return None
        elapsed = max(0.0, now - self._since)
        return float(self._top * (1 + _CURVE * (elapsed - _BACK) ** 3))

    def open(self) -> None:
        """The rate is known, so nothing has to be felt out: as many at once as the ceiling allows, unless something pushed back."""
        if self._threshold == float("inf"):
            self._window = float(self.ceiling)

    def started(self, at: float) -> None:
        """A call starts. Starts come in order."""
        if self._bins and at - self._bins[-1][0] < _BIN:
            self._bins[-1][1] += 1
        else:
            self._bins.append([at, 1])
        while self._bins[0][0] < at - _LONGEST:
            self._bins.popleft()

    def served(self, *, full: bool) -> None:
        """A call was served; ``full`` says whether as many were in flight as may be."""
        if full and self._window < self.ceiling:
            self._window += 1 if self._window < self._threshold else 1 / self._window

    def congested(self, now: float, started: float, in_flight: int, wait: float | None, *, throttled: bool) -> bool:
        """A call was pushed back. Returns whether that was an event of its own, and made a decrease.

        Args:
            started: when that call started.
            in_flight: calls in flight, itself included.
            wait: seconds that the provider asked to wait, which says how far back a rate must be looked for.
            throttled: by a rate, rather than for want of room at the provider.
        """
        if throttled:
            self._refused(started)
        if started <= self._decreased or now < self._decreased + COOLDOWN:
            return False
        accepted = self._accepted(now, min(_LONGEST, max(_RECENT, 2 * (wait or 0.0)))) if throttled else None
        if accepted is not None:
            pace = self.pace(now)
            self._top = accepted if pace is None else max(pace / 2, min(pace, accepted))
            # The rate holds it from here on, so concurrency may come back in a round.
            self._threshold, self._since = self._window, now
        else:
            self._threshold = max(1.0, self._window * _NARROWER)
        self._window = max(1.0, min(self._window, in_flight) * _NARROWER)
        self._decreased = now
        return True

    def held(self, until: float) -> None:
        """Nothing starts until then, so the pace doesn't rise before."""
        self._since = max(self._since, until)

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
