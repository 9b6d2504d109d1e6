"""From what an Oracle cites to what is judged and published: the same items, nothing more.

Where the search tool returned text for a page, only excerpts that stand in it (white space folded) are kept. Where it returned
none, the Oracle's words are kept as a labelled summary, unless they could carry an answer: an answer token, or words to a reader.
Items are ordered by (URL, digest of the excerpt) before they are numbered, so that their order says nothing either.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from deep20ray.canonical import Digest, sha256
from deep20ray_actors.messages import EvidenceItem, ResultItem
from deep20ray_actors.replies import EVIDENCE_MAX, Cited

EXCERPT_MAX = 1000
SUMMARY_LABEL = "[summary, not a quotation] "

# Any case, whole words. Plain "no" costs harmless summaries; a channel for answers would cost more.
_TELLING = re.compile(
    r"\b(?:yes|no|unknown|rather|true|false|correct|incorrect|answer(?:s|ed)?|verdict|token|oracle|reviewer|judge|validator|guesser"
    r"|you|your|please|must|should|ignore|instruction(?:s)?|decide|confirm(?:s|ed)?|agree(?:s|d)?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One kept item. ``verified``: the excerpt was found in text that the tool really returned; a summary never is."""

    number: int
    url: str
    excerpt: str
    kind: Literal["excerpt", "summary"]
    verified: bool
    text_digest: Digest
    """Of the text that the tool returned for this address, as it was kept and shown."""

    @property
    def item(self) -> EvidenceItem:
        """As Reviewer and Judge see it: number, address, excerpt."""
        return EvidenceItem(number=self.number, url=self.url, excerpt=self.excerpt)


def fold(text: str) -> str:
    """The text with every run of white space as one space, none at its ends."""
    return " ".join(text.split())


def keep(cited: Iterable[Cited], results: Iterable[ResultItem]) -> tuple[Evidence, ...]:
    """The evidence items of an Oracle's answer: 3 at most, 1,000 characters each at most, numbered from 1.

    Args:
        cited: what the Oracle named, in any order.
        results: what the Oracle was shown.
    """
    shown = {result.number: result for result in results}
    kept: dict[tuple[str, str], tuple[str, Literal["excerpt", "summary"], str]] = {}
    # By number, so that two results of one address can't make the outcome depend on the order of citing.
    for item in sorted(list(cited)[:EVIDENCE_MAX], key=lambda item: -item.result):
        result = shown.get(item.result)
        found = None if result is None else _checked(item.excerpt, result)
        if result is not None and found is not None:
            excerpt, kind = found
            kept[(result.url, sha256(excerpt.encode()))] = (excerpt, kind, result.text)
    ordered = sorted(kept.items())
    return tuple(
        Evidence(number, url, excerpt, kind, kind == "excerpt", sha256(text.encode()))
        for number, ((url, _), (excerpt, kind, text)) in enumerate(ordered, start=1)
    )


def _checked(excerpt: str, result: ResultItem) -> tuple[str, Literal["excerpt", "summary"]] | None:
    words = fold(excerpt)
    if not words:
        return None
    if text := fold(result.text):
        return (words[:EXCERPT_MAX].rstrip(), "excerpt") if _stands_in(words, text) else None
    visible = "".join(each for each in unicodedata.normalize("NFKC", words) if unicodedata.category(each) != "Cf")
    if _TELLING.search(visible.replace("_", " ")):
        return None
    return (SUMMARY_LABEL + words)[:EXCERPT_MAX].rstrip(), "summary"


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
