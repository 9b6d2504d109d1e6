"""The private archive of a run: what it holds, read only as the statement commits to it, and deleted so that the commitment stays.

``events.jsonl`` is the run's journal, one canonical JSON object a line: every call's start, raw reply, reasoning, supporting statement,
usage and trace. ``routes.json`` says how each role was called: prompt texts, model and settings, no credential. Both are readable by
their owner alone. Nothing here is ever copied into a public file.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from deep20ray.canonical import canonical, sha256
from deep20ray_artifacts import strict_json
from deep20ray_artifacts.errors import ArchiveRefused, WriteFailed
from deep20ray_artifacts.files import sync_folder, write_atomic
from deep20ray_artifacts.folder import opened
from deep20ray_artifacts.statement import PRIVATE_NAMES, PrivateFile, RunPredicate

EVENTS: Final = "events.jsonl"
ROUTES: Final = "routes.json"
PURGED: Final = "purged.json"
"""Stands in a purged archive's place: which run's it was and when it went."""
_PURGED_MAX: Final = 1 << 16


def write_private(folder: Path, files: Mapping[str, bytes]) -> tuple[PrivateFile, ...]:
    """Writes an archive's files (mode 0600, in a folder of mode 0700) and returns what is committed of them.

    Raises:
        WriteFailed: the folder can't be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
    except OSError as error:
        raise WriteFailed(f"can't write {folder}: {error.strerror}; free the disk or choose another folder") from None
    for name in PRIVATE_NAMES:
        write_atomic(folder / name, files[name], 0o600)
    return tuple(PrivateFile(name=name, bytes=len(files[name]), sha256=sha256(files[name])) for name in PRIVATE_NAMES)


def read_private(folder: Path, predicate: RunPredicate) -> dict[str, bytes] | None:
    """The files of a run's archive, each exactly as committed; None if it was purged.

    Raises:
        ArchiveRefused: a file is missing, or isn't the one that the statement commits to.
        FolderRefused: no such folder, or something in it that doesn't belong there.
    """
    with opened(folder) as archive:
        names = archive.names({*PRIVATE_NAMES, PURGED})
        if names == {PURGED}:
            return None
        data = {}
        for file in predicate.private:
            if file.name not in names:
                raise ArchiveRefused(f"{folder}: {file.name} is missing; give the whole private archive of run {predicate.run_id}")
            data[file.name] = archive.read(file.name, file.bytes, exact=file.bytes)
            if sha256(data[file.name]) != file.sha256:
                raise ArchiveRefused(f"{folder}: {file.name} isn't the file that run {predicate.run_id} commits to; restore it from a copy")
    return data


def purge_private(folder: Path, predicate: RunPredicate, at: str) -> bool:
    """Deletes a run's archive and leaves a note. Returns whether there was anything left to delete.

    Whatever stands under the archive's names goes, committed or damaged; nothing else in the folder is touched.

    Args:
        at: the time of the note, as ``statement.time_text`` writes it.

    Raises:
        FolderRefused: no such folder, or one with something else in it.
        ArchiveRefused: it was another run's, as its note says.
        WriteFailed: a file can't be deleted.
    """
    with opened(folder) as archive:
        names = archive.names({*PRIVATE_NAMES, PURGED})
        if PURGED in names:
            _check_note(folder, archive.read(PURGED, _PURGED_MAX), predicate)
    commitment = [file.model_dump() for file in predicate.private]
    if PURGED not in names:
        # First, so that a purge that is cut short is known for one.
        write_atomic(folder / PURGED, canonical({"run_id": predicate.run_id, "purged_at": at, "committed": commitment}), 0o600)
    found = sorted(names - {PURGED})
    try:
        for name in found:
            _overwrite(folder / name)
            (folder / name).unlink()
        sync_folder(folder)
    except OSError as error:
        raise WriteFailed(f"can't delete from {folder}: {error.strerror}; make it writable and purge again") from None
    return bool(found)


def _check_note(folder: Path, note: bytes, predicate: RunPredicate) -> None:
    try:
        value = strict_json.loads(note)
    except strict_json.NotStrictJson:
        value = None
    if not isinstance(value, dict) or value.get("run_id") != predicate.run_id:
        raise ArchiveRefused(f"{folder}: its {PURGED} isn't that of run {predicate.run_id}; give this run's own archive")


def _overwrite(path: Path) -> None:
    """Empties a file before it is unlinked, so that a copy of its folder made meanwhile holds none of it. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
