"""What is wrong with a subject list, all of it at once: for whoever writes one. Pure; it changes nothing and fetches nothing.

``errors`` make a list that can't be played fairly, or at all; ``warnings`` are what a second look may find right. Whether a description
fits its subject, no program can tell.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from deep20ray.errors import InvalidCohort
from deep20ray.subjects import Cohort, Subject, TrustedSubject, folded
from deep20ray_cohorts import Entry


class Severity(StrEnum):
    """How bad."""

    ERROR = "error"
    WARNING = "warning"


class Kind(StrEnum):
    """What is wrong."""

    MALFORMED = "malformed"
    """An id, a label or a text that no cohort may hold."""
    DOUBLED_ID = "doubled id"
    DOUBLED_SUBJECT = "doubled subject"
    """Two subjects of one canonical name."""
    COLLISION = "collision"
    """A name of one subject is an alias, too, of another: a guess of it would be both."""
    TWINS = "twins"
    """Names of two subjects that differ in case, diacritics, spaces or marks alone."""
    DOUBLED_NAME = "doubled name"
    """One name twice in one subject. Spellings that differ in more than case and spaces are names of their own to a model that judges."""
    SHOWN = "shown"
    """A name stands in what every Guesser is shown."""
    UNSEEN = "unseen"
    """A name holds characters that don't show."""
    NO_REFERENCE = "no reference"
    NO_BOUNDS = "no bounds"
    """The description doesn't say what the subject is not."""


_WARNINGS = frozenset({Kind.NO_REFERENCE, Kind.NO_BOUNDS})
_BOUNDS = re.compile(r"\b(not|nor|neither|never|without|rather than|other than|except)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault. ``subjects`` holds the ids of those it is about, in the list's order."""

    kind: Kind
    subjects: tuple[str, ...]
    detail: str

    @property
    def severity(self) -> Severity:
        """How bad."""
        return Severity.WARNING if self.kind in _WARNINGS else Severity.ERROR


def lint(cohort_id: str, entries: Sequence[Entry], shown: Mapping[str, str]) -> list[Finding]:
    """Everything that is wrong, errors first, else in the list's order.

    Args:
        shown: all texts that a Guesser is shown, whatever the subject, by what they are called.
    """
    found = [*_each(cohort_id, entries), *_names(entries), *_in_what_is_shown(entries, shown)]
    place = {entry.id: number for number, entry in reversed(list(enumerate(entries)))}
    return sorted(
        found, key=lambda finding: (finding.severity, [place.get(id_, -1) for id_ in finding.subjects], finding.kind, finding.detail)
    )


def _each(cohort_id: str, entries: Sequence[Entry]) -> Iterator[Finding]:
    seen: set[str] = set()
    for entry in entries:
        if entry.id in seen:
            yield Finding(Kind.DOUBLED_ID, (entry.id,), "its id stands twice; give each subject its own")
        seen.add(entry.id)
        trusted = TrustedSubject(entry.canonical_name, entry.aliases, entry.description)
        try:
            # Clashes within its names are findings of their own.
            alone = TrustedSubject(trusted.canonical_name, (), trusted.description)
            Cohort(cohort_id, (Subject(entry.id, entry.category, entry.reference, alone),))
            for alias in entry.aliases:
                Cohort(cohort_id, (Subject(entry.id, entry.category, "", TrustedSubject(alias, (), "An alias.")),))
        except InvalidCohort as error:
            yield Finding(Kind.MALFORMED, (entry.id,), str(error).split(": ", 1)[-1])
        for name in _all_names(entry):
            if any(unicodedata.category(character) in ("Cf", "Co", "Cn") for character in name):
                yield Finding(Kind.UNSEEN, (entry.id,), f"the name {name!a} holds characters that don't show; type it anew")
        if not entry.reference:
            yield Finding(Kind.NO_REFERENCE, (entry.id,), "it has no reference; name a public page about it, for readers")
        if entry.description.strip() and not _BOUNDS.search(entry.description):
            yield Finding(Kind.NO_BOUNDS, (entry.id,), "its description doesn't say what it is not; name what it could be taken for")


def _names(entries: Sequence[Entry]) -> Iterator[Finding]:
    """Names that clash, between subjects and within one. What is doubled needn't be told of its other names."""
    clashes = list(_clashes(entries))
    doubled = {finding.subjects for finding in clashes if finding.kind is Kind.DOUBLED_SUBJECT}
    yield from (each for each in clashes if each.subjects not in doubled or each.kind is Kind.DOUBLED_SUBJECT)


def _clashes(entries: Sequence[Entry]) -> Iterator[Finding]:
    by_name: dict[str, list[tuple[int, str, bool]]] = defaultdict(list)
    for number, entry in enumerate(entries):
        for place, name in enumerate(_all_names(entry)):
            if _bare(name):
                by_name[_bare(name)].append((number, name, place == 0))
    for uses in by_name.values():
        owners = sorted({number for number, _, _ in uses})
        for number in owners:
            own = [name for owner, name, _ in uses if owner == number]
            twice = [name for place, name in enumerate(own) if folded(name) in {folded(other) for other in own[:place]}]
            if twice:
                yield Finding(Kind.DOUBLED_NAME, (entries[number].id,), f"{twice[0]!r} stands twice among its names; keep one of them")
        if len(owners) > 1:
            yield _clash([entries[number].id for number in owners], uses)


def _clash(ids: Sequence[str], uses: Sequence[tuple[int, str, bool]]) -> Finding:
    owners: dict[str, set[int]] = defaultdict(set)
    for number, name, _ in uses:
        owners[folded(name)].add(number)
    equal = any(len(numbers) > 1 for numbers in owners.values())
    whose = ", ".join(dict.fromkeys(repr(name) for _, name, _ in uses))
    if not equal:
        return Finding(Kind.TWINS, tuple(ids), f"{whose}: they differ in case, diacritics, spaces or marks alone; a guess of one is both")
    if len({number for number, _, canonical in uses if canonical}) > 1:
        return Finding(Kind.DOUBLED_SUBJECT, tuple(ids), f"{whose} is the name of each; keep one of them")
    return Finding(Kind.COLLISION, tuple(ids), f"{whose} names each of them; take it from all but one")


def _in_what_is_shown(entries: Sequence[Entry], shown: Mapping[str, str]) -> Iterator[Finding]:
    """Names, as whole words, in what a Guesser reads before its first question."""
    texts = {what: f" {' '.join(_words(text))} " for what, text in shown.items()}
    for entry in entries:
        own = {**texts, f"its category {entry.category}": f" {' '.join(_words(entry.category))} "}
        for name in _all_names(entry):
            words = " ".join(_words(name))
            where = [what for what, text in own.items() if words and f" {words} " in text]
            if where:
                yield Finding(Kind.SHOWN, (entry.id,), f"{name!r} stands in {' and in '.join(where)}, which its Guesser reads")


def _all_names(entry: Entry) -> tuple[str, ...]:
    return (entry.canonical_name, *entry.aliases)


def _plain(text: str) -> str:
    """Without case and diacritics."""
    return "".join(character for character in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(character))


def _bare(name: str) -> str:
    """Letters and digits alone; of a name that has none, what the loader compares."""
    return "".join(character for character in _plain(name) if character.isalnum()) or folded(name)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", _plain(text))
