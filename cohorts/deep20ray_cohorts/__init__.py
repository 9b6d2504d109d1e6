"""The fixed subject lists, and the reading of any other list of the same shape.

``index.json`` pins every revision of the built-in lists by digest, oldest first, and only ever grows. A list whose digest is not its
newest pinned one is refused at load.
"""

import json
import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from deep20ray.errors import InvalidCohort
from deep20ray.subjects import Cohort, Subject, TrustedSubject

_DATA = resources.files(__name__).joinpath("data")
_MAX_BYTES = 4 * 1024 * 1024


class Entry(BaseModel):
    """One subject as a file has it: its shape is right, what it says may not be."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
    id: str
    category: str
    canonical_name: str
    aliases: tuple[str, ...] = ()
    description: str
    reference: str = ""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
    id: str
    subjects: Annotated[tuple[Entry, ...], Field(min_length=1, max_length=10_000)]


def names() -> tuple[str, ...]:
    """The built-in cohorts."""
    return tuple(sorted({entry["cohort"] for entry in index()}))


@cache
def index() -> tuple[dict[str, str], ...]:
    """Every pinned revision of the built-in cohorts, oldest first: {cohort, sha256}."""
    return tuple(json.loads(resources.files(__name__).joinpath("index.json").read_text(encoding="utf-8")))


def load(name_or_path: str) -> Cohort:
    """A built-in cohort by its name, or a cohort file by its path.

    Raises:
        InvalidCohort: no such cohort; unreadable, not TOML, an unknown key, a bad or doubled entry; one line that says where.
    """
    if name_or_path in names():
        return _built_in(name_or_path)
    return parse(_cohort_text(name_or_path), name_or_path)


def parse(text: str, where: str) -> Cohort:
    """A cohort out of a file's text; ``where`` names it in errors.

    Raises:
        InvalidCohort: as for ``load``.
    """
    id_, entries = _entries(text, where)
    try:
        return Cohort(id_, tuple(_subject(entry) for entry in entries))
    except InvalidCohort as error:
        raise InvalidCohort(f"{where}: {error}") from None


def read_entries(name_or_path: str) -> tuple[str, tuple[Entry, ...]]:
    """A list's id and its entries as they stand, for those who look for faults in them: blank, doubled and clashing ones included.

    Raises:
        InvalidCohort: no such cohort; unreadable, not TOML, or of another shape.
    """
    text = _DATA.joinpath(f"{name_or_path}.toml").read_text(encoding="utf-8") if name_or_path in names() else _cohort_text(name_or_path)
    return _entries(text, name_or_path)


def _subject(entry: Entry) -> Subject:
    return Subject(entry.id, entry.category, entry.reference, TrustedSubject(entry.canonical_name, entry.aliases, entry.description))


def _entries(text: str, where: str) -> tuple[str, tuple[Entry, ...]]:
    try:
        file = _File.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidCohort(f"{where}: not valid TOML: {error}") from None
    except RecursionError:
        raise InvalidCohort(f"{where}: nested too deep; a cohort is an id and a list of subjects") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        message = "unknown key" if first["type"] == "extra_forbidden" else first["msg"]
        raise InvalidCohort(f"{where}: {place}: {message}") from None
    return file.id, file.subjects


def read_text(path: str, wanted: str) -> str:
    """The text of a file that somebody wrote; ``wanted`` says in errors what to name instead.

    Raises:
        InvalidCohort: not a file, too large, unreadable, or not UTF-8.
    """
    if "\0" in path:
        raise InvalidCohort(f"{path!a}: no file can have this name; {wanted}")
    file = Path(path)
    try:
        # A device or a pipe would be read without end.
        if file.exists() and not file.is_file():
            raise InvalidCohort(f"{path}: not a file; {wanted}")
        if file.stat().st_size > _MAX_BYTES:
            raise InvalidCohort(f"{path}: larger than 4 MiB; it holds a list of subjects and nothing else")
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidCohort(f"{path}: can't be read ({error.strerror}); {wanted}") from None
    except UnicodeDecodeError:
        raise InvalidCohort(f"{path}: not UTF-8 text; save it as UTF-8") from None


def _cohort_text(path: str) -> str:
    return read_text(path, f"name a built-in cohort ({', '.join(names())}) or a cohort file")


@cache
def _built_in(name: str) -> Cohort:
    cohort = parse(_DATA.joinpath(f"{name}.toml").read_text(encoding="utf-8"), name)
    pinned = [entry["sha256"] for entry in index() if entry["cohort"] == name][-1]
    if cohort.digest != pinned:
        raise InvalidCohort(f"cohort {name}: its text has changed; restore it, or pin a new revision in index.json")
    return cohort
