"""A cluster that was joined: whether it still answers, which nodes live, and where the next role actor goes.

Ray lets a pending call wait for ever where a node's own services died, and ends a whole driver a minute after the cluster's head is
gone. So a thread of ours asks the head for its nodes every second, and the drive asks here. Nothing here knows what is played.
"""

import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deep20ray.errors import UsageError
from deep20ray_actors.greeting import SHIPPED
from deep20ray_cluster.errors import ClusterFailed

if TYPE_CHECKING:
    import psutil

PATIENCE = 10.0
"""Seconds without an answer of the head after which the cluster counts as lost."""
MOST_WORKERS = 8
"""Actors of one role that are started when nothing is configured, however many nodes there are."""
_PERIOD = 1.0
_CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Node:
    """A living node of the cluster."""

    id: str
    host: str
    """For people."""
    address: str
    works: bool
    """Whether it takes work: a node without CPUs was told to take none."""


@dataclass(slots=True)
class Sightings:
    """What was last seen of a cluster's nodes, and which actors were put where. Without I/O; the clock is an argument."""

    address: str
    own: str
    """The id of the node that the driver is connected to."""
    clock: Callable[[], float] = time.monotonic
    nodes: dict[str, Node] = field(default_factory=dict)
    lost: int = 0
    """Nodes that were seen and are gone."""
    _seen: float | None = None
    _placed: Counter[tuple[str, str]] = field(default_factory=Counter)
    _doubted: set[str] = field(default_factory=set)
    """Nodes that an actor was lost on since the head last answered: they may be dead already."""

    def see(self, nodes: Iterable[Node]) -> None:
        """The head has answered."""
        alive = {node.id: node for node in nodes}
        self.lost += len(self.nodes.keys() - alive.keys())
        self.nodes, self._seen = alive, self.clock()
        self._doubted.clear()

    def trouble(self) -> str | None:
        """Why nothing more can be played on this cluster, if so."""
        if self._seen is None or self.clock() - self._seen > PATIENCE:
            return f"the head of the Ray cluster at {self.address} has not answered for {PATIENCE:g} s"
        if self.own not in self.nodes:
            return "the cluster has declared the driver's own node dead"
        return None

    @property
    def workers(self) -> int:
        """How many actors of a role are started when nothing is configured: one on every node that takes work."""
        return max(1, min(MOST_WORKERS, len(self._working())))

    def place(self, role: str) -> str:
        """The node for the role's next actor: the one with the fewest of that role, then with the fewest of all."""
        everyone: Counter[str] = Counter()
        for (_, node), count in self._placed.items():
            everyone[node] += count

        def burden(node: Node) -> tuple[bool, int, int, str]:
            return node.id in self._doubted, self._placed[role, node.id], everyone[node.id], node.id

        chosen = min(self._working(), key=burden)
        self._placed[role, chosen.id] += 1
        return chosen.id

    def gone(self, role: str, node: str) -> None:
        """An actor of that role has left the node, or was lost with it."""
        self._placed[role, node] -= 1
        self._doubted.add(node)

    @property
    def hosts(self) -> int:
        """How many different hosts take work."""
        return len({node.address for node in self._working()})

    def _working(self) -> Sequence[Node]:
        living = list(self.nodes.values())
        return [node for node in living if node.works] or living or [Node(self.own, "", "", works=True)]


class Watch:
    """Keeps sightings up to date from a thread of its own: asking a head that is gone blocks for a minute."""

    def __init__(self, sightings: Sightings, ask: Callable[[], Sequence[Node]]) -> None:
        """``ask`` may block, and may raise OSError or RuntimeError, as Ray does; both count as no answer."""
        self._sightings = sightings
        self._ask = ask
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cluster-watch", daemon=True)
        sightings.see(ask())
        self._thread.start()

    def close(self) -> None:
        """Asks no more. A question that is blocked is left to its thread."""
        self._stop.set()
        self._thread.join(timeout=_PERIOD)

    def _run(self) -> None:
        while not self._stop.wait(_PERIOD):
            try:
                nodes = self._ask()
            except (OSError, RuntimeError):
                continue
            if not self._stop.is_set():
                self._sightings.see(nodes)


def join(address: str, options: Mapping[str, Any]) -> tuple[Sightings, Watch]:
    """Joins the cluster, with the code that its workers will run: this driver's own.

    Args:
        address: HOST:PORT of its head, or ``auto`` for the cluster that this host is part of.
        options: more of ``ray.init``'s arguments.

    Raises:
        ClusterFailed: it can't be reached, wants another token, or runs other versions of Ray or Python.
    """
    import ray
    from ray._private import ray_constants
    from ray.exceptions import RayError

    found = _found(address)
    if found.startswith("127."):
        # Without this Ray rewrites the loopback address to the host's.
        ray_constants.ENABLE_RAY_CLUSTER = False
    shipped = {"py_modules": [str(package) for package in SHIPPED], "excludes": ["__pycache__"]}
    try:
        ray.init(address=found, runtime_env=shipped, **options)
        sightings = Sightings(found, ray.get_runtime_context().get_node_id())
        return sightings, Watch(sightings, _nodes)
    except (OSError, RuntimeError, ValueError, RayError) as error:
        raise ClusterFailed(f"the Ray cluster at {found} could not be used: {_reason(error)}; nothing was sent") from None


def _found(address: str) -> str:
    """The head's HOST:PORT, where something listens. Ray itself would try for minutes."""
    from ray._private import services

    if "://" in address:
        raise UsageError(
            f"--address {address}: Ray Client is not supported, because it hides lost nodes; run the driver on a node of the cluster "
            "(`ray job submit`) and give auto, or HOST:PORT of the head"
        )
    try:
        found = str(services.canonicalize_bootstrap_address_or_die(address)) if address == "auto" else address
        host, _, port = found.rpartition(":")
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, RuntimeError, ValueError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else " ".join(str(error).split())[:200]
        raise ClusterFailed(f"no Ray cluster answers at {address} ({why}); give the HOST:PORT that `ray start --head` printed") from None
    return found


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    if "ersion mismatch" in text:
        versions = re.findall(r"(?:Ray|Python): (\S+)", text)
        pairs = [f"Ray {ray_} and Python {python}" for ray_, python in zip(versions[::2], versions[1::2], strict=False)]
        return f"it runs {' and this driver '.join(pairs)}; install the same versions on both" if len(pairs) == 2 else text[:300]
    if re.search(r"auth|token|unauthenticated", text, re.IGNORECASE):
        return "it wants a token that this driver doesn't have; set RAY_AUTH_MODE=token and give it the cluster's token file"
    if "Failed to connect" in text:
        # Ray doesn't say why: a refused token looks like a head that is silent.
        return "something is there and doesn't let this driver in; if the cluster has a token, set RAY_AUTH_MODE=token and give its file"
    return text[:300]


def _nodes() -> list[Node]:
    import ray
    from ray.exceptions import RayError

    try:
        rows: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    except RayError as error:
        raise OSError(str(error)) from None
    return [
        Node(
            row["NodeID"],
            f"{row['NodeManagerHostname']} ({row['NodeManagerAddress']})",
            row["NodeManagerAddress"],
            row.get("Resources", {}).get("CPU", 0) > 0,
        )
        for row in rows
        if row["Alive"]
    ]


def own_raylet(sightings: Sightings) -> "psutil.Process | None":
    """The process of the driver's own node, if it can be seen from here: its death is noticed sooner than the head notices it."""
    import psutil
    import ray

    rows: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    sockets = {row["RayletSocketName"] for row in rows if row["NodeID"] == sightings.own}
    for process in psutil.process_iter(["name", "cmdline"]):
        words = process.info["cmdline"] or []
        if process.info["name"] == "raylet" and any(word.rpartition("=")[2] in sockets for word in words):
            return process
    return None
