"""The five actor classes, one a role: thin wrappings of RoleHost, and the only file of this package that imports Ray.

An actor has no name, holds no handle, is never restarted and never retried by Ray: a repeated call would be paid for twice.
It reads no environment; its constructor gets its own role's routes alone, and refuses others.
"""

import asyncio
import platform
import random
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

import ray

from deep20ray.answers import Role
from deep20ray_actors.config import RouteConfig
from deep20ray_actors.greeting import Greeting, code_digest, unusable_keys
from deep20ray_actors.host import RoleHost, Surroundings
from deep20ray_actors.leases import Again, Grant
from deep20ray_actors.outcomes import Call, CallResult
from deep20ray_actors.providers.transport import HttpTransport

_OPTIONS: dict[str, Any] = {"num_cpus": 0, "max_restarts": 0, "max_task_retries": 0, "max_concurrency": 1000}


class _RoleActor:
    role: ClassVar[Role]

    def __init__(self, routes: Mapping[str, RouteConfig]) -> None:
        around = Surroundings(time.monotonic, lambda: datetime.now(UTC), asyncio.sleep, random.random)
        place = f"{platform.node()} ({ray.util.get_node_ip_address()})"  # type: ignore[no-untyped-call]
        self._greeting = Greeting(self.role.value, place, code_digest(), unusable_keys(routes))
        self._host = RoleHost(self.role, routes, around, HttpTransport(sleep=around.sleep, jitter=around.jitter), place=place)

    async def submit(self, calls: list[Call | Grant]) -> None:
        """See RoleHost."""
        await self._host.submit(calls)

    async def collect(self, wait_seconds: float) -> list[CallResult | Again]:
        """See RoleHost."""
        return await self._host.collect(wait_seconds)

    async def ping(self) -> Greeting:
        """What it is, from a loop that turns."""
        return self._greeting

    async def close(self) -> None:
        """See RoleHost."""
        await self._host.close()


@ray.remote(**_OPTIONS)
class GuesserActor(_RoleActor):
    """Plays the Guesser."""

    role = Role.GUESSER


@ray.remote(**_OPTIONS)
class OracleActor(_RoleActor):
    """Searches, and plays the Oracle."""

    role = Role.ORACLE


@ray.remote(**_OPTIONS)
class ReviewerActor(_RoleActor):
    """Plays the Reviewer."""

    role = Role.REVIEWER


@ray.remote(**_OPTIONS)
class JudgeActor(_RoleActor):
    """Plays the Judge."""

    role = Role.JUDGE


@ray.remote(**_OPTIONS)
class ValidatorActor(_RoleActor):
    """Plays the Validator."""

    role = Role.VALIDATOR


ACTORS: Mapping[Role, Any] = {
    Role.GUESSER: GuesserActor,
    Role.ORACLE: OracleActor,
    Role.REVIEWER: ReviewerActor,
    Role.JUDGE: JudgeActor,
    Role.VALIDATOR: ValidatorActor,
}
"""Each role's actor class; ``ACTORS[role].remote(routes)`` starts one."""
