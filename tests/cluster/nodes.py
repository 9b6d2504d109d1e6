"""A Ray cluster of several nodes on loopback, as a process of its own: ``python -m tests.cluster.nodes COUNT``.

Prints {"address", "nodes"} as JSON, the head's node first, each with its raylet's process; adds a node for each line on its standard
input and prints it; ends with it. As silent as a local run. The nodes share this machine, so that a test can kill or stop one whole.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_USAGE_STATS_REPORT_URL": "http://127.0.0.1:9/",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "500",
    "RAY_health_check_failure_threshold": "3",
}


class Nodes:
    """A running cluster, as a test sees it."""

    def __init__(self, process: "subprocess.Popen[str]", home: Path) -> None:
        self._process = process
        self.home = home
        facts = self._line()
        self.address: str = facts["address"]
        self.raylets: list[psutil.Process] = [psutil.Process(pid) for pid in facts["raylets"]]
        """Of each node, the head's first."""
        self.gcs = psutil.Process(facts["gcs"])

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line: dict[str, Any] = json.loads(self._process.stdout.readline())
        return line

    def add(self) -> None:
        """One more node."""
        assert self._process.stdin is not None
        self._process.stdin.write("add\n")
        self._process.stdin.flush()
        self.raylets.append(psutil.Process(self._line()["raylet"]))

    def below(self, node: int) -> list[psutil.Process]:
        """A node's raylet and all that it has started: workers and agents."""
        return [self.raylets[node], *self.raylets[node].children(recursive=True)]

    def actors(self, node: int, name: str = "Actor") -> list[psutil.Process]:
        """The role actors' processes on a node."""
        found = []
        for process in self.below(node):
            with suppress(psutil.NoSuchProcess):
                if name in " ".join(process.cmdline()) and "ray::" in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def send(self, node: int, number: signal.Signals) -> None:
        """A signal to a whole node at once: the raylet alone would leave its workers serving."""
        for process in self.below(node):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def kill_head(self) -> None:
        """The head's services and its node."""
        self.gcs.kill()
        self.send(0, signal.SIGKILL)


@contextmanager
def nodes(count: int, **environ: str) -> Iterator[Nodes]:
    """A cluster of that many nodes."""
    home = Path(tempfile.mkdtemp(prefix="d20-", dir="/tmp"))
    (home / "ray_bootstrap_config.yaml").write_text("provider: {type: local}\n")
    environ = {**os.environ, **QUIET, "HOME": str(home), "RAY_AUTH_MODE": "disabled", **environ}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.cluster.nodes", str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environ,
        start_new_session=True,
    )
    try:
        yield Nodes(process, home)
    finally:
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()
        process.kill()
        process.communicate()
        shutil.rmtree(home, ignore_errors=True)


def main(count: int) -> None:
    """See the module."""
    from ray._private import ray_constants
    from ray.cluster_utils import Cluster

    ray_constants.ENABLE_RAY_CLUSTER = False
    shared: dict[str, Any] = {
        "num_cpus": 2,
        "object_store_memory": 100 * 1024 * 1024,
        "node_ip_address": "127.0.0.1",
        "include_dashboard": False,
    }
    cluster = Cluster(initialize_head=True, head_node_args={**shared, "temp_dir": str(Path.home() / "ray")})
    for _ in range(count - 1):
        cluster.add_node(**shared)
    assert cluster.head_node is not None
    everyone = [cluster.head_node, *cluster.worker_nodes]
    gcs = cluster.head_node.all_processes[ray_constants.PROCESS_TYPE_GCS_SERVER][0].process.pid
    print(json.dumps({"address": cluster.address, "gcs": gcs, "raylets": [_raylet(node) for node in everyone]}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"raylet": _raylet(cluster.add_node(**shared))}), flush=True)


def _raylet(node: Any) -> int:
    pid: int = node.all_processes["raylet"][0].process.pid
    return pid


if __name__ == "__main__":
    main(int(sys.argv[1]))
