"""The site in its place: built whole in a folder beside the target, then put there by a rename.

The bytes are a function of the verified runs, the options and this package alone: no clock, no locale, no order of folders, no earlier
site. Nothing is written in the target's place before every run has verified and every page is there.
"""

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deep20ray_artifacts.catalog import Catalog, check_follows
from deep20ray_artifacts.contract import Contract
from deep20ray_artifacts.documents import Signed, verify_bytes, verify_document
from deep20ray_artifacts.errors import CatalogBroken
from deep20ray_artifacts.keys import TrustedKey
from deep20ray_publisher import board, catalog
from deep20ray_publisher.board import EditionBoards
from deep20ray_publisher.catalog import Entry
from deep20ray_publisher.errors import OutRefused
from deep20ray_publisher.making import CATALOG, MADE_BY, Making, Options
from deep20ray_publisher.tree import MANIFEST, Earlier


def build(
    folders: Sequence[Path],
    keys: Sequence[TrustedKey],
    out: Path,
    preview: bool,
    contracts: Sequence[Signed[Contract]] = (),
    listing: bytes | None = None,
    base_url: str | None = None,
    jobs: int = 0,
) -> tuple[int, tuple[Entry, ...]]:
    """Verifies all runs and builds the site: of those that are official under a contract, or as a preview of all.

    Args:
        listing: the signed catalog of runs; it is published with the site, and must follow that of the site it takes the place of.
        base_url: where the site will stand, with a slash at its end; without it nothing that needs whole addresses is written.
        jobs: processes that make pages; 0 for one per processor.

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
    pages = _replace(out, board.edition_boards(shown, preview), Options(preview, base_url, jobs, listing))
    return pages, tuple(entry for entry in entries if entry.record.run.run_id not in published)


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


def _check_out(out: Path, folders: Sequence[Path]) -> None:
    target = out.resolve()
    for folder in folders:
        source = folder.resolve()
        if target == source or source in target.parents or target in source.parents:
            raise OutRefused(f"--out {out} and the runs in {folder} lie within each other; choose a folder apart from them")
    if out.is_symlink() or (out.exists() and not _is_ours(out)):
        raise OutRefused(f"--out {out} exists and is not a site built by {MADE_BY}; choose another folder or remove it")


def _is_ours(out: Path) -> bool:
    try:
        manifest = json.loads((out / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("made_by") == MADE_BY


def _replace(out: Path, editions: tuple[EditionBoards, ...], options: Options) -> int:
    """Writes the files beside ``out`` and renames; an earlier site stands until the new one is whole."""
    temporary = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
        new, old = temporary / "new", temporary / "old"
        new.mkdir()
        pages = Making(new, editions, options, Earlier.at(out)).whole()
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
    return pages
