"""Adjudicators' replies: strict JSON, else one unwrapping of a code fence around the whole text, else None (the caller re-asks).

Tokens match exactly. Private text that is too long is cut. Nothing here raises, and nothing is searched for inside prose.
"""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from deep20ray.answers import Basis, Token, Verdict
from deep20ray_actors.messages import ResultItem

STATEMENT_MAX = 2000
EVIDENCE_MAX = 3
_REPLY_MAX = 200_000


@dataclass(frozen=True, slots=True)
class Cited:
    """An excerpt that the Oracle says it relied on, and the number of the result it says it took it from."""

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
    value = _object(text, {"answer", "basis", "evidence", "statement"})
    answer = _answer(value, tokens)
    if value is None or answer is None or not isinstance(value["evidence"], list):
        return None
    items = [_cited(item) for item in value["evidence"]]
    if None in items:
        return None
    shown = {result.number for result in results}
    kept = tuple(item for item in items if item is not None and item.result in shown)[:EVIDENCE_MAX]
    return OracleAnswer(answer.token, answer.basis, answer.statement, kept)


def reviewed_answer(text: str, tokens: Collection[Token]) -> ReviewedAnswer | None:
    """A Reviewer's or Judge's reply, or None. ``tokens`` are the edition's."""
    return _answer(_object(text, {"answer", "basis", "statement"}), tokens)


def validated_guess(text: str) -> ValidatedGuess | None:
    """A Validator's reply, or None."""
    value = _object(text, {"statement", "verdict"})
    if value is None or not isinstance(value["statement"], str) or value["verdict"] not in list(Verdict):
        return None
    return ValidatedGuess(Verdict(value["verdict"]), value["statement"][:STATEMENT_MAX])


def _answer(value: dict[str, Any] | None, tokens: Collection[Token]) -> ReviewedAnswer | None:
    if value is None or not isinstance(value["answer"], str) or not isinstance(value["statement"], str):
        return None
    if value["answer"] not in [token.value for token in tokens] or value["basis"] not in list(Basis):
        return None
    return ReviewedAnswer(Token(value["answer"]), Basis(value["basis"]), value["statement"][:STATEMENT_MAX])


def _cited(item: object) -> Cited | None:
    if not isinstance(item, dict) or item.keys() != {"excerpt", "result"}:
        return None
    excerpt, result = item["excerpt"], item["result"]
    if not isinstance(excerpt, str) or not isinstance(result, int) or isinstance(result, bool):
        return None
    return Cited(result, excerpt)


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
