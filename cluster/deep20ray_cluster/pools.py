"""Pools: every Ray call to role actors sits here, so that tables never meet Ray.

A pool feeds one role's actors by mailboxes: calls and leases leave in batches, one batch outstanding per actor, and what finished, or
wants the lease of another wire try, comes back by a long poll. A lease's wait is shortened by what it spent here. Ray retries nothing;
a lost or hung actor is replaced within a budget and its calls come back as ``Lost``, which the table decides about. Whatever else goes
wrong fails the pool: no call waits for ever. A pool never looks into a message.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from deep20ray_actors.leases import Again, Grant, Lease
from deep20ray_actors.outcomes import Call, CallResult
from deep20ray_cluster.errors import ClusterFailed


class ActorLost(Exception):
    """The actor died, or stopped answering, and whatever it was doing is gone."""


class Handle(Protocol):
    """One role actor, as a pool sees it. Methods raise ActorLost."""

    async def ready(self) -> None:
        """Returns once the actor has started."""

    async def submit(self, calls: list[Call | Grant]) -> None:
        """Hands over a batch."""

    async def collect(self, wait_seconds: float) -> list[CallResult | Again]:
        """Calls that finished or want another wire try, waiting that long for the first."""

    async def close(self) -> None:
        """Ends the actor."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A call that never came back. It may have been paid for."""


Leaser = Callable[[Again], Awaitable[Lease]]
"""Gets the lease of another wire try; see ``Pool.ask``."""


@dataclass(slots=True, eq=False)
class _Member:
    handle: Handle | None = None
    inbox: "asyncio.Queue[tuple[float, Call | Grant]]" = field(default_factory=asyncio.Queue)
    """With the time at which each came."""
    slots: set[int] = field(default_factory=set)
    started: bool = False
    work: "asyncio.Task[None] | None" = None
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once it serves, or never will."""


@dataclass(slots=True, eq=False)
class _Waiter:
    future: "asyncio.Future[CallResult | Lost]"
    member: _Member
    lease: Leaser
    asking: "asyncio.Task[None] | None" = None

    def failed(self, asking: "asyncio.Task[None]") -> None:
        """A lease that can't come, by a mistake of ours, ends the wait for the call."""
        error = None if asking.cancelled() else asking.exception()
        if error is not None and not self.future.done():
            self.future.set_exception(error)


class Pool:
    """The actors of one role."""

    def __init__(
        self,
        role: str,
        start: Callable[[], Handle],
        *,
        started: Callable[[], None] = lambda: None,
        size: int = 1,
        replacements: int = 8,
        poll_seconds: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``started`` is called after each actor's start, so that the driver can note its processes."""
        self.role = role
        self.replaced = 0
        self._start = start
        self._started = started
        self._size = size
        self._budget = replacements
        self._poll = poll_seconds
        self._members: list[_Member] = []
        self._clock = clock
        self._waiting: dict[int, _Waiter] = {}
        self._unready: list[asyncio.Future[None]] = []
        self._slot = 0
        self._failure: BaseException | None = None

    def open(self, size: int | None = None) -> None:
        """Starts the actors, all at once: ``size`` of them, or as many as the pool was made for. Call it inside the running loop."""
        for _ in range(size or self._size):
            self._add()

    async def ready(self) -> None:
        """Returns once an actor has started, so that no lease is taken for a call that couldn't be sent.

        Raises:
            ClusterFailed: as ``ask``.
        """
        while self._failure is None and not any(member.started for member in self._members):
            waits: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._unready.append(waits)
            await waits
        if self._failure is not None:
            raise self._failure

    async def settled(self) -> None:
        """Waits until every actor has started. Calls need not wait for it.

        Raises:
            ClusterFailed: as ``ask``.
        """
        while waiting := [member.settled.wait() for member in self._members if not member.settled.is_set()]:
            await asyncio.gather(*waiting)
        if self._failure is not None:
            raise self._failure

    async def ask(self, call: Call, seconds: float | None = None, lease: Leaser | None = None) -> CallResult | Lost:
        """Sends one call and waits for what becomes of it; after ``seconds`` it counts as lost. The slot number is the pool's own.

        Args:
            lease: gets the lease of each further wire try; without it all are given at once.

        Raises:
            ClusterFailed: the replacement budget is spent, or the pool was failed.
        """
        if self._failure is not None:
            raise self._failure
        self._slot += 1
        slot = self._slot
        member = min(self._members, key=lambda each: (not each.started, len(each.slots)))
        waiter = self._waiting[slot] = _Waiter(asyncio.get_running_loop().create_future(), member, lease or _at_once)
        member.slots.add(slot)
        member.inbox.put_nowait((self._clock(), replace(call, slot=slot)))
        try:
            async with asyncio.timeout(seconds):
                return await waiter.future
        except TimeoutError:
            return Lost()
        finally:
            del self._waiting[slot]
            if waiter.asking is not None:
                waiter.asking.cancel()

    def fail(self, failure: BaseException) -> None:
        """Ends every call that waits, and every later one, with ``failure``. The first failure stays."""
        if self._failure is None:
            self._failure = failure
        for waiter in self._waiting.values():
            if not waiter.future.done():
                waiter.future.set_exception(self._failure)
        self._wake()

    async def close(self) -> None:
        """Ends the actors. Calls that still wait are failed."""
        self.fail(ClusterFailed(f"the {self.role} worker was closed"))
        members, self._members = self._members, []
        works = [member.work for member in members if member.work is not None]
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)
        await asyncio.gather(*(member.handle.close() for member in members if member.handle is not None), return_exceptions=True)

    def _wake(self) -> None:
        unready, self._unready = self._unready, []
        for waits in unready:
            if not waits.done():
                waits.set_result(None)

    def _add(self) -> None:
        member = _Member()
        self._members.append(member)
        member.work = asyncio.create_task(self._serve(member))
        member.work.add_done_callback(lambda work: self._over(member, work))

    async def _serve(self, member: _Member) -> None:
        member.handle = handle = self._start()
        await handle.ready()
        self._started()
        member.started = True
        self._wake()
        member.settled.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._send(member, handle))
            group.create_task(self._collect(member, handle))

    async def _send(self, member: _Member, handle: Handle) -> None:
        while True:
            batch = [await member.inbox.get()]
            while not member.inbox.empty():
                batch.append(member.inbox.get_nowait())
            now = self._clock()
            await handle.submit([_sooner(item, now - came) for came, item in batch])

    async def _collect(self, member: _Member, handle: Handle) -> None:
        while True:
            for news in await handle.collect(self._poll):
                waiter = self._waiting.get(news.slot)
                if isinstance(news, Again):
                    if waiter is not None and waiter.member is member:
                        waiter.asking = asyncio.create_task(self._lease(waiter, news))
                        waiter.asking.add_done_callback(waiter.failed)
                    continue
                member.slots.discard(news.slot)
                if waiter is not None and not waiter.future.done():
                    waiter.future.set_result(news)

    async def _lease(self, waiter: _Waiter, again: Again) -> None:
        """Hands on the lease of another wire try."""
        lease = await waiter.lease(again)
        waiter.member.inbox.put_nowait((self._clock(), Grant(again.slot, lease)))

    def _over(self, member: _Member, work: "asyncio.Task[None]") -> None:
        """An actor's work has ended: by the pool's closing, by its loss, or by a mistake of ours, which nobody may wait on."""
        if work.cancelled() or member not in self._members:
            return
        member.settled.set()
        error = _cause(work.exception())
        if not isinstance(error, ActorLost):
            self.fail(error)
            return
        self._members.remove(member)
        self.replaced += 1
        if self.replaced > self._budget:
            why = f"was lost {self.replaced} times, the last time because {error}"
            self.fail(ClusterFailed(f"the {self.role} worker {why}; look at the machine's memory, then resume"))
            return
        self._add()
        for slot in member.slots:
            waiter = self._waiting.get(slot)
            if waiter is not None and not waiter.future.done():
                waiter.future.set_result(Lost())


async def _at_once(again: Again) -> Lease:
    return Lease("", 0, again.wait)


def _sooner(item: Call | Grant, waited: float) -> Call | Grant:
    if waited <= 0 or item.lease.after <= 0:
        return item
    return replace(item, lease=replace(item.lease, after=max(0.0, item.lease.after - waited)))


def _cause(error: BaseException | None) -> BaseException:
    """The one error that ended an actor's work; a loss before all others."""
    if not isinstance(error, BaseExceptionGroup):
        return error or ActorLost("its work ended")
    causes = [_cause(each) for each in error.exceptions]
    return next((each for each in causes if isinstance(each, ActorLost)), causes[0])
