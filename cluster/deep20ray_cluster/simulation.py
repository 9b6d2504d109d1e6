"""The embedded simulator as a process of the driver's: started for sweeps that name it, ended with them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from deep20ray_cluster.errors import ClusterFailed
from deep20ray_cluster.sweep import Sweep


@contextmanager
def simulator_for(sweep: Sweep) -> Iterator[str | None]:
    """The simulator's address while it runs, or None for a sweep that needs none.

    Raises:
        ClusterFailed: it did not start.
    """
    if not sweep.simulated:
        yield None
        return
    command = [sys.executable, "-m", "deep20ray_actors.simulator", "--port", "0", "--exit-with-stdin"]
    # Its own session: Ctrl-C is for the driver, which drains the calls that the simulator still owes.
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            url = str(json.loads(line)["url"])
        except (ValueError, KeyError, TypeError):
            raise ClusterFailed(
                f"the embedded simulator did not start (exit {process.wait(10)}); `python -m deep20ray_actors.simulator` says why"
            ) from None
        yield url
    finally:
        process.kill()
        process.communicate()
