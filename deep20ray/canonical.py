"""Canonical bytes and digests: the one way in which values become comparable.

Canonical JSON is RFC 8785. A digest is SHA-256 in lower-case hex and has a type of its own, so that it is never mistaken for text.
"""

import hashlib
from typing import Any, NewType

import rfc8785

Digest = NewType("Digest", str)
"""SHA-256, 64 lower-case hex digits."""


def canonical(value: Any) -> bytes:
    """RFC 8785 bytes of a JSON value (dict, list, tuple, str, int, float, bool, None).

    Raises:
        rfc8785.CanonicalizationError: NaN, an integer of 2**53 or more, a lone surrogate, or a type that JSON lacks.
    """
    return rfc8785.dumps(value)


def sha256(data: bytes) -> Digest:
    """The digest of bytes."""
    return Digest(hashlib.sha256(data).hexdigest())


def digest_of(value: Any) -> Digest:
    """The digest of a JSON value's canonical bytes."""
    return sha256(canonical(value))
