"""Bytes from outside as JSON values, strictly, and as text that can be stored."""

import json
from typing import Any


class NotJson(ValueError):
    """The bytes are not the JSON that was asked for."""


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object that the bytes hold.

    Raises:
        NotJson: anything else, bottomless nesting included. NaN and the infinities are read as null.
    """
    value = json_value(body)
    if not isinstance(value, dict):
        raise NotJson
    return value


def json_value(body: bytes) -> Any:
    """The JSON value that the bytes hold.

    Raises:
        NotJson: as for ``json_object``, lists and plain values apart.
    """
    try:
        return json.loads(body, parse_constant=_null)
    except (ValueError, RecursionError):
        raise NotJson from None


def storable(text: str) -> str:
    """The text with lone surrogates, which no file can hold, as U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def label(value: object) -> str | None:
    """A short name that a provider gave, such as a model's; None if it is none."""
    return storable(value)[:200] if isinstance(value, str) and value else None


def _null(_constant: str) -> None:
    """NaN and the infinities as null: some servers write them into figures beside a paid completion, which must not be bought again."""
