"""A cohort file out of a list of names, for its author to complete. What it writes reads back as the same entries."""

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from deep20ray.errors import InvalidCohort
from deep20ray_cohorts import Entry, read_text

COLUMNS = ("name", "category", "aliases", "description", "reference")
"""Of a CSV file; all but ``name`` may be missing. Aliases are separated by ``|``."""
_ID = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")
_MAX_NAMES = 10_000


def template(cohort_id: str, names: Path, category: str) -> tuple[str, int]:
    """The text of a cohort file, and how many subjects it has.

    Args:
        names: a text file with a name per line, or a ``.csv`` file with a header of ``COLUMNS``.
        category: of those that have none.

    Raises:
        InvalidCohort: a bad id, no names, an unreadable file, an unknown column; one line that says where.
    """
    if not _ID.fullmatch(cohort_id):
        raise InvalidCohort(f"cohort id {cohort_id!r}: use lower-case letters, digits, dots and hyphens, 64 at most")
    text = read_text(str(names), "name a text or a CSV file of names").removeprefix("\ufeff")
    rows = list(_csv(text, names) if names.suffix.lower() == ".csv" else _lines(text))
    if not 0 < len(rows) <= _MAX_NAMES:
        raise InvalidCohort(f"{names}: it holds {len(rows)} names; a cohort has 1 to 10,000")
    entries = [
        Entry(
            id=f"S-{number:04}",
            category=row.get("category") or category,
            canonical_name=row["name"],
            aliases=tuple(alias.strip() for alias in row.get("aliases", "").split("|") if alias.strip()),
            description=row.get("description", ""),
            reference=row.get("reference", ""),
        )
        for number, row in enumerate(rows, 1)
    ]
    return _written(cohort_id, entries), len(entries)


def _lines(text: str) -> Iterator[dict[str, str]]:
    for line in text.splitlines():
        if name := " ".join(line.split()):
            yield {"name": name}


def _csv(text: str, path: Path) -> Iterator[dict[str, str]]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    header = [column.strip().lower() for column in reader.fieldnames or ()]
    unknown = [column for column in header if column not in COLUMNS]
    if "name" not in header or unknown or len(set(header)) < len(header):
        what = f"column {unknown[0]!r} is unknown" if unknown else "it needs one column `name`"
        raise InvalidCohort(f"{path}: {what}; a header has some of {', '.join(COLUMNS)}, each once")
    reader.fieldnames = header
    try:
        for number, row in enumerate(reader, 2):
            if None in row:
                raise InvalidCohort(f"{path}: record {number}: more fields than the header has; quote what holds commas")
            clean = {column: " ".join((value or "").split()) for column, value in row.items()}
            if any(clean.values()):
                yield clean
    except csv.Error as error:
        raise InvalidCohort(f"{path}: not a CSV file ({error}); save it as CSV with commas") from None


def _written(cohort_id: str, entries: Sequence[Entry]) -> str:
    parts = [f"id = {_quoted(cohort_id)}\n"]
    for entry in entries:
        aliases = ", ".join(_quoted(alias) for alias in entry.aliases)
        parts.append(
            f"\n[[subjects]]\nid = {_quoted(entry.id)}\ncategory = {_quoted(entry.category)}\n"
            f"canonical_name = {_quoted(entry.canonical_name)}\naliases = [{aliases}]\n"
            f"description = {_quoted(entry.description)}\nreference = {_quoted(entry.reference)}\n"
        )
    return "".join(parts)


def _quoted(text: str) -> str:
    """A TOML basic string: JSON's escapes are among TOML's, and DEL is the one character that only TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
