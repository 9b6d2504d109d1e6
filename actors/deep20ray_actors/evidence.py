"""From what an Oracle cites to what is judged and published: the same items, nothing more.

Excerpts that stand in text which the tool returned or the page held (white space folded) are kept. Where the tool returned a page's
text, nothing else is. Elsewhere the Oracle's words are kept as a labelled summary, unless they could carry an answer: an answer
token, or words to a reader.
Items are ordered by (URL, digest of the excerpt) before they are numbered, so that their order says nothing either.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from deep20ray.canonical import Digest, sha256
from deep20ray_actors.messages import EvidenceItem, ResultItem
from deep20ray_actors.outcomes import Page, Source
from deep20ray_actors.replies import EVIDENCE_MAX, Cited

EXCERPT_MAX = 1000
SUMMARY_LABEL = "[summary, not a quotation] "
PASSAGES = "\n...\n"
"""Stands between passages of one page that don't follow each other; an excerpt stands in one of them alone."""

# Any case, whole words of letters. Plain "no" and "not" cost harmless summaries; a channel for answers would cost more.
_TELLING = re.compile(
    r"(?:yes|yep|yeah|yea|no|not|nope|nah|never|unknown|rather|true|false|correct|incorrect|affirmative|negative|indeed|answer(?:s|ed)?"
    r"|verdict|token|oracle|reviewer|judge|validator|guesser|you|your|please|must|should|ignore|instructions?|decide|confirm(?:s|ed)?"
    r"|agree(?:s|d)?)",
    re.IGNORECASE,
)
_GLUED = re.compile(r"rather(?:yes|no)|(?:is|was|answer|verdict|token)(?:yes|no|unknown)", re.IGNORECASE)
"""Answers written as one word with what stands before them."""
_LETTERS = re.compile(r"[^\W\d_]+")
_CASES = (re.compile("[A-Z]+|[a-z]+"), re.compile("[A-Z]?[a-z]+|[A-Z]+(?![a-z])"))
"""The words that case tells apart within one: isYESit, and isYesIt."""
_SPACED = re.compile(r"(?<![^\W_])[^\W\d_](?:[\W_]+[^\W\d_](?![^\W_]))+")
_APART = re.compile(r"[\W_]+")

_LOOK_ALIKE = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU"})
_SHAPES = str.maketrans("\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0405\u0406\u0408", "ABEKMHOPCTYXSIJ")
_SHAPES |= str.maketrans("\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04af\u04ae", "aeopcyxsijyY")
_SHAPES |= str.maketrans(
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf\u03bd", "ABEZHIKMNOPTYXov"
)
"""Cyrillic and Greek letters that look like Latin ones; a word of nothing else could be read as Latin."""


@dataclass(frozen=True, slots=True)
class Held:
    """What is held of one address: the texts that the tool or the page gave, empty ones left out."""

    number: int
    url: str
    texts: tuple[str, ...]
    whole: bool
    """Whether the tool returned the page's text, so that an excerpt must stand in it."""


def held_results(results: Iterable[ResultItem]) -> tuple[Held, ...]:
    """Of what an Oracle was shown."""
    return tuple(Held(item.number, item.url, passages(item.text), bool(item.text.strip())) for item in results)


def passages(text: str) -> tuple[str, ...]:
    """A text's passages, blank ones left out."""
    return tuple(each for each in text.split(PASSAGES) if each.strip())


def held_sources(sources: Iterable[Source], pages: Mapping[str, Page]) -> tuple[Held, ...]:
    """Of what a provider's own search returned, numbered from 1, and of the pages fetched for it by address."""
    held = []
    for number, source in enumerate(sources, start=1):
        page = pages.get(source.url)
        texts = passages(source.text) + (passages(page.text) if page else ())
        held.append(Held(number, source.url, texts, source.whole and bool(source.text.strip())))
    return tuple(held)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One kept item. ``verified``: the excerpt was found in text that is held; a summary never is."""

    number: int
    url: str
    excerpt: str
    kind: Literal["excerpt", "summary"]
    verified: bool
    text_digest: Digest
    """Of the text that the excerpt was found in, as it was kept; of no text for a summary."""

    @property
    def item(self) -> EvidenceItem:
        """As Reviewer and Judge see it: number, address, excerpt."""
        return EvidenceItem(number=self.number, url=self.url, excerpt=self.excerpt)


def fold(text: str) -> str:
    """The text with every run of white space as one space, none at its ends."""
    return " ".join(text.split())


def keep(cited: Iterable[Cited], held: Iterable[Held]) -> tuple[Evidence, ...]:
    """The evidence items of an Oracle's answer: 3 at most, 1,000 characters each at most, numbered from 1.

    Args:
        cited: what the Oracle named, in any order.
        held: what there is to check it against.
    """
    places = {place.number: place for place in held}
    kept: dict[tuple[str, str], tuple[str, Literal["excerpt", "summary"], str]] = {}
    # By number, so that two results of one address can't make the outcome depend on the order of citing.
    for item in sorted(list(cited)[:EVIDENCE_MAX], key=lambda item: -item.result):
        place = places.get(item.result)
        found = None if place is None else _checked(item.excerpt, place)
        if place is not None and found is not None:
            kept[(place.url, sha256(found[0].encode()))] = found
    ordered = sorted(kept.items())
    return tuple(
        Evidence(number, url, excerpt, kind, kind == "excerpt", sha256(text.encode()))
        for number, ((url, _), (excerpt, kind, text)) in enumerate(ordered, start=1)
    )


def _checked(excerpt: str, place: Held) -> tuple[str, Literal["excerpt", "summary"], str] | None:
    """What is kept of an excerpt, as what, and the text that it was found in."""
    words = fold(excerpt)
    if not words:
        return None
    for text in place.texts:
        if _stands_in(words, fold(text)):
            return words[:EXCERPT_MAX].rstrip(), "excerpt", text
    if place.whole or _telling(words):
        return None
    return (SUMMARY_LABEL + words)[:EXCERPT_MAX].rstrip(), "summary", ""


def _telling(words: str) -> bool:
    """Whether a summary could carry an answer, spelt in whatever way a reader would still see it."""
    # Decomposed, so that a letter with marks is that letter.
    shown = unicodedata.normalize("NFKD", words)
    shown = "".join(each for each in shown if unicodedata.category(each) not in ("Cc", "Cf", "Mn", "Me"))
    spelt = [_APART.sub("", spaced[0]) for spaced in _SPACED.finditer(shown)]
    # Two letters apart, as in U.S., are let pass unless they are a telling word; more are not.
    if any(len(word) > 2 or _mixed(word) or _TELLING.fullmatch(word) for word in spelt):
        return True
    for word in _LETTERS.findall(shown):
        if _mixed(word) or _GLUED.fullmatch(word) or any(_TELLING.fullmatch(part) for part in _parts(word)):
            return True
    return False


def _parts(word: str) -> list[str]:
    return [word, *(part for case in _CASES for part in case.findall(word))]


def _mixed(word: str) -> bool:
    """Whether letters of look-alike scripts stand in one word."""
    scripts = {unicodedata.name(each, "").partition(" ")[0] for each in word}
    return len(scripts & _LOOK_ALIKE) > 1 or (bool(scripts & _LOOK_ALIKE - {"LATIN"}) and word.translate(_SHAPES).isascii())


def _stands_in(words: str, text: str) -> bool:
    """Whether the words stand in the text as words: a fragment out of the middle of one could spell an answer that no page gives."""
    start = text.find(words)
    while start >= 0:
        end = start + len(words)
        if not _one_word(text[start - 1 : start + 1]) and not _one_word(text[end - 1 : end + 1]):
            return True
        start = text.find(words, start + 1)
    return False


def _one_word(pair: str) -> bool:
    """Whether two neighbouring characters belong to one word. Scripts without letter case write words without gaps; there none do."""
    return len(pair) == 2 and all(each.isdecimal() or each.lower() != each.upper() for each in pair)
