"""The site as files: built whole in a folder beside the target, then put in its place by a rename.

The bytes are a function of the verified runs alone: no clock, no locale, no order of folders. Nothing is written before every run
has verified and every page is rendered without a collision.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

from deep20ray.canonical import sha256
from deep20ray_artifacts.catalog import Catalog, check_follows
from deep20ray_artifacts.contract import Contract
from deep20ray_artifacts.documents import Signed, verify_bytes, verify_document
from deep20ray_artifacts.errors import CatalogBroken
from deep20ray_artifacts.keys import TrustedKey
from deep20ray_publisher import __version__, board, catalog, downloads, paths
from deep20ray_publisher.board import EditionBoards
from deep20ray_publisher.catalog import Entry
from deep20ray_publisher.errors import CatalogRefused, OutRefused
from deep20ray_publisher.pages import site_pages
from deep20ray_publisher.render import CSP, Renderer

MANIFEST = "site-manifest.json"
CATALOG = "catalog.dsse.json"
"""The catalog of runs, where a site was built with one."""
_MADE_BY = "deep20ray-publisher"

_HEADERS = f"""/*
  Content-Security-Policy: {CSP}; frame-ancestors 'none'
  X-Content-Type-Options: nosniff
  Referrer-Policy: no-referrer
  Permissions-Policy: camera=(), geolocation=(), microphone=()
  Cross-Origin-Opener-Policy: same-origin
"""


def build(
    folders: Sequence[Path],
    keys: Sequence[TrustedKey],
    out: Path,
    preview: bool,
    contracts: Sequence[Signed[Contract]] = (),
    listing: bytes | None = None,
) -> tuple[int, tuple[Entry, ...]]:
    """Verifies all runs and builds the site: of those that are official under a contract, or as a preview of all.

    Args:
        listing: the signed catalog of runs; it is published with the site, and must follow that of the site it takes the place of.

    Returns:
        The number of pages, and the runs that aren't official and were left out.

    Raises:
        VerificationError: a run that doesn't verify.
        PublicationRefused: runs that must not be published as asked.
        InputMissing, OutRefused: a folder that can't be used.
    """
    _check_out(out, folders)
    listed = None if listing is None else verify_bytes(Catalog, listing, keys)
    _check_catalog(out, listed, keys)
    entries = catalog.load(folders, keys, contracts, listed)
    shown = entries if preview else board.official(entries)
    published = {entry.record.run.run_id for entry in shown}
    files = site_files(board.edition_boards(shown, preview), preview, listing)
    _replace(out, files)
    return sum(path.endswith(".html") for path in files), tuple(entry for entry in entries if entry.record.run.run_id not in published)


def _check_catalog(out: Path, listed: Signed[Catalog] | None, keys: Sequence[TrustedKey]) -> None:
    """Whether the catalog follows the one that the site in ``out`` was built with.

    Raises:
        VerificationError: it doesn't, or there is none now.
    """
    path = out / CATALOG
    if not path.exists():
        return
    before = verify_document(Catalog, path, keys)
    if listed is None:
        raise CatalogBroken(f"{out}: the site there was built with catalog {before.predicate.id}; give that or a later one with --catalog")
    check_follows(listed, before)


def site_files(editions: tuple[EditionBoards, ...], preview: bool, listing: bytes | None = None) -> dict[str, bytes]:
    """Every file of the site by its path.

    Raises:
        CatalogRefused: two files for one path, also where only the case differs.
    """
    files: dict[str, bytes] = {}
    taken: set[str] = set()
    for path, data in _all_files(editions, preview):
        if path.casefold() in taken:
            raise CatalogRefused(
                f"two pages have the address {path}; ids of subjects or cohorts must differ by more than case or a round's suffix"
            )
        taken.add(path.casefold())
        files[path] = data
    if listing is not None:
        files[CATALOG] = listing
    digests = {path: sha256(data) for path, data in sorted(files.items())}
    manifest = {"made_by": _MADE_BY, "version": __version__, "preview": preview, "files": digests}
    files[MANIFEST] = json.dumps(manifest, indent=1, sort_keys=True).encode() + b"\n"
    return files


def _all_files(editions: tuple[EditionBoards, ...], preview: bool) -> Iterator[tuple[str, bytes]]:
    assets: dict[str, str] = {}
    for name in ("site.css", "table.js", "icon.svg"):
        data = resources.files("deep20ray_publisher").joinpath("static", name).read_bytes()
        stem, _, suffix = name.partition(".")
        assets[name] = f"assets/{stem}.{sha256(data)[:12]}.{suffix}"
        yield assets[name], data
    renderer = Renderer(assets, preview)
    for page in site_pages(editions):
        yield page.path, renderer.render(page)
    for edition in editions:
        yield from _edition_files(edition)
    yield "_headers", _HEADERS.encode()
    yield "robots.txt", (b"User-agent: *\nDisallow: /\n" if preview else b"User-agent: *\nAllow: /\n")


def _edition_files(edition: EditionBoards) -> Iterator[tuple[str, bytes]]:
    root = paths.edition_root(edition.rules.id)
    files = {
        "leaderboard.csv": downloads.leaderboard(edition),
        "trials.csv": downloads.trials(edition),
        "turns.csv": downloads.turns(edition),
    }
    for entry in edition.entries:
        # The folder is named by the run id as signed, so that a copy of it verifies as it stands.
        files |= {f"{entry.data_path}/{name}": data for name, data in entry.files.items()}
    sums = "".join(f"{sha256(data)}  {path}\n" for path, data in sorted(files.items()))
    for path, data in files.items():
        yield f"{root}/{path}", data
    yield f"{root}/SHA256SUMS", sums.encode()


def _check_out(out: Path, folders: Sequence[Path]) -> None:
    target = out.resolve()
    for folder in folders:
        source = folder.resolve()
        if target == source or source in target.parents or target in source.parents:
            raise OutRefused(f"--out {out} and the runs in {folder} lie within each other; choose a folder apart from them")
    if out.is_symlink() or (out.exists() and not _is_ours(out)):
        raise OutRefused(f"--out {out} exists and is not a site built by {_MADE_BY}; choose another folder or remove it")


def _is_ours(out: Path) -> bool:
    try:
        manifest = json.loads((out / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("made_by") == _MADE_BY


def _replace(out: Path, files: dict[str, bytes]) -> None:
    """Writes the files beside ``out`` and renames; an earlier site stands until the new one is whole."""
    temporary = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
        new, old = temporary / "new", temporary / "old"
        for path, data in files.items():
            file = new / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        if out.exists():
            out.rename(old)
        try:
            new.rename(out)
        except OSError:
            if old.exists():
                old.rename(out)
            raise
    except OSError as error:
        raise OutRefused(f"can't write the site to {out}: {error.strerror or error}; free the disk or choose another folder") from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
