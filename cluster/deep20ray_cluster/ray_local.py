"""Ray, quietly: the one place that starts, joins and stops it, and that turns role actors into pool handles.

A local Ray listens on loopback and connects nowhere. By itself it probes cloud metadata addresses and may report usage even with
the report switched off; a private home folder that names a local provider, and a report address that nobody answers, keep it silent.
"""

import asyncio
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deep20ray_actors.config import RouteConfig
from deep20ray_actors.outcomes import Call, CallResult

from deep20ray.answers import Role
from deep20ray_cluster.errors import ClusterFailed
from deep20ray_cluster.pools import ActorLost, Handle

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_USAGE_STATS_REPORT_URL": "http://127.0.0.1:9/",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_DEDUP_LOGS": "0",
    # Health checks that notice a dead node in about two seconds instead of twenty.
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "500",
    "RAY_health_check_failure_threshold": "3",
}


@contextmanager
def ray_session(environ: MutableMapping[str, str], address: str | None = None) -> Iterator[None]:
    """A Ray of our own on loopback, or with ``address`` a cluster that is joined; ended or left at exit.

    ``environ`` is changed while the session lives: workers inherit it, so credentials must be out of it before.

    Raises:
        ClusterFailed: Ray did not start, or the cluster can't be reached.
    """
    home = Path(tempfile.mkdtemp(prefix="d20-"))
    (home / "ray_bootstrap_config.yaml").write_text("provider: {type: local}\n")
    changed = {**_QUIET, **({} if address else {"HOME": str(home)})}
    before = {name: environ.get(name) for name in changed}
    environ.update(changed)
    try:
        _start(home, address)
        yield
    finally:
        import ray

        ray.shutdown()
        for name, value in before.items():
            if value is None:
                environ.pop(name, None)
            else:
                environ[name] = value
        shutil.rmtree(home, ignore_errors=True)


def _start(home: Path, address: str | None) -> None:
    import ray
    from ray._private import ray_constants

    options: dict[str, Any] = {
        "include_dashboard": False,
        "logging_level": logging.ERROR,
        "log_to_driver": False,
        "configure_logging": True,
    }
    if address is None:
        # Without this Ray rewrites the loopback address to the host's.
        ray_constants.ENABLE_RAY_CLUSTER = False
        options |= {"address": "local", "_node_ip_address": "127.0.0.1", "_temp_dir": str(home / "ray"), "num_cpus": os.cpu_count() or 1}
        options |= {"object_store_memory": 200 * 1024 * 1024}
    else:
        options |= {"address": address}
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, OSError, TimeoutError) as error:
        where = f"the Ray cluster at {address}" if address else "a local Ray"
        reason = " ".join(str(error).split())[:300]
        raise ClusterFailed(f"{where} could not be used: {reason}; nothing was sent, run or resume again") from None


class RayHandle:
    """A role actor behind the pool's protocol."""

    def __init__(self, actor: Any, hung_seconds: float = 30.0) -> None:
        self._actor = actor
        self._hung = hung_seconds

    async def submit(self, calls: list[Call]) -> None:
        """See Handle."""
        await self._await(self._actor.submit.remote(calls), self._hung)

    async def collect(self, wait_seconds: float) -> list[CallResult]:
        """See Handle."""
        results: list[CallResult] = await self._await(self._actor.collect.remote(wait_seconds), wait_seconds + self._hung)
        return results

    async def close(self) -> None:
        """See Handle. Killing is enough: an actor holds nothing that outlives its calls."""
        import ray

        ray.kill(self._actor, no_restart=True)

    async def _await(self, reference: Any, seconds: float) -> Any:
        from ray.exceptions import RayActorError

        try:
            async with asyncio.timeout(seconds):
                return await reference
        except TimeoutError:
            import ray

            ray.kill(self._actor, no_restart=True)
            raise ActorLost("it stopped answering") from None
        except RayActorError:
            raise ActorLost("it died") from None


def starters(routes: Mapping[Role, Mapping[str, RouteConfig]]) -> dict[Role, Callable[[], Handle]]:
    """For each role, how to start an actor of its own class with its own routes and credentials."""
    from deep20ray_actors.roles import ACTORS

    def starter(role: Role) -> Callable[[], Handle]:
        return lambda: RayHandle(ACTORS[role].remote(dict(routes[role])))

    return {role: starter(role) for role in routes}
