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
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep20ray.answers import Role
from deep20ray_actors.config import RouteConfig
from deep20ray_actors.greeting import Greeting, code_digest
from deep20ray_actors.leases import Again, Grant
from deep20ray_actors.outcomes import Call, CallResult
from deep20ray_cluster.errors import ClusterFailed
from deep20ray_cluster.joined import Sightings, join, own_raylet
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
    """A Ray that is in use. It knows what it can't do without: processes of this host, and the head of a cluster that was joined."""

    def __init__(
        self,
        vital: "Mapping[str, psutil.Process] | None" = None,
        *,
        own: bool,
        workers: int | None = None,
        cluster: Sightings | None = None,
    ) -> None:
        """``own``: whether it was started for this drive and ends with it; ``workers``: actors of each role, if it is configured."""
        self.own = own
        self.cluster = cluster
        self.workers = workers or (cluster.workers if cluster is not None else 1)
        self._vital = vital or {}

    def trouble(self) -> str | None:
        """Why nothing can be played on it any more, if so."""
        for name, process in self._vital.items():
            if not _alive(process):
                return f"Ray's {name} died; look at the machine's memory"
        return self.cluster.trouble() if self.cluster is not None else None


@contextmanager
def session_in_use(environ: MutableMapping[str, str], address: str | None = None, workers: int | None = None) -> Iterator[Session]:
    """The Ray that this process is in already, for several sweeps within one; else as ``ray_session``.

    Raises:
        ClusterFailed: as ``ray_session``.
    """
    import ray

    if ray.is_initialized():
        yield Session(own=False, workers=workers)
        return
    with ray_session(environ, address, workers) as session:
        yield session


@contextmanager
def ray_session(environ: MutableMapping[str, str], address: str | None = None, workers: int | None = None) -> Iterator[Session]:
    """A Ray of our own on loopback, or with ``address`` a cluster that is joined; ended or left at exit.

    ``environ`` is changed while the session lives: workers inherit it, so credentials must be out of it before. ``workers``: how many
    actors each role gets; without it one, or on a cluster one on every node up to a limit.

    Raises:
        ClusterFailed: Ray did not start, or the cluster can't be reached.
    """
    home = Path(tempfile.mkdtemp(prefix="d20-", dir=_short_folder()))
    (home / "ray_bootstrap_config.yaml").write_text("provider: {type: local}\n")
    changed = {**_QUIET, **({} if address else {**_LOCAL, "HOME": str(home)})}
    before = {name: environ.get(name) for name in changed}
    environ.update(changed)
    try:
        with _mute():
            if address is None:
                with _lean():
                    _start(home)
                yield Session(_vital(), own=True, workers=workers)
            else:
                sightings, watch = join(address, _QUIET_OPTIONS)
                with closing(watch):
                    raylet = own_raylet(sightings)
                    yield Session({} if raylet is None else {"raylet": raylet}, own=True, workers=workers, cluster=sightings)
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


_QUIET_OPTIONS = {"logging_level": logging.ERROR, "log_to_driver": False, "configure_logging": True}


def _start(home: Path) -> None:
    import ray
    from ray._private import ray_constants

    # Without this Ray rewrites the loopback address to the host's.
    ray_constants.ENABLE_RAY_CLUSTER = False
    options: dict[str, Any] = {
        **_QUIET_OPTIONS,
        "include_dashboard": False,
        "address": "local",
        "_node_ip_address": "127.0.0.1",
        "_temp_dir": str(home / "ray"),
        "num_cpus": os.cpu_count() or 1,
        "object_store_memory": 200 * 1024 * 1024,
    }
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, OSError, TimeoutError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ClusterFailed(f"a local Ray could not be used: {reason}; nothing was sent, run or resume again") from None


class RayHandle:
    """A role actor behind the pool's protocol.

    Every answer has a deadline of ours: where a node's own services died, Ray lets a pending call wait for ever.
    """

    def __init__(
        self,
        actor: Any,
        greeted: Callable[[Greeting], None] = lambda _: None,
        left: Callable[[], None] = lambda: None,
        hung_seconds: float = 30.0,
        start_seconds: float = 180.0,
    ) -> None:
        """``greeted`` may refuse what the actor says of itself by raising; ``left`` is called once, when the actor is given up."""
        self._actor = actor
        self._greeted = greeted
        self._left = ExitStack()
        self._left.callback(left)
        self._hung = hung_seconds
        self._start = start_seconds

    async def ready(self) -> None:
        """See Handle."""
        greeting: Greeting = await self._await(self._actor.ping.remote, self._start)
        self._greeted(greeting)

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
        self._left.close()

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
            # One that is merely out of reach must not go on with calls that now count as lost.
            await self.close()
            raise ActorLost(f"it died ({type(error).__name__})") from None


def starters(
    routes: Mapping[Role, Mapping[str, RouteConfig]],
    cluster: Sightings | None = None,
    greeted: Callable[[Greeting], None] = lambda _: None,
) -> dict[Role, Callable[[], Handle]]:
    """For each role, how to start an actor of its own class with its own routes and credentials.

    On a ``cluster`` actors are spread over its nodes, and one that runs other code than this driver fails its pool.
    """
    from ray.exceptions import RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from deep20ray_actors.roles import ACTORS

    code = None if cluster is None else code_digest()

    def check(greeting: Greeting) -> None:
        greeted(greeting)
        if code is not None and greeting.code != code:
            where = f"the {greeting.role} worker on {greeting.host}"
            why = "it has a deep20ray of its own that hides the one that the driver sent"
            raise ClusterFailed(f"{where} runs other code than this driver: {why}; install the same version there, or none")

    def starter(role: Role) -> Callable[[], Handle]:
        def start() -> Handle:
            try:
                if cluster is None:
                    return RayHandle(ACTORS[role].remote(dict(routes[role])), check)
                # Actors that need no CPU are put anywhere by every strategy of Ray's but this: twice on one node, never on another.
                node = cluster.place(role.value)
                placed = ACTORS[role].options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False))
                return RayHandle(placed.remote(dict(routes[role])), check, partial(cluster.gone, role.value, node))
            except RayError as error:
                raise ActorLost(f"it can't be started ({type(error).__name__})") from None

        return start

    return {role: starter(role) for role in routes}
