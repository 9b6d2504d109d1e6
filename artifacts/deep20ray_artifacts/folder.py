"""A run folder as hostile input: opened without following links, listed against a closed list, every file read once.

It holds the folder by descriptor, so that what is listed is what is read even if paths change meanwhile.
"""

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from deep20ray_artifacts.errors import FolderRefused


class Folder:
    """An opened run folder. Use ``opened``."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self.name = name
        """The folder's own name, for messages and for the comparison with the signed run id."""

    def names(self, allowed: Collection[str]) -> frozenset[str]:
        """The names of all entries, every one of them a plain file of the closed list ``allowed``.

        Raises:
            FolderRefused: another name; a link, a second link to the same file, a folder, pipe or device.
        """
        found: set[str] = set()
        with os.scandir(self._descriptor) as entries:
            for entry in entries:
                if entry.name not in allowed:
                    raise FolderRefused(f"{self.name}: {entry.name!r} doesn't belong to a run; get the run again from its source")
                self._check_plain(entry.name, os.stat(entry.name, dir_fd=self._descriptor, follow_symlinks=False))
                found.add(entry.name)
        return frozenset(found)

    def read(self, name: str, limit: int, exact: int | None = None) -> bytes:
        """All bytes of a plain file, read once.

        Args:
            limit: the most bytes that are accepted.
            exact: the size that the file must have, where it is known.

        Raises:
            FolderRefused: missing, no plain file, larger than ``limit``, of another size than ``exact``.
        """
        try:
            # NONBLOCK, so that a pipe put in the file's place can't hold the verifier up.
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._descriptor)
        except OSError as error:
            raise FolderRefused(f"{self.name}: can't read {name}: {error.strerror}") from None
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            self._check_plain(name, status)
            if exact is not None and status.st_size != exact:
                raise FolderRefused(f"{self.name}: {name} has {status.st_size} bytes, not the {exact} stated; get the run again")
            if status.st_size > limit:
                raise FolderRefused(f"{self.name}: {name} has {status.st_size} bytes, more than the {limit} that are read")
            data = file.read(status.st_size + 1)
        if len(data) != status.st_size:
            raise FolderRefused(f"{self.name}: {name} changed while it was read; try again when nothing writes there")
        return data

    def _check_plain(self, name: str, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise FolderRefused(f"{self.name}: {name} is no regular file; copy the run's files, not links to them")
        if status.st_nlink != 1:
            raise FolderRefused(
                f"{self.name}: {name} has {status.st_nlink} hard links, so that it can change from elsewhere; copy the file"
            )


@contextmanager
def opened(path: Path) -> Iterator[Folder]:
    """Opens a run folder; a link to a folder isn't one.

    Raises:
        FolderRefused: no such folder, or a link.
    """
    absolute = path.absolute()  # not resolve(): it would follow the link that is to be refused
    try:
        descriptor = os.open(absolute, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise FolderRefused(f"{path}: not a run folder: {error.strerror}; give the path of the folder itself") from None
    try:
        yield Folder(descriptor, absolute.name)
    finally:
        os.close(descriptor)
