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
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep20ray.answers import Role
from deep20ray_actors.config import RouteConfig
from deep20ray_actors.leases import Again, Grant
from deep20ray_actors.outcomes import Call, CallResult
from deep20ray_cluster.errors import ClusterFailed
from deep20ray_cluster.pools import ActorLost, Handle

if TYPE_CHECKING:
    import psutil

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

_LOCAL = {
    # On every system: Ray's own processes ask for no route to the outside to learn this host's address.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}


class Session:
    """A Ray that is in use. It knows the processes that it can't do without, where they are ours."""

    def __init__(self, vital: "Mapping[str, psutil.Process] | None" = None, *, own: bool) -> None:
        """``own``: whether it was started for this drive and ends with it."""
        self.own = own
        self._vital = vital or {}

    def missing(self) -> str | None:
        """The name of a vital process that has died, if one has."""
        return next((name for name, process in self._vital.items() if not _alive(process)), None)


@contextmanager
def session_in_use(environ: MutableMapping[str, str], address: str | None = None) -> Iterator[Session]:
    """The Ray that this process is in already, for several sweeps within one; else as ``ray_session``.

    Raises:
        ClusterFailed: as ``ray_session``.
    """
    import ray

    if ray.is_initialized():
        yield Session(own=False)
        return
    with ray_session(environ, address) as session:
        yield session


@contextmanager
def ray_session(environ: MutableMapping[str, str], address: str | None = None) -> Iterator[Session]:
    """A Ray of our own on loopback, or with ``address`` a cluster that is joined; ended or left at exit.

    ``environ`` is changed while the session lives: workers inherit it, so credentials must be out of it before.

    Raises:
        ClusterFailed: Ray did not start, or the cluster can't be reached.
    """
    home = Path(tempfile.mkdtemp(prefix="d20-", dir=_short_folder()))
    (home / "ray_bootstrap_config.yaml").write_text("provider: {type: local}\n")
    changed = {**_QUIET, **({} if address else {**_LOCAL, "HOME": str(home)})}
    before = {name: environ.get(name) for name in changed}
    environ.update(changed)
    try:
        with _mute() if address is None else nullcontext():
            with _lean() if address is None else nullcontext():
                _start(home, address)
            yield Session(_vital() if address is None else None, own=True)
    finally:
        import ray

        ray.shutdown()
        for name, value in before.items():
            if value is None:
                environ.pop(name, None)
            else:
                environ[name] = value
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _lean() -> Iterator[None]:
    """Leaves out what only clusters of several hosts need: the autoscaler's and the log files' monitors, and the dashboard's server.

    They cost a third of the start. Ray has no public switch for them.
    """
    from ray._private import node, parameter

    params: Any = partial(parameter.RayParams, include_log_monitor=False, no_monitor=True)  # type: ignore[arg-type]
    with _swapped(parameter, "RayParams", params), _swapped(node.Node, "start_api_server", lambda *_, **__: None):
        yield


@contextmanager
def _mute() -> Iterator[None]:
    """Keeps Ray from printing its services' logs on stdout when one of them dies: data goes there, and the driver says it in a line."""
    from ray._private import worker

    with _swapped(worker, "print_to_stdstream", lambda *_, **__: None):
        yield


@contextmanager
def _swapped(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _vital() -> "dict[str, psutil.Process]":
    import psutil

    return {child.name(): child for child in psutil.Process().children() if child.name() in ("raylet", "gcs_server")}


def _alive(process: "psutil.Process") -> bool:
    import psutil

    try:
        # A dead child of ours stays as a zombie until it is waited for.
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _short_folder() -> str | None:
    """Where a session's sockets fit into the 107 characters that an address of theirs may have: the temporary folder, or /tmp."""
    return None if len(tempfile.gettempdir()) <= 20 else "/tmp"


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
    """A role actor behind the pool's protocol.

    Every answer has a deadline of ours: where a node's own services died, Ray lets a pending call wait for ever.
    """

    def __init__(self, actor: Any, hung_seconds: float = 30.0, start_seconds: float = 180.0) -> None:
        self._actor = actor
        self._hung = hung_seconds
        self._start = start_seconds

    async def ready(self) -> None:
        """See Handle."""
        await self._await(self._actor.ping.remote, self._start)

    async def submit(self, calls: list[Call | Grant]) -> None:
        """See Handle."""
        await self._await(lambda: self._actor.submit.remote(calls), self._hung)

    async def collect(self, wait_seconds: float) -> list[CallResult | Again]:
        """See Handle."""
        results: list[CallResult | Again] = await self._await(lambda: self._actor.collect.remote(wait_seconds), wait_seconds + self._hung)
        return results

    async def close(self) -> None:
        """See Handle. Killing is enough: an actor holds nothing that outlives its calls."""
        import ray

        ray.kill(self._actor, no_restart=True)

    async def _await(self, send: Callable[[], Any], seconds: float) -> Any:
        from ray.exceptions import RayError

        try:
            async with asyncio.timeout(seconds):
                return await send()
        except TimeoutError:
            await self.close()
            raise ActorLost("it stopped answering") from None
        except RayError as error:
            # Died, unreachable, or an answer that can't be read: the same to us. Ray's own words hold addresses and stacks.
            raise ActorLost(f"it died ({type(error).__name__})") from None


def starters(routes: Mapping[Role, Mapping[str, RouteConfig]]) -> dict[Role, Callable[[], Handle]]:
    """For each role, how to start an actor of its own class with its own routes and credentials."""
    from ray.exceptions import RayError

    from deep20ray_actors.roles import ACTORS

    def starter(role: Role) -> Callable[[], Handle]:
        def start() -> Handle:
            try:
                return RayHandle(ACTORS[role].remote(dict(routes[role])))
            except RayError as error:
                raise ActorLost(f"it can't be started ({type(error).__name__})") from None

        return start

    return {role: starter(role) for role in routes}
