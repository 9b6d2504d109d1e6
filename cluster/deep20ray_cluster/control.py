"""Pause and cancel: what another shell asks of a sweep, as a small file in its folder that a driver at work looks for every second.

A request to pause is for the driver that is at work; whoever takes the folder next drops it. A cancelled sweep stays so until a resume
takes the mark away. Files are written whole, for their owner alone, and only believed if nobody else can have written them. The driver
may be in another process of the same host; that of another host, on a shared file system, is not looked for.
"""

import fcntl
import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from deep20ray.errors import UsageError
from deep20ray_artifacts.errors import WriteFailed
from deep20ray_artifacts.files import write_atomic
from deep20ray_cluster.errors import OutputError, SweepCancelled
from deep20ray_cluster.folder import SweepFolder, open_folder

Verb = Literal["pause", "cancel"]

PAUSED = "paused"
CANCELLED = "cancelled"
"""Why a drive stopped, as it says."""

_LONGEST = 4096


def ask(root: Path, verb: Verb, now: datetime, *, dry_run: bool = False) -> str:
    """Asks a sweep to pause or cancels it. Returns what was done, or would be, in a line.

    Raises:
        UsageError: there is no sweep, nothing to stop, or the folder can't be written.
    """
    folder = open_folder(root)
    if _finished(folder):
        raise UsageError(f"{root}: already finished, there is nothing to {verb}")
    cancelled, live = folder.cancelled.exists(), at_work(folder)
    if verb == "cancel":
        done = "already cancelled" if cancelled else "cancelled"
        ends = "its driver ends once the calls in flight are in the journal" if live else "no driver is at work"
        then = f"{ends}; `deep20ray resume {root} --again` takes it up all the same"
    elif not live:
        how = f"`deep20ray resume {root}{' --again' if cancelled else ''}` goes on"
        raise UsageError(f"{root}: no driver of this host is at work here, there is nothing to pause; {how}")
    else:
        done = "already asked to pause" if folder.pause.exists() else "asked to pause"
        then = f"its driver ends once the calls in flight are in the journal; `deep20ray resume {root}` goes on"
    path = folder.cancelled if verb == "cancel" else folder.pause
    if not dry_run and not path.exists():
        _write(path, verb, now)
    return f"{'would be ' if dry_run and not done.startswith('already') else ''}{done}: {then}"


def at_work(folder: SweepFolder) -> bool:
    """Whether a driver of this host holds the folder."""
    try:
        descriptor = os.open(folder.lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise OutputError(f"{folder.lock}: can't be read ({error.strerror}); make the folder readable") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        raise OutputError(f"{folder.lock}: can't be locked ({error.strerror}); put the sweep on a local disk") from None
    finally:
        os.close(descriptor)
    return False


def taken_up(folder: SweepFolder, *, again: bool) -> None:
    """To be called by who holds the folder, before it plays: drops an old request to pause, and heeds the mark of a cancelled sweep.

    Raises:
        SweepCancelled: it is, and nobody said ``again``.
        OutputError: the folder can't be written.
    """
    try:
        folder.pause.unlink(missing_ok=True)
        # Whatever lies there counts: when in doubt, nothing is spent.
        if not os.path.lexists(folder.cancelled):
            return
        if not again:
            how = f"`deep20ray resume {folder.root} --again` takes it up all the same"
            raise SweepCancelled(f"{folder.root}: the sweep was cancelled; {how}")
        folder.cancelled.unlink()
    except OSError as error:
        raise OutputError(f"{error.filename}: can't be removed ({error.strerror}); make the folder writable") from None


def asked_of(folder: SweepFolder, say: Callable[[str], None]) -> Callable[[], str | None]:
    """Tells a driver why it should stop, if anybody asked for it. A file that can't be believed is said once and changes nothing."""
    doubted: set[Path] = set()

    def asked() -> str | None:
        for path, verb, reason in ((folder.cancelled, "cancel", CANCELLED), (folder.pause, "pause", PAUSED)):
            match _believed(path, verb):
                case True:
                    return reason
                case False if path not in doubted:
                    doubted.add(path)
                    say(f"{path}: not written by this user's `deep20ray {verb}`, so it changes nothing; remove it")
        return None

    return asked


def _believed(path: Path, verb: str) -> bool | None:
    """Whether the file is a request of this user's own; None if there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:
        return False
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
            return False
        data = json.loads(os.read(descriptor, _LONGEST))
        return isinstance(data, dict) and data.get("verb") == verb
    except (OSError, ValueError, RecursionError):
        return False
    finally:
        os.close(descriptor)


def _write(path: Path, verb: Verb, now: datetime) -> None:
    line = {"verb": verb, "at": now.astimezone(UTC).isoformat(timespec="seconds")}
    try:
        write_atomic(path, json.dumps(line).encode() + b"\n", 0o600)
    except WriteFailed as error:
        raise OutputError(str(error)) from None


def _finished(folder: SweepFolder) -> bool:
    """Whether every run of the plan is sealed."""
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        runs = json.loads(folder.plan.read_bytes())["runs"]
        return all(folder.sealed(run["run_id"]).is_dir() for run in runs)
    raise OutputError(f"{folder.plan}: not a plan; restore it from a copy")
