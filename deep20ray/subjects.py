"""Subjects and cohorts, and what of a subject an adjudicator may trust."""

import re
import unicodedata
from dataclasses import dataclass

from deep20ray.canonical import Digest, digest_of
from deep20ray.editions import Edition
from deep20ray.errors import InvalidCohort

_ID = re.compile(r"[A-Z0-9][A-Za-z0-9.-]{0,39}")
_LABEL = re.compile(r"[a-z][a-z0-9_]{0,39}")
_ADDRESS = re.compile(r"https?://[^\s/]\S*")
_UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode categories that no name holds: control characters, half surrogates, line and paragraph separators."""
_COHORT_ID = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")


@dataclass(frozen=True, slots=True)
class TrustedSubject:
    """What Oracle, Reviewer, Judge and Validator are told about the hidden subject, and nothing else."""

    canonical_name: str
    aliases: tuple[str, ...]
    description: str

    @property
    def digest(self) -> Digest:
        """Digest of the three fields."""
        return digest_of({"canonical_name": self.canonical_name, "aliases": list(self.aliases), "description": self.description})


@dataclass(frozen=True, slots=True)
class Subject:
    """One entry of a cohort. The category label is all of it that a Guesser may see."""

    id: str
    category: str
    reference: str
    """A public page about the subject, for readers."""
    trusted: TrustedSubject


@dataclass(frozen=True, slots=True)
class Cohort:
    """A fixed subject list.

    Raises:
        InvalidCohort: an empty list; an id, label, text or reference that is malformed; an id or a name that stands twice.
    """

    id: str
    subjects: tuple[Subject, ...]

    def __post_init__(self) -> None:
        if not _COHORT_ID.fullmatch(self.id):
            raise InvalidCohort(f"cohort id {self.id!r}: use lower-case letters, digits, dots and hyphens, 64 at most")
        if not self.subjects:
            raise InvalidCohort(f"cohort {self.id}: it has no subjects")
        owners: dict[str, str] = {}
        ids: set[str] = set()
        for subject in self.subjects:
            _check(self.id, subject)
            if subject.id in ids:
                raise InvalidCohort(f"cohort {self.id}: subject id {subject.id} stands twice")
            ids.add(subject.id)
            for name in (subject.trusted.canonical_name, *subject.trusted.aliases):
                owner = owners.get(folded(name))
                if owner == subject.id:
                    raise InvalidCohort(f"cohort {self.id}, subject {owner}: {name!r} stands twice among its names; keep one of them")
                if owner is not None:
                    raise InvalidCohort(f"cohort {self.id}: {name!r} names both {owner} and {subject.id}; take it from one of them")
                owners[folded(name)] = subject.id

    @property
    def digest(self) -> Digest:
        """Digest of the id and of every subject, descriptions included."""
        return digest_of(
            {
                "id": self.id,
                "subjects": [
                    {"id": s.id, "category": s.category, "reference": s.reference, "trusted": s.trusted.digest} for s in self.subjects
                ],
            }
        )

    @property
    def identity(self) -> Digest:
        """Digest of who is asked about: ids, names, aliases and categories. A reworded description is a revision, not another cohort."""
        return digest_of(
            {
                "id": self.id,
                "subjects": [
                    {"id": s.id, "category": s.category, "name": s.trusted.canonical_name, "aliases": list(s.trusted.aliases)}
                    for s in self.subjects
                ],
            }
        )


def protocol_version(edition: Edition, cohort: Cohort) -> Digest:
    """Digest of (edition, cohort): what two runs must share to be compared."""
    return digest_of({"edition": edition.digest, "cohort": cohort.identity})


def folded(name: str) -> str:
    """Names that differ in case, spacing or Unicode form alone are the same name."""
    return " ".join(unicodedata.normalize("NFC", name).casefold().split())


def _check(cohort: str, subject: Subject) -> None:
    where = f"cohort {cohort}, subject {subject.id!r}"
    if not _ID.fullmatch(subject.id):
        raise InvalidCohort(f"{where}: an id starts with a capital letter or digit, then letters, digits, dots, hyphens; 40 at most")
    if not _LABEL.fullmatch(subject.category):
        raise InvalidCohort(f"{where}: category {subject.category!r} must be a lower-case label such as person")
    _check_texts(where, subject.trusted)
    if len(subject.reference) > 500:
        raise InvalidCohort(f"{where}: the reference is longer than 500 characters")
    if subject.reference and not _ADDRESS.fullmatch(subject.reference):
        raise InvalidCohort(f"{where}: the reference must be an address that starts with https:// or http://, or be left out")


def _check_texts(where: str, trusted: TrustedSubject) -> None:
    if not trusted.canonical_name.strip() or not trusted.description.strip():
        raise InvalidCohort(f"{where}: it needs a canonical name and a description")
    if any(not alias.strip() for alias in trusted.aliases):
        raise InvalidCohort(f"{where}: an alias is blank")
    for name in (trusted.canonical_name, *trusted.aliases):
        if len(name) > 200:
            raise InvalidCohort(f"{where}: a name is longer than 200 characters")
        if any(unicodedata.category(character) in _UNSEEN for character in name):
            raise InvalidCohort(f"{where}: the name {name!a} holds a line break or another control character")
    if len(trusted.description) > 2000:
        raise InvalidCohort(f"{where}: the description is longer than 2,000 characters")
