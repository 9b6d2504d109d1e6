"""Where each page stands. Addresses come from signed ids alone, so a link to a turn stays good when other runs are added."""

import posixpath

from deep20ray_publisher.catalog import Entry
from deep20ray_publisher.errors import CatalogRefused
from deep20ray_publisher.records import RunRow, TrialRow
from deep20ray_publisher.text import slug


def edition_root(edition_id: str) -> str:
    """The folder of an edition."""
    return f"e/{edition_id}"


def run_root(entry: Entry) -> str:
    """The folder of a run's pages."""
    return f"{edition_root(entry.record.run.edition)}/runs/{entry.slug}"


def run_subject(entry: Entry, subject_id: str) -> str:
    """The page of a subject within a run."""
    return f"{run_root(entry)}/{_slug(subject_id)}.html"


def episode(entry: Entry, trial: TrialRow) -> str:
    """The page of one trial."""
    return f"{run_root(entry)}/{_slug(trial.subject_id)}-r{trial.round}.html"


def subject(run: RunRow, subject_id: str) -> str:
    """The page of a subject over all models of an edition."""
    return f"{edition_root(run.edition)}/subjects/{_slug(run.cohort)}/{_slug(subject_id)}.html"


def compared_subject(stem: str, subject_id: str) -> str:
    """The page of two runs on one subject, below the edition's folder."""
    return f"compare/{stem}/{_slug(subject_id)}.html"


def relative(page: str, target: str) -> str:
    """A link from one page to another that works under any root and from disk; a fragment stays."""
    path, mark, fragment = target.partition("#")
    return posixpath.relpath(path, posixpath.dirname(page) or ".") + mark + fragment


def _slug(signed_id: str) -> str:
    found = slug(signed_id)
    if found is None:
        raise CatalogRefused(f"id {signed_id!r} can't be part of an address; use letters, digits, dots and hyphens")
    return found
