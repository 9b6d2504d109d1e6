"""The embedded simulator as a process of the driver's: started for sweeps that name it, ended with them."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from deep20ray_cluster.errors import ClusterFailed, SweepError
from deep20ray_cluster.ray_local import Session
from deep20ray_cluster.sweep import Sweep

START_SECONDS = 60.0


@contextmanager
def simulator_for(sweep: Sweep) -> Iterator[Callable[[], str | None]]:
    """Starts the simulator if the sweep names it, and ends it at exit. Yields what waits for its address: None for a sweep without one.

    It starts while the caller does other things; only the yielded function waits.

    Raises:
        ClusterFailed: (from the yielded function) it did not start.
    """
    if not sweep.simulated:
        yield lambda: None
        return
    command = [sys.executable, "-m", "deep20ray_actors.simulator", "--port", "0", "--exit-with-stdin"]
    # Its own session: Ctrl-C is for the driver, which drains the calls that the simulator still owes.
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        yield lambda: _address(process)
    finally:
        process.kill()
        process.communicate()


def check_reach(sweep: Sweep, session: Session) -> None:
    """Refuses the embedded simulator on a cluster of several hosts.

    Raises:
        SweepError: its actors would not reach it.
    """
    if sweep.simulated and session.cluster is not None and session.cluster.hosts > 1:
        raise SweepError(
            f"the embedded simulator listens on this host alone, and the cluster at {session.cluster.address} has "
            f"{session.cluster.hosts}; give accounts and search a base_url, or leave --address out"
        )


def _address(process: "subprocess.Popen[bytes]") -> str:
    watchdog = threading.Timer(START_SECONDS, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        return str(json.loads(process.stdout.readline())["url"])
    except (ValueError, KeyError, TypeError):
        process.kill()
        raise ClusterFailed("the embedded simulator did not start; `python -m deep20ray_actors.simulator` says why") from None
    finally:
        watchdog.cancel()
