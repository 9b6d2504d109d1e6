"""The trust file: which keys a reader believes, from when to when, for which editions and kinds of document, and which no more.

It is the reader's own, kept beside the publisher's configuration and never looked for in a folder of runs. Every change makes a new
version. A revoked key counts for nothing but the statements pinned in its revocation: whoever has the key can write any time into a
statement, so no date can save an old one. It never touches a private key.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pydantic import Field, StringConstraints, ValidationError, model_validator

from deep20ray.canonical import canonical
from deep20ray.editions import EDITIONS
from deep20ray_artifacts import strict_json
from deep20ray_artifacts.documents import Closed, first_complaint, read_document
from deep20ray_artifacts.errors import DocumentRefused, KeyRefused, TrustRefused
from deep20ray_artifacts.keys import Terms, TrustedKey, load_public, trusted_key
from deep20ray_artifacts.statement import Name, Sha256, Time, time_of

Use = Literal["runs", "documents", "catalog"]
"""What a key may sign: runs; release contracts and redactions; the catalog of runs."""
USES: Final[tuple[Use, ...]] = ("runs", "documents", "catalog")
_LIST = Field(strict=False)


class KeyEntry(Closed):
    """A key and what it may sign."""

    name: Name
    keyid: Sha256
    public: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    """The 32 bytes of the Ed25519 key, in hex."""
    not_before: Time
    not_after: Time
    editions: Annotated[tuple[Name, ...], _LIST]
    """Whose runs it may sign; none for every edition."""
    uses: Annotated[tuple[Use, ...], _LIST, Field(min_length=1)]
    throwaway: bool

    @model_validator(mode="after")
    def _sound(self) -> Self:
        try:
            key = trusted_key(Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.public)))
        except KeyRefused as error:
            raise ValueError(f"key {self.name}: {error}") from None
        if key.keyid != self.keyid:
            raise ValueError(f"key {self.name}: its keyid isn't that of its public key, which is {key.keyid}")
        if time_of(self.not_before) > time_of(self.not_after):
            raise ValueError(f"key {self.name}: it ends before it begins")
        unknown = set(self.editions) - set(EDITIONS)
        if unknown or len(set(self.editions)) != len(self.editions) or len(set(self.uses)) != len(self.uses):
            raise ValueError(f"key {self.name}: its editions or uses are unknown or stand twice")
        return self


class Revocation(Closed):
    """A key that counts no more, but for the statements that it signed before, each pinned by its digest."""

    keyid: Sha256
    at: Time
    reason: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    accept_statements: Annotated[tuple[Sha256, ...], _LIST]


class TrustFile(Closed):
    """The whole file."""

    trust_schema: Literal["1"]
    version: Annotated[int, Field(ge=1, lt=2**53)]
    minimum_artifact_schema: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,5}$")]
    keys: Annotated[tuple[KeyEntry, ...], _LIST]
    revoked: Annotated[tuple[Revocation, ...], _LIST]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for what, ids in (("key", [key.keyid for key in self.keys]), ("revocation", [each.keyid for each in self.revoked])):
            if len(set(ids)) != len(ids):
                raise ValueError(f"a {what} stands twice")
        if not {each.keyid for each in self.revoked} <= {key.keyid for key in self.keys}:
            raise ValueError("a key is revoked that isn't listed; revoked keys stay in the file")
        return self

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Out of a file's bytes.

        Raises:
            TrustRefused: not strict JSON, or no trust file.
        """
        try:
            return cls.model_validate(strict_json.loads(data))
        except strict_json.NotStrictJson as error:
            raise TrustRefused(f"no trust file: {error}; restore it from your own copy") from None
        except ValidationError as error:
            raise TrustRefused(f"no trust file: {first_complaint(error)}; correct it, or restore it from your own copy") from None

    def data(self) -> bytes:
        """As it is written: canonical, and a line feed."""
        return canonical(self.model_dump(mode="json")) + b"\n"

    def added(self, key: TrustedKey, name: str, not_before: str, not_after: str, editions: Sequence[str], uses: Sequence[str]) -> Self:
        """The next version, with one more key.

        Raises:
            TrustRefused: the key is listed already, or doesn't fit.
        """
        raw = key.public.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
        entry: dict[str, object] = {"name": name, "keyid": key.keyid, "public": raw, "not_before": not_before, "not_after": not_after}
        entry |= {"editions": list(editions), "uses": list(uses), "throwaway": key.throwaway}
        return self._next(keys=[*(each.model_dump() for each in self.keys), entry])

    def revoking(self, keyid: str, at: str, reason: str, accept: Sequence[str]) -> Self:
        """The next version, with one key revoked.

        Raises:
            TrustRefused: it isn't listed, or revoked already.
        """
        more = {"keyid": keyid, "at": at, "reason": reason, "accept_statements": list(accept)}
        return self._next(revoked=[*(each.model_dump() for each in self.revoked), more])

    def _next(self, **changes: object) -> Self:
        try:
            return type(self).model_validate({**self.model_dump(), **changes, "version": self.version + 1})
        except ValidationError as error:
            raise TrustRefused(f"the trust file can't be changed so: {first_complaint(error)}") from None

    def trusted(self, now: datetime | None) -> tuple[TrustedKey, ...]:
        """The keys, each under its terms. ``now`` bounds the times that statements may bear; None for no bound."""
        revoked = {each.keyid: each for each in self.revoked}
        return tuple(self._key(entry, revoked.get(entry.keyid), now) for entry in self.keys)

    def _key(self, entry: KeyEntry, revocation: Revocation | None, now: datetime | None) -> TrustedKey:
        terms = Terms(
            not_before=time_of(entry.not_before),
            not_after=time_of(entry.not_after),
            now=now,
            editions=frozenset(entry.editions or EDITIONS),
            uses=frozenset(entry.uses),
            minimum_artifact_schema=int(self.minimum_artifact_schema),
            revoked=None if revocation is None else revocation.reason,
            accepted=frozenset(() if revocation is None else revocation.accept_statements),
        )
        key = trusted_key(Ed25519PublicKey.from_public_bytes(bytes.fromhex(entry.public)), entry.throwaway)
        return TrustedKey(key.keyid, key.public, key.throwaway, terms)


def empty() -> TrustFile:
    """Version 1: no key yet."""
    return TrustFile(trust_schema="1", version=1, minimum_artifact_schema="1", keys=(), revoked=())


def read_trust(path: Path) -> TrustFile:
    """A trust file.

    Raises:
        TrustRefused: unreadable, or none.
    """
    try:
        return TrustFile.parse(read_document(path))
    except (DocumentRefused, TrustRefused) as error:
        raise TrustRefused(f"{path}: {error}") from None


def load_trust(paths: Sequence[Path], now: datetime | None = None) -> tuple[TrustedKey, ...]:
    """The keys of what a reader names: trust files (``*.json``) and bare public keys (``*.pub``).

    Raises:
        KeyRefused, TrustRefused: a file that can't be used, or a key that is named twice: its terms would be anyone's guess.
    """
    keys: list[TrustedKey] = []
    for path in paths:
        keys += read_trust(path).trusted(now) if path.suffix == ".json" else (load_public(path),)
    ids = [key.keyid for key in keys]
    for keyid in ids:
        if ids.count(keyid) > 1:
            raise TrustRefused(f"key {keyid[:12]} is named twice by --trust; name it once, by the trust file alone")
    return tuple(keys)
