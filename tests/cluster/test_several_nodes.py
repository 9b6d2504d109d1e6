"""Several nodes for real: a driver that joins a Ray cluster, nodes that are killed or cut off, a head that dies, tokens and keys."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from .command import Running, by_role, events, run, sent
from .nodes import Nodes, nodes
from .test_system import SLOW, check_nothing_paid_twice, check_whole, write
from .worlds import scripted

pytestmark = pytest.mark.full
ROUNDS = 24
OPEN = {"RAY_AUTH_MODE": "disabled"}


def actors(cluster: Nodes) -> list[int]:
    return [len(cluster.actors(node)) for node in range(len(cluster.raylets))]


def unused(cluster: Nodes) -> int:
    """A node that isn't the head's."""
    return len(cluster.raylets) - 1


def holding(folder: Path, secret: bytes) -> list[Path]:
    """The files below a folder that hold a secret."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(files) > 10, "there is something to look into"
    return [path for path in files if secret in path.read_bytes()]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "cut off"])
def test_a_node_lost_in_mid_run_costs_its_calls_in_flight_alone(tmp_path: Path, how: signal.Signals) -> None:
    canary = f"canary-{os.urandom(12).hex()}"
    with scripted(tmp_path / "world", SLOW) as (url, log), nodes(2) as cluster:
        out = tmp_path / "out"
        sweep = write(tmp_path, url, rounds=ROUNDS, extra='api_key = "env:D20_TEST_KEY"', head="max_trials = 4")
        words = ("run", sweep, "--out", out, "--progress", "none", "--address", cluster.address)
        with Running(*words, env={**OPEN, "D20_TEST_KEY": canary}) as driver:
            # Each role has an actor on each node.
            driver.until(lambda: by_role(log)["oracle"] >= 4 and actors(cluster) == [5, 5])
            below = [process for node in (0, 1) for process in cluster.below(node)]
            assert not [process for process in below if canary in str(_environ(process))]
            before = events(out)
            cluster.send(unused(cluster), how)
            done = driver.end()
        assert done.code == 0, done
        check_whole(out, ROUNDS)
        check_nothing_paid_twice(out, before, log)
        assert holding(cluster.home, canary.encode()) == []


def _environ(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.NoSuchProcess:
        return {}


def test_a_dead_head_ends_the_run_resumable_and_another_cluster_finishes_it(tmp_path: Path) -> None:
    with scripted(tmp_path / "world", SLOW) as (url, log):
        out = tmp_path / "out"
        with nodes(1) as cluster:
            words = ("run", write(tmp_path, url, rounds=ROUNDS), "--out", out, "--progress", "none", "--address", cluster.address)
            with Running(*words, env=OPEN) as driver:
                driver.until(lambda: by_role(log)["oracle"] >= 2)
                # The services alone: the workers live on, and so do their connections to the driver.
                cluster.gcs.kill()
                done = driver.end()
        assert done.code == 3, done
        assert "has not answered for 10 s" in done.complaint or "died" in done.complaint
        assert f"deep20ray resume {out}" in done.complaint or "resume" in done.complaint
        before = events(out)
        with nodes(1) as cluster:
            done = run("resume", out, "--progress", "none", "--address", cluster.address, env=OPEN)
        assert done.code == 0, done
        check_whole(out, ROUNDS)
        check_nothing_paid_twice(out, before, log)


def test_a_cluster_with_a_token_lets_in_who_has_it_and_preflight_names_the_host_that_lacks_a_key(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text(os.urandom(32).hex())
    shared = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
    home = tmp_path / "home"
    home.mkdir()
    with scripted(tmp_path / "world", {}) as (url, log), nodes(2, **shared) as cluster:
        missing = tmp_path / "nowhere.key"
        sweep = write(tmp_path, url, extra=f'api_key = "file:{missing}"')
        stranger = {"HOME": str(home), "RAY_AUTH_MODE": "disabled"}
        refused = run("run", sweep, "--out", tmp_path / "refused", "--address", cluster.address, env=stranger)
        assert refused.code == 3 and "token" in refused.complaint, refused
        done = run("preflight", sweep, "--address", cluster.address, env=shared)
        assert done.code == 2, done
        lines = [line for line in done.out.splitlines() if line.startswith("failed host")]
        assert len(lines) == 5 and all(f"{missing}: can't be read" in line for line in lines), "each role, on the one host there is"
        done = run("run", sweep, "--out", tmp_path / "out", "--progress", "none", "--address", cluster.address, env=shared)
        assert done.code == 3 and f"its file on {os.uname().nodename}" in done.complaint, done
        assert set(by_role(log)) <= {"search"}, "what needs no key was tried, and nothing else"
        missing.touch(mode=0o600)
        missing.write_text("key-of-everyone")
        done = run("resume", tmp_path / "out", "--progress", "none", "--address", cluster.address, env=shared)
        assert done.code == 0, done


def test_workers_run_what_the_driver_sent_and_not_what_lies_on_their_node(tmp_path: Path) -> None:
    """The driver's packages are a copy with a mark in it; the cluster's own, on its path, have none."""
    root = Path(__file__).parents[2]
    copy = tmp_path / "driver"
    for package in (root / "deep20ray", *root.glob("[a-z]*/deep20ray_*")):
        shutil.copytree(package, copy / package.name)
    mark = copy / "deep20ray_actors" / "greeting.py"
    mark.write_text(mark.read_text() + "\n# a driver of its own\n")
    with scripted(tmp_path / "world", {}) as (url, log), nodes(1) as cluster:
        words = ["run", write(tmp_path, url), "--out", tmp_path / "out", "--progress", "none", "--address", cluster.address]
        done = subprocess.run(
            [sys.executable, "-m", "deep20ray_cluster.cli", *map(str, words)],
            cwd=tmp_path,
            env={**os.environ, **OPEN, "PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done
        assert sent(log) > 0
