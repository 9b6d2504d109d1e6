"""Pools: every Ray call to role actors sits here, so that tables never meet Ray.

A pool feeds one role's actors by mailboxes: calls leave in batches, one batch outstanding per actor, and finished outcomes come
back by a long poll. Ray retries nothing; a lost or hung actor is replaced within a budget and its calls come back as ``Lost``,
which the table decides about. A pool never looks into a message.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from deep20ray_actors.outcomes import Call, CallResult

from deep20ray_cluster.errors import ClusterFailed


class ActorLost(Exception):
    """The actor died, or stopped answering, and whatever it was doing is gone."""


class Handle(Protocol):
    """One role actor, as a pool sees it. Methods raise ActorLost."""

    async def submit(self, calls: list[Call]) -> None:
        """Hands over a batch."""

    async def collect(self, wait_seconds: float) -> list[CallResult]:
        """Finished calls, waiting that long for the first."""

    async def close(self) -> None:
        """Ends the actor."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A call that never came back. It may have been paid for."""


@dataclass(slots=True)
class _Member:
    handle: Handle
    inbox: asyncio.Queue[Call]
    slots: set[int]
    tasks: list[asyncio.Task[None]]


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
        self._waiting: dict[int, asyncio.Future[CallResult | Lost]] = {}
        self._slot = 0
        self._failure: ClusterFailed | None = None

    def open(self) -> None:
        """Starts the actors. Call it inside the running loop."""
        for _ in range(self._size):
            self._members.append(self._member())

    async def ask(self, call: Call) -> CallResult | Lost:
        """Sends one call and waits for what becomes of it. The slot number is the pool's own.

        Raises:
            ClusterFailed: the replacement budget is spent.
        """
        if self._failure is not None:
            raise self._failure
        self._slot += 1
        slot = self._slot
        future: asyncio.Future[CallResult | Lost] = asyncio.get_running_loop().create_future()
        member = min(self._members, key=lambda each: len(each.slots))
        self._waiting[slot] = future
        member.slots.add(slot)
        member.inbox.put_nowait(replace(call, slot=slot))
        try:
            return await future
        finally:
            self._waiting.pop(slot, None)

    async def close(self) -> None:
        """Ends the actors and forgets what they did."""
        members, self._members = self._members, []
        for member in members:
            for task in member.tasks:
                task.cancel()
            await asyncio.gather(*member.tasks, return_exceptions=True)
            await member.handle.close()

    def _member(self) -> _Member:
        member = _Member(self._start(), asyncio.Queue(), set(), [])
        member.tasks = [asyncio.create_task(self._run(member, self._send)), asyncio.create_task(self._run(member, self._collect))]
        return member

    async def _run(self, member: _Member, loop: Callable[[_Member], Any]) -> None:
        try:
            await loop(member)
        except ActorLost:
            self._replace(member)

    async def _send(self, member: _Member) -> None:
        while True:
            batch = [await member.inbox.get()]
            while not member.inbox.empty():
                batch.append(member.inbox.get_nowait())
            await member.handle.submit(batch)

    async def _collect(self, member: _Member) -> None:
        while True:
            for result in await member.handle.collect(self._poll):
                member.slots.discard(result.slot)
                future = self._waiting.get(result.slot)
                if future is not None and not future.done():
                    future.set_result(result)

    def _replace(self, member: _Member) -> None:
        if member not in self._members:
            return
        self._members.remove(member)
        current = asyncio.current_task()
        for task in member.tasks:
            if task is not current:
                task.cancel()
        self.replaced += 1
        if self.replaced > self._budget:
            self._failure = ClusterFailed(f"the {self.role} worker was lost {self.replaced} times; look at the machine, then resume")
        else:
            self._members.append(self._member())
        for slot in member.slots:
            future = self._waiting.get(slot)
            if future is None or future.done():
                continue
            if self._failure is not None and not self._members:
                future.set_exception(self._failure)
            else:
                future.set_result(Lost())
