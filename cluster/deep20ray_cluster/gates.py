"""Gates: a turnstile for those who wait in an event loop. One for each account, or for each limit group of one.

A call needs a lease, and so does each further wire try of it; a lease names its gate and carries no trial id, and a waiting trial holds
none. What is decided is the turnstile's; here are only the futures of those who wait, and one timer. Shut, it lets no new call in,
while calls that are under way get what they need to end.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from deep20ray_actors.leases import Again, Lease, Seen
from deep20ray_actors.outcomes import CallResult, Usage
from deep20ray_cluster.limits import Change, Limits, Used, Weight
from deep20ray_cluster.turnstile import Measure, Ticket, Turnstile

Clock = Callable[[], float]
"""Monotonic seconds."""
Sleep = Callable[[float], Awaitable[None]]


class Shut(Exception):
    """The gate gives no more leases."""


class Pass:
    """One call's way through a gate: the lease of its first wire try, and those of all others."""

    def __init__(self, gate: "Gate", ticket: Ticket, lease: Lease) -> None:
        self.lease = lease
        self._gate = gate
        self._ticket = ticket
        self._end: tuple[Seen | None, Used] = (None, Used())

    async def again(self, again: Again) -> Lease:
        """The lease of another wire try, even where the gate is shut: the call is under way."""
        return await self._gate.again(self._ticket, again)

    def ended(self, result: CallResult) -> None:
        """What became of the call, for the gate to learn from."""
        self._end = (result.seen, used(result.audit.usage))

    def close(self) -> None:
        """Gives the place back."""
        self._gate.leave(self._ticket, *self._end)


class Gate:
    """First come, first served, as fast as the limits allow."""

    def __init__(
        self,
        name: str,
        limits: Limits,
        *,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        record: Callable[[Change], None] = lambda _: None,
    ) -> None:
        self.account = name
        self.throttled = 0
        self._turnstile = Turnstile(name, limits, clock, record)
        self._clock = clock
        self._sleep = sleep
        self._number = 0
        self._turns: dict[Ticket, asyncio.Future[float]] = {}
        self._timer: asyncio.Task[None] | None = None
        self._rings = math.inf
        self._shut = False

    @property
    def limits(self) -> Limits:
        """What its operator says of it."""
        return self._turnstile.limits

    @property
    def width(self) -> int:
        """Calls that may be in flight now."""
        return self._turnstile.width

    @property
    def rates(self) -> dict[str, float]:
        """What may start in a minute, by meter, where anything is known."""
        return self._turnstile.rates()

    @property
    def in_flight(self) -> int:
        """Calls that hold a lease."""
        return self._turnstile.in_flight

    @property
    def waiting(self) -> int:
        """Calls that wait for a lease."""
        return self._turnstile.waiting

    @asynccontextmanager
    async def enter(self, measure: Measure = Weight) -> AsyncIterator[Pass]:
        """A pass for one call, its wire tries included; given back at the end, whatever happened.

        Raises:
            Shut: no more leases.
        """
        if self._shut:
            raise Shut
        ticket = Ticket(measure)
        self._turnstile.enter(ticket)
        lease = await self._turn(ticket)
        passed = Pass(self, ticket, lease)
        try:
            yield passed
        finally:
            passed.close()

    async def again(self, ticket: Ticket, again: Again) -> Lease:
        """See ``Pass``."""
        self.throttled += again.seen.kind == "throttled"
        self._turnstile.again(ticket, again.seen, again.wait)
        return await self._turn(ticket)

    def leave(self, ticket: Ticket, seen: Seen | None, used: Used) -> None:
        """See ``Pass``."""
        self.throttled += ticket.at is not None and seen is not None and seen.kind == "throttled"
        self._turnstile.leave(ticket, seen, used)
        self._pump()

    def pause(self, seconds: float) -> None:
        """No call starts for that long; ``unpause`` ends it. A shorter pause never shortens a longer one."""
        self._turnstile.pause(seconds)
        self._pump()

    def unpause(self) -> None:
        """Ends a pause."""
        self._turnstile.unpause()
        self._pump()

    def retune(self, limits: Limits) -> None:
        """Other settings from now on, for those who wait too."""
        self._turnstile.retune(limits)
        self._pump()

    def shut(self) -> None:
        """Lets no new call in, and ends every wait for a first lease at once."""
        self._shut = True
        for ticket, turn in self._turns.items():
            if not turn.done() and ticket.new:
                turn.set_exception(Shut)

    async def _turn(self, ticket: Ticket) -> Lease:
        turn = self._turns[ticket] = asyncio.get_running_loop().create_future()
        after: float | None = None
        try:
            self._pump()
            after = await turn
        finally:
            del self._turns[ticket]
            if after is None:  # cancelled or shut out: its place is nobody's
                self._turnstile.leave(ticket)
                self._pump()
        self._number += 1
        return Lease(self.account, self._number, after)

    def _pump(self) -> None:
        """Lets through who may start, and sets the timer for the next one."""
        for ticket, after in self._turnstile.grants():
            turn = self._turns[ticket]
            if not turn.done():
                turn.set_result(after)
        wait = self._turnstile.wait()
        if wait is None:
            return
        rings = self._clock() + wait
        if self._timer is not None and not self._timer.done():
            if self._rings <= rings:
                return
            self._timer.cancel()
        self._rings = rings
        self._timer = asyncio.create_task(self._ring(wait))
        self._timer.add_done_callback(self._rang)

    async def _ring(self, seconds: float) -> None:
        await self._sleep(seconds)
        self._timer, self._rings = None, math.inf
        self._pump()

    def _rang(self, timer: "asyncio.Task[None]") -> None:
        """A mistake of ours in the timer ends every wait, or they would wait for ever."""
        error = None if timer.cancelled() else timer.exception()
        for turn in self._turns.values() if error is not None else ():
            if not turn.done():
                turn.set_exception(error)  # type: ignore[arg-type]  # it is one here


def used(usage: Usage) -> Used:
    """A call's tokens as providers limit them: all input, cached or not, and all output."""
    given = (usage.input_fresh, usage.input_cache_read, usage.input_cache_write_5m, usage.input_cache_write_1h)
    made = (usage.output_visible, usage.output_reasoning)
    return Used(_sum(given), _sum(made))


def _sum(meters: tuple[int | None, ...]) -> int | None:
    return None if None in meters else sum(meter or 0 for meter in meters)
