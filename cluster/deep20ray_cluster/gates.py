"""Gates: how many calls an account may have in the air, and how fast they may start.

A call needs a lease; a lease names its account and carries no trial id, and a waiting trial holds none. Time is an argument, so
that the gate runs on a fake clock. Throttled replies pause the whole account for as long as the provider asked.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from deep20ray_actors.outcomes import Lease

Clock = Callable[[], float]
"""Monotonic seconds."""
Sleep = Callable[[float], Awaitable[None]]

_LATE = 0.01
"""Seconds by which a start may be late without moving the later ones: a timer's own delay must not add up."""
_MARGIN = 0.99
"""The part of the configured rate that is used, so that lateness never makes one start too many in any minute."""


class Shut(Exception):
    """The gate gives no more leases."""


class Gate:
    """One account's gate. First come, first served."""

    def __init__(self, account: str, *, max_concurrency: int, requests_per_minute: int | None, clock: Clock, sleep: Sleep) -> None:
        self.account = account
        self.max_concurrency = max_concurrency
        self.in_flight = 0
        self.throttled = 0
        self._interval = 60 / (requests_per_minute * _MARGIN) if requests_per_minute else 0.0
        self._clock = clock
        self._sleep = sleep
        self._next_start = 0.0
        self._not_before = 0.0
        self._number = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._pacing = asyncio.Lock()
        self._nap: asyncio.Future[None] | None = None
        self._shut = False

    @property
    def waiting(self) -> int:
        """Calls that wait for a lease."""
        return len(self._waiting)

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Lease]:
        """A lease for one logical call, its wire tries included; given back at the end, whatever happened.

        Raises:
            Shut: no more leases.
        """
        await self._enter()
        try:
            await self._pace()
            self._number += 1
            yield Lease(self.account, self._number)
        finally:
            self._leave()

    def pause(self, seconds: float) -> None:
        """No call starts for that long: a provider said so. A shorter pause never shortens a longer one."""
        self._not_before = max(self._not_before, self._clock() + seconds)

    def shut(self) -> None:
        """Gives no more leases, and ends every wait for one at once."""
        self._shut = True
        if self._nap is not None:
            self._nap.cancel()
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(Shut)

    async def _enter(self) -> None:
        if self._shut:
            raise Shut
        if self.in_flight < self.max_concurrency and not self._waiting:
            self.in_flight += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn  # the leaver hands its place over, so in_flight stays as it is
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._leave()
            elif turn in self._waiting:
                self._waiting.remove(turn)
            raise

    def _leave(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.in_flight -= 1

    async def _pace(self) -> None:
        """Waits for this call's start. One call at a time waits here, in order, so a pause or a cancellation moves no other's turn."""
        async with self._pacing:
            while not self._shut and (wait := max(self._next_start, self._not_before) - self._clock()) > 0:
                await self._rest(wait)
            if self._shut:
                raise Shut
            if self._interval:
                self._next_start = max(self._next_start, self._clock() - _LATE) + self._interval

    async def _rest(self, seconds: float) -> None:
        self._nap = nap = asyncio.ensure_future(self._sleep(seconds))
        try:
            await asyncio.wait({nap})
        finally:
            nap.cancel()
            self._nap = None
