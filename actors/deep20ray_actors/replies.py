"""Adjudicators' replies: strict JSON, else one unwrapping of a code fence around the whole text, else None (the caller re-asks).

Tokens match exactly. Private text that is too long is cut. Nothing here raises, and nothing is searched for inside prose.
"""

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from deep20ray.answers import Basis, Token, Verdict
from deep20ray_actors.addresses import host_of, plain_address
from deep20ray_actors.messages import ResultItem
from deep20ray_actors.outcomes import Source

STATEMENT_MAX = 2000
EVIDENCE_MAX = 3
QUERY_MAX = 200
"""Characters of a search query."""
_REPLY_MAX = 200_000
_REDIRECTOR = "vertexaisearch.cloud.google.com"
"""Where Gemini's search hides its pages; it gives each one's host as its title."""


@dataclass(frozen=True, slots=True)
class Cited:
    """An excerpt that the Oracle says it relied on, and the number of the result or source that it says it took it from."""

    result: int
    excerpt: str


@dataclass(frozen=True, slots=True)
class OracleAnswer:
    """An Oracle's reply. ``statement`` is private."""

    token: Token
    basis: Basis
    statement: str
    evidence: tuple[Cited, ...]


@dataclass(frozen=True, slots=True)
class ReviewedAnswer:
    """A Reviewer's or Judge's reply. ``statement`` is private."""

    token: Token
    basis: Basis
    statement: str


@dataclass(frozen=True, slots=True)
class ValidatedGuess:
    """A Validator's reply. ``statement`` is private."""

    verdict: Verdict
    statement: str


def oracle_answer(text: str, tokens: Collection[Token], results: Sequence[ResultItem]) -> OracleAnswer | None:
    """An Oracle's reply, or None.

    Args:
        tokens: the edition's.
        results: what the Oracle was shown. An excerpt from any other number is left out; at most the first three stay.
    """
    numbers = {result.number for result in results}
    return _grounded(text, tokens, "result", lambda place: place if place in numbers else None)


def researched_answer(text: str, tokens: Collection[Token], sources: Sequence[Source]) -> OracleAnswer | None:
    """The reply of an Oracle that searched with its provider's own tool, or None.

    Args:
        tokens: the edition's.
        sources: what the tool returned; an excerpt from any other address is left out. Their numbers count from 1. Where a page is
            hidden behind a redirect and its title is its host, an address counts as the one source of its host.
    """
    numbers = {plain_address(source.url): number for number, source in enumerate(sources, start=1)}
    hidden = {number: source.title for number, source in enumerate(sources, start=1) if host_of(source.url) == _REDIRECTOR}

    def number_of(url: str) -> int | None:
        host = host_of(url) or ""
        of_host = [number for number, title in hidden.items() if title and (host == title or host.endswith(f".{title}"))]
        return numbers.get(plain_address(url)) or (of_host[0] if len(of_host) == 1 else None)

    return _grounded(text, tokens, "url", number_of)


def search_queries(text: str, ceiling: int) -> tuple[str, ...] | None:
    """The search queries of a reply, or None: white space folded, blank and repeated ones left out, at most ``ceiling`` of them."""
    value = _object(text, {"queries"})
    if value is None or not isinstance(value["queries"], list) or not all(isinstance(query, str) for query in value["queries"]):
        return None
    queries = (" ".join(query[:QUERY_MAX].split()) for query in value["queries"])
    return tuple(dict.fromkeys(query for query in queries if query))[:ceiling]


def reviewed_answer(text: str, tokens: Collection[Token]) -> ReviewedAnswer | None:
    """A Reviewer's or Judge's reply, or None. ``tokens`` are the edition's."""
    return _answer(_object(text, {"answer", "basis", "statement"}), tokens)


def validated_guess(text: str) -> ValidatedGuess | None:
    """A Validator's reply, or None."""
    value = _object(text, {"statement", "verdict"})
    if value is None or not isinstance(value["statement"], str) or value["verdict"] not in list(Verdict):
        return None
    return ValidatedGuess(Verdict(value["verdict"]), value["statement"][:STATEMENT_MAX])


def _grounded(text: str, tokens: Collection[Token], where: str, number: Callable[[Any], int | None]) -> OracleAnswer | None:
    """An Oracle's reply whose evidence names its places under ``where``; ``number`` is a place's, None where there is no such."""
    value = _object(text, {"answer", "basis", "evidence", "statement"})
    answer = _answer(value, tokens)
    if value is None or answer is None or not isinstance(value["evidence"], list):
        return None
    items = [_cited(item, where) for item in value["evidence"]]
    if None in items:
        return None
    kept = tuple(Cited(found, excerpt) for place, excerpt in filter(None, items) if (found := number(place)) is not None)
    return OracleAnswer(answer.token, answer.basis, answer.statement, kept[:EVIDENCE_MAX])


def _answer(value: dict[str, Any] | None, tokens: Collection[Token]) -> ReviewedAnswer | None:
    if value is None or not isinstance(value["answer"], str) or not isinstance(value["statement"], str):
        return None
    if value["answer"] not in [token.value for token in tokens] or value["basis"] not in list(Basis):
        return None
    return ReviewedAnswer(Token(value["answer"]), Basis(value["basis"]), value["statement"][:STATEMENT_MAX])


def _cited(item: object, where: str) -> tuple[int | str, str] | None:
    if not isinstance(item, dict) or item.keys() != {"excerpt", where}:
        return None
    excerpt, place = item["excerpt"], item[where]
    if not isinstance(excerpt, str) or not isinstance(place, str if where == "url" else int) or isinstance(place, bool):
        return None
    return place, excerpt


_FENCE = re.compile(r"\s*```[A-Za-z]*[ \t]*\r?\n(.*)\n[ \t]*```\s*", re.DOTALL)


class _NotOneObject(ValueError):
    pass


def _object(text: str, keys: set[str]) -> dict[str, Any] | None:
    """One JSON object with exactly these keys."""
    if len(text) > _REPLY_MAX:
        return None
    value = _load(text)
    if value is None and (fenced := _FENCE.fullmatch(text)):
        value = _load(fenced.group(1))
    return value if value is not None and value.keys() == keys else None


def _load(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
        # A lone surrogate could be neither journalled nor sent on.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _NotOneObject
    return result


def _refuse(_constant: str) -> NoReturn:
    raise _NotOneObject
