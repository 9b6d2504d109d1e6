"""A cluster that was joined, on a fake clock and without Ray: when it counts as lost, and where actors go."""

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from deep20ray.answers import Role
from deep20ray.canonical import sha256
from deep20ray.errors import UsageError
from deep20ray_cluster import joined, ray_local
from deep20ray_cluster.errors import ClusterFailed
from deep20ray_cluster.joined import MOST_WORKERS, PATIENCE, Node, Sightings, Watch
from deep20ray_cluster.pools import Pool
from tests.actors.support import route

from .command import run


def node(name: str, *, works: bool = True) -> Node:
    return Node(name, f"host-{name}", f"10.0.0.{ord(name[-1])}", works)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def seen(*nodes: Node, own: str = "a") -> tuple[Sightings, Clock]:
    clock = Clock()
    sightings = Sightings("head:1", own, clock)
    sightings.see(nodes)
    return sightings, clock


def test_a_head_that_is_silent_for_long_is_lost_and_a_short_silence_is_none() -> None:
    sightings, clock = seen(node("a"))
    clock.now = PATIENCE
    assert sightings.trouble() is None
    clock.now += 0.1
    assert "head:1 has not answered for 10 s" in str(sightings.trouble())
    sightings.see([node("a")])
    assert sightings.trouble() is None


def test_a_cluster_without_the_drivers_own_node_is_lost_and_one_without_another_is_not() -> None:
    sightings, _ = seen(node("a"), node("b"))
    sightings.see([node("a")])
    assert (sightings.trouble(), sightings.lost) == (None, 1)
    sightings.see([node("b")])
    assert "the driver's own node" in str(sightings.trouble())


def test_a_roles_actors_go_to_nodes_in_turn_and_different_roles_share_them_evenly() -> None:
    sightings, _ = seen(node("a"), node("b"), node("c"))
    assert {sightings.place("judge") for _ in range(3)} == {"a", "b", "c"}
    rest = Counter(sightings.place(role) for role in ("guesser", "oracle", "reviewer", "validator", "guesser"))
    assert max(rest.values()) - min(rest.values()) <= 1


def test_a_replacement_goes_where_one_is_missing_and_never_to_a_lost_node() -> None:
    sightings, _ = seen(node("a"), node("b"))
    first, second = sightings.place("judge"), sightings.place("judge")
    sightings.gone("judge", second)
    assert sightings.place("judge") == first, "the node may be dead, and the head not know it yet"
    sightings.gone("judge", first)
    sightings.see([node("a"), node("b")])
    assert sightings.place("judge") == second, "it lives, so it was the actor alone"
    sightings.gone("judge", second)
    sightings.see([node(first)])
    assert sightings.place("judge") == first


def test_a_node_without_cpus_takes_no_actor_unless_there_is_no_other() -> None:
    sightings, _ = seen(node("a", works=False), node("b"))
    assert (sightings.place("judge"), sightings.place("judge"), sightings.workers, sightings.hosts) == ("b", "b", 1, 1)
    sightings.see([node("a", works=False)])
    assert (sightings.place("judge"), sightings.workers) == ("a", 1)


def test_without_a_setting_there_is_an_actor_on_every_node_up_to_a_limit() -> None:
    sightings, _ = seen(*(node(f"n{letter}") for letter in "abcdefghijkl"))
    assert sightings.workers == MOST_WORKERS


def test_the_watch_keeps_asking_and_an_error_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "_PERIOD", 0.001)
    asked = threading.Semaphore(0)
    answers: Iterator[list[Node] | OSError] = iter([[node("a")], OSError("gone"), [node("a"), node("b")]])

    def ask() -> list[Node]:
        asked.release()
        answer = next(answers, [node("c")])
        if isinstance(answer, OSError):
            raise answer
        return answer

    sightings, _ = seen()
    watch = Watch(sightings, ask)
    try:
        for _ in range(5):
            assert asked.acquire(timeout=30)
        assert set(sightings.nodes) == {"c"} and sightings.lost == 2
    finally:
        watch.close()


def test_an_address_where_nobody_listens_is_refused_at_once_in_one_line() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        done = run("preflight", "--address", address)
    assert (done.code, done.out) == (3, "")
    assert f"no Ray cluster answers at {address}" in done.complaint


@pytest.mark.parametrize("address", ["nonsense", "host:port", "127.0.0.1:99999"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ClusterFailed, match="no Ray cluster answers"):
        joined._found(address)


def test_ray_client_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(UsageError, match="ray job submit"):
        joined._found("ray://head:10001")


def test_another_version_of_ray_is_said_in_one_line() -> None:
    text = """Version mismatch: The cluster was started with:
    Ray: 2.59.0
    Python: 3.12.1
This process on node 10.0.0.1 was started with:
    Ray: 2.60.0
    Python: 3.11.7
"""
    reason = joined._reason(RuntimeError(text))
    assert reason == "it runs Ray 2.59.0 and Python 3.12.1 and this driver Ray 2.60.0 and Python 3.11.7; install the same versions on both"


def test_a_missing_token_is_named() -> None:
    assert "RAY_AUTH_MODE=token" in joined._reason(ConnectionError("Failed to connect to Ray cluster at 127.0.0.1:1"))
    assert "RAY_AUTH_MODE=token" in joined._reason(RuntimeError("Token authentication is enabled but no authentication token was found"))


@pytest.mark.usefixtures("quiet_ray")
def test_an_actor_that_runs_other_code_fails_its_pool_before_its_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    own = ray.get_runtime_context().get_node_id()
    sightings = Sightings("head:1", own)
    sightings.see([Node(own, "here", "127.0.0.1", works=True)])
    monkeypatch.setattr(ray_local, "code_digest", lambda: sha256(b"another driver"))
    start = ray_local.starters({Role.JUDGE: {"r": route(Role.JUDGE)}}, sightings)

    async def opened() -> None:
        pool = Pool("judge", start[Role.JUDGE])
        pool.open()
        try:
            await pool.settled()
        finally:
            await pool.close()

    with pytest.raises(ClusterFailed, match=r"the judge worker on .+ runs other code than this driver"):
        asyncio.run(opened())
