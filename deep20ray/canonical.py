"""Canonical bytes and digests: the one way in which values become comparable.

Canonical JSON is RFC 8785. A digest is SHA-256 in lower-case hex and has a type of its own, so that it is never mistaken for text.
"""

import hashlib
import json
from typing import Any, Final, NewType

import rfc8785

Digest = NewType("Digest", str)
"""SHA-256, 64 lower-case hex digits."""

_SAFE: Final = 2**53 - 1
"""The largest integer of RFC 8785."""
_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode


def canonical(value: Any) -> bytes:
    """RFC 8785 bytes of a JSON value (dict, list, tuple, str, int, float, bool, None).

    Raises:
        rfc8785.CanonicalizationError: NaN, an integer of 2**53 or more, a lone surrogate, or a type that JSON lacks.
    """
    # For all that is plain the standard encoder writes the same bytes, in a twentieth of the time.
    if _plain(value):
        try:
            return _encode(value).encode()
        except UnicodeEncodeError:  # a lone surrogate
            pass
    return rfc8785.dumps(value)


def text(value: str) -> str:
    """The canonical JSON of one text, for those who put an object together themselves.

    Raises:
        UnicodeEncodeError: a lone surrogate, once it is encoded.
    """
    return _encode(value)


def sha256(data: bytes) -> Digest:
    """The digest of bytes."""
    return Digest(hashlib.sha256(data).hexdigest())


def digest_of(value: Any) -> Digest:
    """The digest of a JSON value's canonical bytes."""
    return sha256(canonical(value))


def _plain(value: Any) -> bool:
    """Whether a value holds nothing that the two write differently: floats, large integers, keys whose order is one of UTF-16 units."""
    if value is None or isinstance(value, str | bool):
        return True
    if isinstance(value, int):
        return -_SAFE <= value <= _SAFE
    if isinstance(value, dict):
        for key, inner in value.items():
            if not (isinstance(key, str) and key.isascii()):
                return False
            if inner.__class__ is not str and not _plain(inner):
                return False
        return True
    if isinstance(value, list | tuple):
        return all(inner.__class__ is str or _plain(inner) for inner in value)
    return False
