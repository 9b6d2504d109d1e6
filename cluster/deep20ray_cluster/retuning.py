"""Limits that change while a sweep is played: the sweep's own file, read again when it was edited, and a record of what changed.

Only what gates are told is taken from an edited file: whatever else changed in it is the next resume's business. A file that doesn't
parse changes nothing. The record is for people and never read back; where it can't be written, play goes on.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from deep20ray_cluster.errors import SweepError
from deep20ray_cluster.limits import Change
from deep20ray_cluster.sweep import Sweep, read_sweep


def retuner(path: Path, say: Callable[[str], None]) -> Callable[[], Sweep | None]:
    """Gives the settings of a sweep file each time it was edited since the last time; None if it wasn't, or if it is no sweep file."""
    seen = _stamp(path)

    def retuned() -> Sweep | None:
        nonlocal seen
        if (stamp := _stamp(path)) in (seen, None):
            return None
        seen = stamp
        try:
            return read_sweep(path)[0]
        except SweepError as error:
            say(f"{error}; the limits stay as they were")
            return None

    return retuned


def recorder(path: Path) -> Callable[[Change], None]:
    """Appends changes to a file, one JSON object a line."""

    def record(change: Change) -> None:
        line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "gate": change.gate, "what": change.what, **change.facts}
        with suppress(OSError), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    return record


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size
