"""The line between tables and roles: leases, pools and the switch that stops new calls."""

from collections.abc import Callable, Mapping
from typing import Any

from deep20ray.answers import Role
from deep20ray_actors.messages import Message, ToolMessage
from deep20ray_actors.outcomes import Call, CallResult, Throttled
from deep20ray_cluster.gates import Gate, Shut
from deep20ray_cluster.pools import Lost, Pool
from deep20ray_cluster.table import Draining

PAUSE_MAX = 600.0
"""Seconds: the longest pause that one throttled reply may ask for."""
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
    ) -> None:
        """``accounts`` names the gate of each (role, route); ``seconds`` is the deadline of a call through each gate."""
        self._pools = pools
        self._gates = gates
        self._accounts = accounts
        self._seconds = seconds
        self.stopping: str | None = None
        self.calls = 0

    @property
    def in_flight(self) -> int:
        """Calls that hold a lease."""
        return sum(gate.in_flight for gate in self._gates.values())

    @property
    def throttled(self) -> int:
        """Throttled wire tries so far."""
        return sum(gate.throttled for gate in self._gates.values())

    def stop(self, reason: str) -> None:
        """No new call starts, and none waits any longer. The first reason stays."""
        self.stopping = self.stopping or reason
        for gate in self._gates.values():
            gate.shut()

    async def call(self, role: Role, route: str, message: Message, seed: int | None, before: Callable[[], Any]) -> CallResult | Lost:
        """See ``table.Desk``."""
        gate = self._gates[self._accounts[role, message.kind if isinstance(message, ToolMessage) else route]]
        try:
            async with gate.lease() as lease:
                await before()
                self.calls += 1
                result = await self._pools[role].ask(
                    Call(slot=0, route=route, message=message, seed=seed, lease=lease), self._seconds[gate.account] + GRACE
                )
        except Shut:
            raise Draining from None
        if isinstance(result, CallResult):
            gate.throttled += result.audit.throttles
            if isinstance(result.outcome, Throttled) and result.outcome.retry_after:
                gate.pause(min(result.outcome.retry_after, PAUSE_MAX))
        return result
