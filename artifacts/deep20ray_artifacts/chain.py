"""The journal's digest chain: each event's digest folded into the head, so that the sealed list can't be reordered or cut unseen."""

import hashlib
from collections.abc import Iterable
from typing import Final

from deep20ray.canonical import Digest, sha256

START: Final = b"deep20ray-journal-v1"


def head_of(events: Iterable[str]) -> Digest:
    """The head after these event digests (SHA-256 hex), in order; of none, the digest of ``START``.

    Raises:
        ValueError: an event that isn't hex.
    """
    head = bytes.fromhex(sha256(START))
    for event in events:
        head = hashlib.sha256(head + bytes.fromhex(event)).digest()
    return Digest(head.hex())
