"""Results: sealed runs, copied to wherever pyarrow's filesystems reach, such as a bucket.

A copy is read back and compared by size and digest before it counts, and what is there already is not sent again; the statement
comes last, so that a run that has one is whole. Local files are only ever read. A place is named without a key: pyarrow finds the
keys of a cloud where that cloud's own tools do.
"""

import hashlib
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from deep20ray_cluster.errors import ResultsFailed, SweepError
from deep20ray_cluster.folder import SweepFolder

CLOUD_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
"""The variables that hold keys of a place for results."""
_LAST = ("statement.json", "attestation.dsse.json")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """Where results go."""

    uri: str
    """A URI that pyarrow's filesystems know, or a folder's path."""
    private: bool = False
    """Whether the private archives go there too."""


@contextmanager
def keys_withheld(environ: MutableMapping[str, str]) -> Iterator[None]:
    """Keeps the clouds' keys out of the environment, which workers inherit."""
    keys = {name: environ.pop(name) for name in CLOUD_KEYS if name in environ}
    try:
        yield
    finally:
        environ.update(keys)


def check_place(place: Place) -> None:
    """Looks whether a place can be reached, before anything is paid for.

    Raises:
        SweepError: no URI or path that pyarrow knows, one with a key in it, or a place that doesn't answer or refuses.
    """
    try:
        filesystem, root = _opened(place.uri)
        filesystem.get_file_info(root)
    except OSError as error:
        raise SweepError(f"results: {place.uri} can't be used ({_words(error)}); correct it, or leave results out") from None


def copy_run(place: Place, folder: SweepFolder, run_id: str) -> int:
    """Copies a sealed run; see the module. Returns how many files were sent, 0 if all of it was there.

    Raises:
        ResultsFailed: the place can't be reached or written, or holds something else than was sent.
    """
    try:
        filesystem, root = _opened(place.uri)
        sources = {f"runs/{run_id}": folder.sealed(run_id)}
        if place.private:
            sources = {f"private/{run_id}": folder.private(run_id), **sources}
        return sum(_copy(filesystem, f"{root}/{name}", source) for name, source in sources.items())
    except (OSError, SweepError) as error:  # pyarrow's own errors are OSErrors
        how = f"nothing is lost, and `deep20ray resume {folder.root}` tries again"
        raise ResultsFailed(f"run {run_id} is sealed here but could not be copied to {place.uri} ({_words(error)}); {how}") from None


def _opened(uri: str) -> tuple[Any, str]:
    if "@" in urlsplit(uri).netloc:
        raise SweepError("results: the address must hold no key; give it in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in a profile")
    try:
        filesystem, root = fs.FileSystem.from_uri(uri if "://" in uri else Path(uri).absolute().as_uri())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SweepError(f"results: {uri}: {_words(error)}; give a URI such as s3://bucket/prefix, or a folder's path") from None
    return filesystem, root.rstrip("/")


def _words(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


def _copy(filesystem: Any, target: str, source: Path) -> int:
    paths = sorted((path for path in source.iterdir() if path.is_file()), key=lambda path: (path.name in _LAST, path.name))
    filesystem.create_dir(target, recursive=True)
    there = {info.base_name for info in filesystem.get_file_info(fs.FileSelector(target))}
    sent = 0
    for path in paths:
        with path.open("rb") as file:
            wanted = _digest(file)
        copy = f"{target}/{path.name}"
        if path.name in there and _stored(filesystem, copy) == wanted:
            continue
        with path.open("rb") as file, filesystem.open_output_stream(copy) as stream:
            while chunk := file.read(_CHUNK):
                stream.write(chunk)
        if _stored(filesystem, copy) != wanted:
            raise OSError(f"{copy} does not read back as it was written")
        sent += 1
    for name in there & set(_LAST) - {path.name for path in paths}:
        # Signed since: the statement stands in the attestation now.
        filesystem.delete_file(f"{target}/{name}")
    return sent


def _stored(filesystem: Any, path: str) -> tuple[int, bytes]:
    with filesystem.open_input_stream(path) as stream:
        return _digest(stream)


def _digest(stream: Any) -> tuple[int, bytes]:
    """Size in bytes, and SHA-256."""
    size, digest = 0, hashlib.sha256()
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        digest.update(chunk)
    return size, digest.digest()
