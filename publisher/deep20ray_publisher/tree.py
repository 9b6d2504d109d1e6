"""Files of a site on their way to disk: written once each, counted by digest, and taken over from the site before where they are the same.

Nothing here knows a page. One tree is written by several processes at once: each returns what it wrote.
"""

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from deep20ray.canonical import sha256

MANIFEST = "site-manifest.json"


@dataclass(frozen=True)
class Earlier:
    """The site that stands there already."""

    root: Path
    files: Mapping[str, str]
    groups: Mapping[str, str]
    """By a run's folder the key of what its pages were made from."""

    @classmethod
    def at(cls, root: Path) -> "Earlier | None":
        """None where there is no site, or one whose manifest can't be used."""
        try:
            manifest: Any = json.loads((root / MANIFEST).read_bytes())
            return cls(root, dict(manifest["files"]), dict(manifest["groups"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def group(self, folder: str, key: str, others: Collection[str]) -> dict[str, str] | None:
        """The files of a run's folder, without ``others``, if they were made from the same, and stand there unchanged."""
        if self.groups.get(folder) != key:
            return None
        found = {path: digest for path, digest in self._by_folder.get(folder, {}).items() if path not in others}
        return found if all(self.holds(path, digest) for path, digest in found.items()) else None

    @cached_property
    def _by_folder(self) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {}
        for path, digest in self.files.items():
            found.setdefault(path.rpartition("/")[0], {})[path] = digest
        return found

    def holds(self, path: str, digest: str) -> bool:
        """Whether it has that file with those bytes."""
        if self.files.get(path) != digest:
            return False
        try:
            return sha256((self.root / path).read_bytes()) == digest
        except OSError:
            return False


@dataclass
class Tree:
    """A folder that a site is written to."""

    root: Path
    earlier: Earlier | None = None
    files: dict[str, str] = field(default_factory=dict)
    """Digest by path, of what this process wrote."""

    def write(self, path: str, data: bytes) -> None:
        """Writes a file, or links the earlier one if it has the same bytes."""
        digest = sha256(data)
        if self.earlier is not None and self.earlier.holds(path, digest) and self._link(path):
            pass
        else:
            self.place(path).write_bytes(data)
        self.files[path] = digest

    def add(self, path: str) -> None:
        """Counts a file that was written in place."""
        self.files[path] = sha256((self.root / path).read_bytes())

    def keep(self, path: str, digest: str) -> bool:
        """Takes over an earlier file, whose bytes were compared."""
        kept = self._link(path)
        if kept:
            self.files[path] = digest
        return kept

    def place(self, path: str) -> Path:
        """Where a file stands; its folder is made."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        return file

    def _link(self, path: str) -> bool:
        assert self.earlier is not None
        try:
            os.link(self.earlier.root / path, self.place(path))
        except OSError:
            return False
        return True
