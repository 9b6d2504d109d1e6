"""The action contract: the one place where a Guesser's text becomes an action or a violation. It checks and never repairs.

A reply is one JSON object, JSON white space around it allowed, with exactly the keys action, question, name and description.
Keys are compared as they stand; a duplicate key, a fence, a trailing marker or a second object makes it ``not_json``.
"""

import json
import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NoReturn

from deep20ray.canonical import canonical

QUESTION_MAX: Final = 500
NAME_MAX: Final = 200
DESCRIPTION_MAX: Final = 400

_KEYS: Final = frozenset({"action", "question", "name", "description"})
_JSON_SPACE: Final = " \t\n\r"
_MAX_TEXT: Final = 200_000
"""Longer than any reply that an output limit lets through; past it the text isn't even parsed."""


class ViolationKind(StrEnum):
    """Why a reply is no action."""

    NOT_JSON = "not_json"
    WRONG_ACTION = "wrong_action"
    OUTPUT_LIMIT = "output_limit"
    EMPTY = "empty"
    INCOMPLETE = "incomplete"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Ask:
    """A yes/no question, 1 to 500 characters."""

    question: str

    @property
    def canonical(self) -> str:
        """The form in which the Guesser sees its own action again: sorted keys, no extra space, NFC."""
        return _canonical("ASK", question=self.question)

    @property
    def degenerate(self) -> bool:
        """Whether the text holds no question: a placeholder, punctuation or a single letter."""
        return is_degenerate(self.question)


@dataclass(frozen=True, slots=True)
class Guess:
    """An identity: a name of 1 to 200 and a description of 1 to 400 characters."""

    name: str
    description: str

    @property
    def canonical(self) -> str:
        """As for Ask."""
        return _canonical("GUESS", name=self.name, description=self.description)


@dataclass(frozen=True, slots=True)
class Violation:
    """A delivered reply that is no action. It carries the kind alone: the text never enters the game."""

    kind: ViolationKind


class _NotOneObject(ValueError):
    """Text that is not exactly one JSON object."""


def parse(text: str) -> Ask | Guess | Violation:
    """Reads one Guesser reply.

    The text is what the model made visible. Finish reasons are not seen here; a truncated, refused or otherwise incomplete
    reply is ruled a violation before its text is read. Never raises.
    """
    if not text.strip():
        return Violation(ViolationKind.EMPTY)
    try:
        value = _one_object(text)
    except _NotOneObject:
        return Violation(ViolationKind.NOT_JSON)
    return _action(value) or Violation(ViolationKind.WRONG_ACTION)


_FILLER: Final = frozenset(
    {"placeholder", "filler", "dummy", "question", "text", "string", "test", "your", "here", "na", "none", "null", "nil", "tbd", "todo"}
)
_WORDLESS: Final = re.compile(r"[\W_]+")


def is_degenerate(question: str) -> bool:
    """Whether a valid ASK holds no question: placeholder words, punctuation alone, or at most one letter or digit.

    It is adjudicated and counted like any other; it is reported, and never stored for reuse.
    """
    words = _WORDLESS.sub(" ", unicodedata.normalize("NFC", question).casefold()).split()
    letters = "".join(words)
    return len(letters) <= 1 or letters in _FILLER or set(words) <= _FILLER


def _one_object(text: str) -> dict[str, Any]:
    if len(text) > _MAX_TEXT:
        raise _NotOneObject
    try:
        # raw_decode alone would accept leading Unicode spaces through str.strip; JSON allows four.
        value, end = _DECODER.raw_decode(text, len(text) - len(text.lstrip(_JSON_SPACE)))
    except (ValueError, RecursionError):
        raise _NotOneObject from None
    if text[end:].strip(_JSON_SPACE) or not isinstance(value, dict):
        raise _NotOneObject
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _NotOneObject
    return result


def _no_text(_digits: str) -> int:
    """Any integer stands for itself: none is allowed, and one of 5,000 digits must not count as bad JSON."""
    return 0


def _refuse(_constant: str) -> NoReturn:
    raise _NotOneObject


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_int=_no_text, strict=True)


def _action(value: dict[str, Any]) -> Ask | Guess | None:
    if value.keys() != _KEYS:
        return None
    question, name, description = value["question"], value["name"], value["description"]
    match value["action"]:
        case "ASK" if name is None and description is None and _text(question, QUESTION_MAX):
            return Ask(unicodedata.normalize("NFC", question))
        case "GUESS" if question is None and _text(name, NAME_MAX) and _text(description, DESCRIPTION_MAX):
            return Guess(unicodedata.normalize("NFC", name), unicodedata.normalize("NFC", description))
    return None


def _text(value: object, limit: int) -> bool:
    """A non-blank string within the limit, counted after NFC, that can be written as UTF-8 (a lone surrogate can't)."""
    if not isinstance(value, str) or not value.strip() or not len(unicodedata.normalize("NFC", value)) <= limit:
        return False
    return not any("\ud800" <= character <= "\udfff" for character in value)


@lru_cache(maxsize=1024)  # a turn's action is asked for it several times: the game, its record, its marks
def _canonical(action: str, *, question: str | None = None, name: str | None = None, description: str | None = None) -> str:
    return canonical({"action": action, "question": question, "name": name, "description": description}).decode()
