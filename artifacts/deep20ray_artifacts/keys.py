"""Public Ed25519 keys: how they are read, named and refused. It never touches a private key.

A key's identity is the SHA-256 of its SubjectPublicKeyInfo, computed here and never taken from a file. Points of small order are
refused: with such a key anyone can make a signature of any message.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from deep20ray.canonical import Digest, sha256
from deep20ray_artifacts.errors import KeyRefused

THROWAWAY_LINE: Final = "# throwaway: accepted for simulated runs only"
"""Stands above the key in its file. Verifiers and signers refuse such a key for anything but a simulated run."""

_MAX_BYTES: Final = 16_384
_P: Final = 2**255 - 19
_SMALL_ORDER_Y: Final = frozenset(
    {
        0,
        1,
        _P - 1,
        int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"),
        int.from_bytes(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little"),
    }
)
"""The y coordinates of all eight points of small order; each sign of x is one of them or no point."""


_SKEW: Final = timedelta(minutes=10)
"""How far a signer's clock may be ahead."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a reader's trust file says of a key. A time is what a statement says of itself."""

    not_before: datetime
    not_after: datetime
    now: datetime | None
    editions: frozenset[str]
    uses: frozenset[str]
    minimum_artifact_schema: int
    revoked: str | None
    """Why, if it is."""
    accepted: frozenset[str]
    """Digests of the statements that still count after its revocation."""

    def why_not(self, use: str, statement_sha256: str, at: datetime | None) -> str | None:
        """Why a key of these terms may not have signed a statement of ``use`` at that time; None if it may."""
        if self.revoked is not None and statement_sha256 not in self.accepted:
            return f"is revoked ({self.revoked}), and this statement isn't among those that still count"
        if use not in self.uses:
            return f"may sign {' and '.join(sorted(self.uses))}, not {use}"
        if at is not None and at < self.not_before:
            return "is not valid yet at the time that the statement bears"
        if at is not None and at > self.not_after:
            return "had expired at the time that the statement bears"
        if at is not None and self.now is not None and at > self.now + _SKEW:
            return "signed a time that is still to come"
        return None


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A public key that a reader trusts. Make one with ``trusted_key`` or ``load_public``, which refuse weak keys."""

    keyid: Digest
    public: Ed25519PublicKey
    throwaway: bool = False
    terms: Terms | None = None
    """None for a bare public key, which is trusted without bounds."""


def trusted_key(public: Ed25519PublicKey, throwaway: bool = False) -> TrustedKey:
    """The key under its computed identity.

    Raises:
        KeyRefused: a point of small order, or one that isn't encoded canonically.
    """
    y = int.from_bytes(public.public_bytes(Encoding.Raw, PublicFormat.Raw), "little") & (2**255 - 1)
    if y >= _P or y in _SMALL_ORDER_Y:
        raise KeyRefused("a public key of small order proves nothing: anyone can sign for it; make a new key")
    return TrustedKey(keyid(public), public, throwaway)


def keyid(public: Ed25519PublicKey) -> Digest:
    """SHA-256 of the key's SubjectPublicKeyInfo in DER."""
    return sha256(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def load_public(path: Path) -> TrustedKey:
    """Reads ``NAME.pub``: comment lines that start with ``#``, then one PEM public key.

    Raises:
        KeyRefused: no such file, another form, another algorithm, or a weak key.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise KeyRefused(f"can't read the public key {path}: {error.strerror}") from None
    der, throwaway = pem_block(data, ("PUBLIC KEY",), path)
    try:
        key = load_der_public_key(der)
    except (ValueError, UnsupportedAlgorithm):
        raise KeyRefused(f"{path}: not a public key; give the .pub file that 'keys new' wrote") from None
    if not isinstance(key, Ed25519PublicKey):
        raise KeyRefused(f"{path}: not an Ed25519 key; make one with 'keys new'")
    try:
        return trusted_key(key, throwaway)
    except KeyRefused as error:
        raise KeyRefused(f"{path}: {error}") from None


def pem_block(data: bytes, labels: Sequence[str], path: Path) -> tuple[bytes, bool]:
    """The DER bytes of a key file's one PEM block, and whether the throwaway line stands above it.

    Raises:
        KeyRefused: too large, not text, other lines than comments and one block of such a label.
    """
    body = _PEM.fullmatch(data.decode("ascii", errors="replace")) if len(data) <= _MAX_BYTES else None
    if body is None or body["label"] not in labels or body["end"] != body["label"]:
        raise KeyRefused(f"{path}: not one PEM block '{labels[0]}' below comment lines; give a file that 'keys new' wrote")
    try:
        der = base64.b64decode("".join(body["base64"].split()), validate=True)
    except (binascii.Error, ValueError):
        raise KeyRefused(f"{path}: its base64 is damaged") from None
    return der, THROWAWAY_LINE in body["comments"].splitlines()


_PEM: Final = re.compile(
    r"(?P<comments>(?:#[^\n]*\n)*)-----BEGIN (?P<label>[A-Z ]+)-----\n(?P<base64>[A-Za-z0-9+/=\n]+)\n-----END (?P<end>[A-Z ]+)-----\n?"
)
