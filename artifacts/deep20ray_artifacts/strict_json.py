"""Strict JSON for signed or hostile bytes: UTF-8 without a mark, no duplicate key, no NaN, no half character, bounded depth.

Nothing is repaired.
"""

import json
import re
from typing import Any, NoReturn

MAX_DEPTH = 32

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_NESTING = re.compile(r"[\[\]{}]")


class NotStrictJson(ValueError):
    """Bytes that are no strict JSON; the message says why, without the bytes."""


def loads(data: bytes, max_depth: int = MAX_DEPTH) -> Any:
    """The JSON value of ``data``.

    Raises:
        NotStrictJson: anything that two parsers might read in two ways, or that nests deeper than ``max_depth``.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise NotStrictJson("it isn't UTF-8") from None
    if text.startswith("\ufeff"):
        raise NotStrictJson("it starts with a byte order mark")
    _check_depth(text, max_depth)
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except NotStrictJson:
        raise
    except UnicodeEncodeError:
        raise NotStrictJson("it holds half a character") from None
    except (ValueError, RecursionError):
        raise NotStrictJson("it isn't JSON") from None


def _check_depth(text: str, max_depth: int) -> None:
    depth = 0
    for match in _NESTING.finditer(_STRING.sub("", text)):
        depth += 1 if match[0] in "[{" else -1
        if depth > max_depth:
            raise NotStrictJson(f"it nests deeper than {max_depth}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise NotStrictJson("an object has a duplicate key")
    return result


def _refuse(constant: str) -> NoReturn:
    raise NotStrictJson(f"it holds {constant}")
