"""The line between tables and roles: leases, pools and the switch that stops new calls."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from deep20ray.answers import Role
from deep20ray_actors.messages import Message, ToolMessage
from deep20ray_actors.outcomes import Call, CallResult
from deep20ray_cluster.budget import Budget, Closed
from deep20ray_cluster.gates import Gate, Shut
from deep20ray_cluster.limits import Limits, Weight
from deep20ray_cluster.pools import Lost, Pool
from deep20ray_cluster.table import Draining

GRACE = 60.0
"""Seconds beyond a call's own deadline, which its actor keeps, after which the driver gives it up: for an actor that forgot it."""


class Line:
    """What a driver's tables share. ``stopping`` holds the reason once no new call may start."""

    def __init__(
        self,
        pools: Mapping[Role, Pool],
        gates: Mapping[str, Gate],
        accounts: Mapping[tuple[Role, str], str],
        seconds: Mapping[str, float],
        budget: Budget | None = None,
        weigh: Callable[[Role, str, Message], Weight] = lambda *_: Weight(),
    ) -> None:
        """``accounts`` names the gate of each (role, route); ``seconds`` is the deadline of a call through each gate; ``weigh`` says
        what a call weighs before it is sent."""
        self._pools = pools
        self._gates = gates
        self._accounts = accounts
        self._seconds = seconds
        self._budget = budget
        self._weigh = weigh
        self.stopping: str | None = None
        self._closed: dict[str, str] = {}
        self.calls = 0

    @property
    def in_flight(self) -> int:
        """Calls that hold a lease."""
        return sum(gate.in_flight for gate in self._gates.values())

    @property
    def throttled(self) -> int:
        """Throttled wire tries so far."""
        return sum(gate.throttled for gate in self._gates.values())

    def retune(self, limits: Mapping[str, Limits]) -> None:
        """Other settings for gates, by name, from now on."""
        for name, gate in self._gates.items():
            gate.retune(limits.get(name, gate.limits))

    def stop(self, reason: str) -> None:
        """No new call starts, and none waits any longer. The first reason stays."""
        self.stopping = self.stopping or reason
        for gate in self._gates.values():
            gate.shut()
        if self._budget is not None:
            self._budget.stop()

    def close(self, run: str, reason: str) -> None:
        """No new call of that run starts; other runs play on. The first reason stays."""
        self._closed.setdefault(run, reason)

    @property
    def stopped(self) -> str | None:
        """Why all calls stopped, or else those of some runs."""
        return self.stopping or "; ".join(self._closed.values()) or None

    def open(self, run: str) -> bool:
        """Whether calls of that run may still be made."""
        return self.stopping is None and run not in self._closed and (self._budget is None or self._budget.open(run))

    async def call(
        self, role: Role, route: str, message: Message, seed: int | None, before: Callable[..., Any], run: str = ""
    ) -> CallResult | Lost:
        """See ``table.Desk``; ``run`` is whose budget pays."""
        if run in self._closed:
            raise Draining
        if self._budget is None:
            return await self._leased(role, route, message, seed, before, run)
        try:
            ticket = await self._budget.hold(run, role, message)
        except Closed:
            raise Draining from None
        if ticket is None:
            return await self._leased(role, route, message, seed, before, run)
        sent, result = False, None

        async def begin() -> None:
            nonlocal sent
            sent = True
            await before(budget=ticket.quote.body)

        try:
            result = await self._leased(role, route, message, seed, begin, run)
        finally:
            self._budget.settle(ticket, result if isinstance(result, CallResult) else None, sent=sent)
        return result

    async def _leased(
        self, role: Role, route: str, message: Message, seed: int | None, before: Callable[..., Any], run: str
    ) -> CallResult | Lost:
        gate = self._gates[self._accounts[role, message.kind if isinstance(message, ToolMessage) else route]]
        pool = self._pools[role]
        await pool.ready()
        try:
            async with gate.enter(lambda: self._weigh(role, route, message)) as passed:
                if run in self._closed:  # while it waited
                    raise Draining
                await before()
                self.calls += 1
                call = Call(slot=0, route=route, message=message, seed=seed, lease=passed.lease)
                result = await pool.ask(call, self._seconds[gate.account] + GRACE, passed.again)
                if isinstance(result, CallResult):
                    passed.ended(result)
                return result
        except Shut:
            raise Draining from None


@dataclass(frozen=True, slots=True)
class RunDesk:
    """The line as the tables of one run have it; see ``table.Desk``."""

    line: Line
    run: str

    async def call(self, role: Role, route: str, message: Message, seed: int | None, before: Callable[..., Any]) -> CallResult | Lost:
        """One call, at that run's expense."""
        return await self.line.call(role, route, message, seed, before, self.run)
