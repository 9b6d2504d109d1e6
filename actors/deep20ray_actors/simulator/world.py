"""The simulator's world: questions, sentences, pages, and a search over the pages. Built once from ``facts``; never changed.

A page says of one subject what holds and what doesn't, in whole sentences. Players read sentences; they never look into ``Subject.facts``
of a hidden subject. A Guesser uses the facts as its own general knowledge of all subjects of a category.
"""

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from deep20ray_actors.simulator.facts import PROPERTIES, SUBJECTS

HOST = "https://evidence.example"
_LEANING = "By most accounts, "
_GENERAL_KINDS = frozenset({"thing"})
"""Categories whose subjects take an article."""
_SENTENCES_A_PAGE = 7
_SEARCHES_KEPT = 4096


@dataclass(frozen=True, slots=True)
class Property:
    """Something that may hold of a subject of a category, as a question and as sentences; ``{}`` stands for the name."""

    key: str
    question: str
    holds: str
    fails: str
    article: bool
    """Whether sentences call the subject "the" something."""

    def sentences(self, name: str) -> dict[str, float]:
        """Every sentence about this property, with how strongly it speaks for it: 1, 0.75, 0.25 or 0."""
        first, inner = (f"The {name}", f"the {name}") if self.article else (name, name)
        return {
            _LEANING + self.holds.format(inner): 0.75,
            _LEANING + self.fails.format(inner): 0.25,
            self.holds.format(first): 1.0,
            self.fails.format(first): 0.0,
        }


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject that the world knows. ``facts`` gives each property's strength; None where no source speaks of it."""

    name: str
    aliases: tuple[str, ...]
    category: str
    facts: dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the embedded evidence."""

    url: str
    title: str
    text: str


_FORMS = {
    "is": ("Is the subject {}?", "{{}} is {}.", "{{}} is not {}."),
    "was": ("Was the subject {}?", "{{}} was {}.", "{{}} was not {}."),
    "has": ("Does the subject have {}?", "{{}} has {}.", "{{}} does not have {}."),
    "can": ("Can the subject {}?", "{{}} can {}.", "{{}} cannot {}."),
    "is known for": ("Is the subject known for {}?", "{{}} is known for {}.", "{{}} is not known for {}."),
    "was trained in": ("Was the subject trained in {}?", "{{}} was trained in {}.", "{{}} was not trained in {}."),
    "is used for": ("Is the subject used for {}?", "{{}} is used for {}.", "{{}} is not used for {}."),
    "is used with": ("Is the subject used with {}?", "{{}} is used with {}.", "{{}} is not used with {}."),
    "does need": ("Does the subject need {}?", "{{}} needs {}.", "{{}} does not need {}."),
    "does give": ("Does the subject give {}?", "{{}} gives {}.", "{{}} does not give {}."),
}


def _property(category: str, key: str, text: str) -> Property:
    verb, _, rest = text.partition("|")
    question, holds, fails = _FORMS[verb]
    return Property(key, question.format(rest), holds.format(rest), fails.format(rest), category in _GENERAL_KINDS)


PROPERTIES_OF: dict[str, dict[str, Property]] = {
    category: {key: _property(category, key, text) for key, text in entries.items()} for category, entries in PROPERTIES.items()
}
QUESTIONS: dict[str, list[Property]] = defaultdict(list)
"""The properties that a question may mean: categories share some questions."""
for _properties in PROPERTIES_OF.values():
    for _each in _properties.values():
        QUESTIONS[_each.question].append(_each)

_LINE = re.compile(r"(?P<name>[^:(]+?)(?: \((?P<aliases>[^)]*)\))?: (?P<facts>.*)")


def _subject(category: str, line: str) -> Subject:
    match = _LINE.fullmatch(line)
    assert match is not None, line
    facts: dict[str, float | None] = dict.fromkeys(PROPERTIES_OF[category], 0.0)
    for word in match["facts"].split():
        key = word.strip("~?")
        assert key in facts, (line, key)
        facts[key] = None if "?" in word else 0.75 if "~" in word else 1.0
    aliases = tuple(alias.strip() for alias in (match["aliases"] or "").split(";") if alias.strip())
    return Subject(match["name"], aliases, category, facts)


SUBJECTS_OF: dict[str, tuple[Subject, ...]] = {
    category: tuple(_subject(category, line) for line in lines.strip().splitlines()) for category, lines in SUBJECTS.items()
}


def _pages(subject: Subject) -> list[Page]:
    properties = PROPERTIES_OF[subject.category]
    sentences = []
    for key, strength in subject.facts.items():
        if strength is not None:
            sentences.append(next(text for text, said in properties[key].sentences(subject.name).items() if said == strength))
    slug = re.sub(r"[^a-z0-9]+", "-", subject.name.lower()).strip("-")
    chunks = [sentences[start : start + _SENTENCES_A_PAGE] for start in range(0, len(sentences), _SENTENCES_A_PAGE)]
    return [
        Page(f"{HOST}/{slug}/{number}", f"{subject.name}, page {number}", " ".join(chunk)) for number, chunk in enumerate(chunks, start=1)
    ]


PAGES: tuple[Page, ...] = tuple(page for subjects in SUBJECTS_OF.values() for subject in subjects for page in _pages(subject))
_WORD = re.compile(r"[^\W_]+")


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


_POSTINGS: dict[str, list[int]] = defaultdict(list)
for _number, _page in enumerate(PAGES):
    for _word in sorted(set(_words(f"{_page.title} {_page.text}"))):
        _POSTINGS[_word].append(_number)


@lru_cache(_SEARCHES_KEPT)
def search(query: str, limit: int = 5) -> tuple[Page, ...]:
    """The pages that share the query's rarer words, best first. Ties go by page number."""
    scores: Counter[int] = Counter()
    for word in sorted(set(_words(query))):  # in one order: sums of floats depend on it, and ties on the sums
        pages = _POSTINGS.get(word, [])
        if 0 < len(pages) < len(PAGES) / 2:
            weight = math.log(len(PAGES) / len(pages))
            for number in pages:
                scores[number] += weight  # type: ignore[assignment]
    best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:limit]
    return tuple(PAGES[number] for number, score in best if score > 1)


def strength(question: str, names: Sequence[str], texts: Sequence[str]) -> tuple[float, int, str] | None:
    """What texts say about a question on a subject of these names: (strength, index of the text, the sentence), or None if they don't."""
    for each in QUESTIONS.get(question, ()):
        for name in names:
            for sentence, value in each.sentences(name).items():
                for index, text in enumerate(texts):
                    if _says(text, sentence):
                        return value, index, sentence
    return None


def _says(text: str, sentence: str) -> bool:
    """Whether a text holds it as a whole sentence: what is said of a clock is not said of a lock."""
    at = text.find(sentence)
    while at > 0 and text[:at].rstrip(" ")[-1:] not in ("", ".", "!", "?", "\n"):
        at = text.find(sentence, at + 1)
    return at >= 0


def chance(*parts: object) -> float:
    """A number from 0 up to 1 that depends on the parts alone."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
