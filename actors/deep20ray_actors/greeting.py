"""What a role actor says of itself before its first call: where it is, which code it runs, and which of its keys it can't read.

The digest is over the sources as they lie on this host's disk. Nothing here opens a socket or tells what a file holds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import deep20ray
import deep20ray_actors
import deep20ray_prompts
from deep20ray.canonical import Digest, digest_of, sha256
from deep20ray_actors import credentials
from deep20ray_actors.config import RouteConfig
from deep20ray_actors.errors import CredentialUnusable

SHIPPED: tuple[Path, ...] = tuple(Path(str(module.__file__)).parent for module in (deep20ray, deep20ray_actors, deep20ray_prompts))
"""The packages that an actor runs; a cluster's workers get them from the driver."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """An actor's first words."""

    role: str
    host: str
    """For people: the name of the host that it runs on."""
    code: Digest
    unusable: tuple[str, ...]
    """What is wrong with the keys that it should have, one line each."""


def code_digest(packages: Iterable[Path] = SHIPPED) -> Digest:
    """Digest over every file of the packages but compiled ones, by its path from the package's own folder."""
    files = {}
    for package in packages:
        for path in package.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                files[path.relative_to(package.parent).as_posix()] = sha256(path.read_bytes())
    return digest_of(files)


def unusable_keys(routes: Mapping[str, RouteConfig]) -> tuple[str, ...]:
    """Which of the routes' keys can't be used here, and why."""
    wanted = [route.credential for route in routes.values()]
    wanted += [route.search.credential for route in routes.values() if route.search is not None]
    found: dict[str, None] = {}
    for reference in wanted:
        try:
            credentials.read(reference)
        except CredentialUnusable as error:
            found[str(error)] = None
    return tuple(found)
