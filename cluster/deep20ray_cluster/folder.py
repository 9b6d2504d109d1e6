"""The sweep's folder: where things lie, who holds it, and what a killed driver left running.

A lock is an operating-system lock on the file ``lock``, so it goes with its holder; inside stand the epoch and the processes
that the holder started, each as (pid, start time). Whoever takes the lock ends those that still match before its first call.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from deep20ray_cluster.errors import JournalFull, OutputError, RunLocked


@dataclass(frozen=True, slots=True)
class SweepFolder:
    """Paths of one sweep."""

    root: Path

    @property
    def sweep_file(self) -> Path:
        """The sweep file as it was when the sweep was planned."""
        return self.root / "sweep.toml"

    @property
    def cohort_file(self) -> Path:
        """The cohort as it was, where it came from a file."""
        return self.root / "cohort.toml"

    @property
    def prices_file(self) -> Path:
        """The prices file as it was, where the sweep names one."""
        return self.root / "prices.toml"

    @property
    def archive_file(self) -> Path:
        """Earlier answers that the sweep may reuse, where it reuses an archive."""
        return self.root / "archive.json"

    @property
    def plan(self) -> Path:
        """The resolved plan, canonical JSON."""
        return self.root / "plan.json"

    @property
    def journal(self) -> Path:
        """The journal, private."""
        return self.root / "journal.sqlite"

    @property
    def gates(self) -> Path:
        """What changed at the gates, a JSON object a line, private."""
        return self.root / "gates.jsonl"

    @property
    def pause(self) -> Path:
        """A request to pause, for the driver at work; see ``control``."""
        return self.root / "pause.json"

    @property
    def cancelled(self) -> Path:
        """The mark of a cancelled sweep; see ``control``."""
        return self.root / "cancelled.json"

    @property
    def lock(self) -> Path:
        """See the module."""
        return self.root / "lock"

    def sealed(self, run_id: str) -> Path:
        """A run's public folder."""
        return self.root / "runs" / run_id

    def private(self, run_id: str) -> Path:
        """A run's private archive."""
        return self.root / "private" / run_id


class Held:
    """A held folder."""

    def __init__(self, path: Path, descriptor: int, epoch: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self.epoch = epoch
        self.processes: list[tuple[int, float]] = []
        """What was recorded last."""

    def record(self, processes: list[tuple[int, float]]) -> None:
        """Writes down what this driver has started.

        Raises:
            JournalFull: it can't be written.
        """
        # One line, written before the rest is cut off: a kill in between leaves it whole.
        self.processes = processes
        line = json.dumps({"epoch": self.epoch, "processes": processes}).encode() + b"\n"
        try:
            os.pwrite(self._descriptor, line, 0)
            os.ftruncate(self._descriptor, len(line))
            os.fsync(self._descriptor)
        except OSError as error:
            raise JournalFull(f"{self._path}: can't be written ({error.strerror}); free space or fix the folder, then resume") from None


def make_folder(root: Path) -> SweepFolder:
    """A new sweep's folder.

    Raises:
        OutputError: it can't be made or written, or it already holds a sweep.
    """
    folder = SweepFolder(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        probe = root / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OutputError(f"{root}: can't be written ({error.strerror}); choose another folder with --out") from None
    check_unused(folder)
    return folder


def check_unused(folder: SweepFolder) -> None:
    """Refuses a folder that holds a sweep.

    Raises:
        OutputError: it does.
    """
    root = folder.root
    if folder.plan.exists():
        raise OutputError(f"{root}: already holds a sweep; go on with `deep20ray resume {root}` or choose another folder with --out")


def open_folder(root: Path) -> SweepFolder:
    """An existing sweep's folder.

    Raises:
        OutputError: there is no sweep in it.
    """
    folder = SweepFolder(root)
    if not folder.plan.is_file() or not folder.sweep_file.is_file():
        # A run that was stopped before its plan was written has no plan, and has paid for nothing.
        raise OutputError(f"{root}: no sweep here (plan.json and sweep.toml are missing); give the folder that `deep20ray run` wrote")
    return folder


@contextmanager
def hold(folder: SweepFolder) -> Iterator[Held]:
    """Takes the folder for one driver, after ending what an earlier one left.

    Raises:
        RunLocked: another driver is at work in it.
        OutputError: the lock can't be written.
    """
    try:
        descriptor = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise OutputError(f"{folder.lock}: can't be written ({error.strerror}); make the folder writable") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunLocked(f"{folder.root}: another driver is at work here; wait for it or stop it first") from None
        except OSError as error:
            raise OutputError(f"{folder.lock}: can't be locked ({error.strerror}); put the sweep on a local disk") from None
        epoch, left = _previous(os.pread(descriptor, 1 << 20, 0))
        end_processes(left)
        held = Held(folder.lock, descriptor, epoch + 1)
        held.record([])
        try:
            yield held
        finally:
            # An orderly end, whatever the reason: nothing is left to be ended by the next driver.
            with suppress(JournalFull):
                held.record([])
    finally:
        os.close(descriptor)


def descendants() -> list[tuple[int, float]]:
    """(pid, start time) of every process that this one has started, children of children included."""
    import psutil

    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            found.append((child.pid, child.create_time()))
        except psutil.NoSuchProcess:
            continue
    return found


def end_processes(processes: list[tuple[int, float]]) -> int:
    """Kills those that still are what they were, and waits until they are gone. Returns how many there were."""
    import psutil

    ended = []
    for pid, started in processes:
        try:
            process = psutil.Process(pid)
            # A pid is reused; a pid with its start time is not.
            if abs(process.create_time() - started) < 0.05:
                process.kill()
                ended.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    psutil.wait_procs(ended, timeout=10)
    return len(ended)


def _previous(data: bytes) -> tuple[int, list[tuple[int, float]]]:
    try:
        value = json.loads(data.partition(b"\n")[0])
        return int(value["epoch"]), [(int(pid), float(started)) for pid, started in value["processes"]]
    except (ValueError, KeyError, TypeError):
        return 0, []
