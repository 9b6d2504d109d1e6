"""Durable writing: a file is there whole, under its final name, or not at all. It never follows what it finds at the temporary name."""

import os
from contextlib import suppress
from pathlib import Path

from deep20ray_artifacts.errors import WriteFailed


def write_atomic(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Writes ``data`` under a temporary name beside ``path``, syncs it, renames it, and syncs the folder.

    An existing file of that name is replaced. ``mode`` is exact, whatever the umask.

    Raises:
        WriteFailed: the folder isn't writable, the disk is full, or the like. Nothing is left behind.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        with suppress(FileNotFoundError):
            temporary.unlink()  # left by a writer that was killed
        try:
            write_new(temporary, data, mode)
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise
        sync_folder(path.parent)
    except OSError as error:
        raise WriteFailed(f"can't write {path}: {error.strerror or error}; free the disk or choose another folder") from error


def write_new(path: Path, data: bytes, mode: int) -> None:
    """Creates a file, exclusively, with exactly this mode, and syncs it. Raises OSError; a partly written file is removed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            path.unlink()
        raise


def sync_folder(folder: Path) -> None:
    """Makes a folder's entries durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
