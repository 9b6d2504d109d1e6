"""Signed documents that aren't runs: one in-toto statement each, of a predicate type of its own, in one DSSE file.

A document's kind is its predicate type, which is signed with it, so that none passes for another. Parsing is strict and comes after
the signature; signing is elsewhere (``signing``). A throwaway key signs simulated runs and no document.
"""

import os
import stat
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from deep20ray.canonical import Digest, canonical, sha256
from deep20ray_artifacts import dsse, strict_json
from deep20ray_artifacts.errors import DocumentRefused, EnvelopeRefused, InvalidRecord, SignatureRefused
from deep20ray_artifacts.keys import TrustedKey
from deep20ray_artifacts.limits import Limits
from deep20ray_artifacts.statement import PAYLOAD_TYPE, STATEMENT_TYPE

SUFFIX: Final = ".dsse.json"
"""How a signed document's file name ends."""


class Closed(BaseModel):
    """A part of a document: strict, closed, frozen."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)


class Predicate(Closed):
    """What a document says. A subclass names its kind and what it is about."""

    predicate_type: ClassVar[str]
    noun: ClassVar[str]
    use: ClassVar[str] = "documents"
    """What a trust file must let its key sign."""

    @property
    @abstractmethod
    def subject(self) -> tuple[str, str]:
        """Name and SHA-256 of what the statement is about."""

    def statement(self) -> bytes:
        """The canonical bytes of its statement: what is signed."""
        name, digest = self.subject
        return canonical(
            {
                "_type": STATEMENT_TYPE,
                "subject": [{"name": name, "digest": {"sha256": digest}}],
                "predicateType": self.predicate_type,
                "predicate": self.model_dump(mode="json"),
            }
        )

    @classmethod
    def of(cls, facts: Mapping[str, object]) -> Self:
        """From facts.

        Raises:
            InvalidRecord: facts that make none.
        """
        try:
            return cls.model_validate(facts)
        except ValidationError as error:
            raise InvalidRecord(f"no valid {cls.noun}: {first_complaint(error)}") from None

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Out of a statement's bytes, which must be the canonical ones.

        Raises:
            DocumentRefused: not strict JSON, another kind, an unknown or missing field, another spelling.
        """
        try:
            value = strict_json.loads(data)
            if not isinstance(value, dict) or value.get("predicateType") != cls.predicate_type:
                raise DocumentRefused(f"this is no {cls.noun}; give the file of one")
            found = cls.model_validate(value.get("predicate"))
        except strict_json.NotStrictJson as error:
            raise DocumentRefused(f"{cls.noun}: {error}; get it again from its source") from None
        except ValidationError as error:
            raise DocumentRefused(f"{cls.noun}: {first_complaint(error)}; read it with the version that made it") from None
        if found.statement() != data:
            raise DocumentRefused(f"{cls.noun}: its statement isn't in canonical form, or is about something else; make it again")
        return found


_P = TypeVar("_P", bound=Predicate)


@dataclass(frozen=True, slots=True)
class Signed(Generic[_P]):
    """A document that a trusted key signed."""

    predicate: _P
    sha256: Digest
    """Of the statement: what others name the document by."""
    keyid: Digest


def verify_document(kind: type[_P], path: Path, keys: Sequence[TrustedKey], limits: Limits | None = None) -> Signed[_P]:
    """A signed document of one kind.

    Raises:
        DocumentRefused: no plain file of a bearable size, or signed bytes that are none of this kind.
        EnvelopeRefused: no strict DSSE envelope.
        SignatureRefused: no signature by a trusted key that may sign documents.
    """
    try:
        return verify_bytes(kind, read_document(path, limits), keys)
    except (DocumentRefused, EnvelopeRefused, SignatureRefused) as error:
        raise type(error)(f"{path}: {error}") from None


def verify_bytes(kind: type[_P], data: bytes, keys: Sequence[TrustedKey]) -> Signed[_P]:
    """As ``verify_document``, of a file's bytes, whose size the caller has bounded."""
    envelope = dsse.parse(data)
    if envelope.payload_type != PAYLOAD_TYPE or len(envelope.signatures) != 1:
        raise EnvelopeRefused("a document is one in-toto statement with one signature; sign it again")
    found = [key for key in dsse.signers(envelope, keys) if not key.throwaway]
    for key in found:
        why = key.terms and key.terms.why_not(kind.use, sha256(envelope.payload), None)
        if why:
            raise SignatureRefused(f"key {key.keyid[:12]} {why}; see the trust file")
    if not found:
        raise SignatureRefused("not signed by a trusted key that may sign documents; a throwaway key signs simulated runs alone")
    return Signed(kind.parse(envelope.payload), sha256(envelope.payload), found[0].keyid)


def read_document(path: Path, limits: Limits | None = None) -> bytes:
    """A document's bytes, signed or not.

    Raises:
        DocumentRefused: no plain file, or larger than what is read.
    """
    most = (limits or Limits()).attestation_bytes
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            plain = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            data = file.read(most + 1) if plain else b""
    except OSError as error:
        raise DocumentRefused(f"can't be read ({error.strerror}); give the path of a document's file") from None
    if not plain or len(data) > most:
        raise DocumentRefused(f"no plain file of at most {most} bytes; give the path of a document's file")
    return data


def first_complaint(error: ValidationError) -> str:
    """The first complaint, on one line, without the input."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where + ': ' if where else ''}{first['msg']}".replace("\n", " ")
