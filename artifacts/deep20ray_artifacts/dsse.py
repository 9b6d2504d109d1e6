"""DSSE v1 envelopes: the signed bytes are those that stand in the envelope, under their type, and are parsed only after they verify.

A ``keyid`` in an envelope is a claim. It is compared with the identity that the verifier computes from its own key, and a signature
whose claim is false is refused even where the signature itself is valid.
"""

import base64
import binascii
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from cryptography.exceptions import InvalidSignature

from deep20ray_artifacts import strict_json
from deep20ray_artifacts.errors import EnvelopeRefused, SignatureRefused
from deep20ray_artifacts.keys import TrustedKey

MAX_SIGNATURES: Final = 16
_KEYID: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Signature:
    """Who claims to have signed, and the 64 signature bytes."""

    keyid: str
    sig: bytes


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload, its type and its signatures, none of them verified yet."""

    payload_type: str
    payload: bytes
    signatures: tuple[Signature, ...]


def pae(payload_type: str, payload: bytes) -> bytes:
    """The pre-authentication encoding: the bytes that are signed."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def encode(envelope: Envelope) -> bytes:
    """The envelope as JSON with sorted keys and no extra space."""
    value = {
        "payload": base64.b64encode(envelope.payload).decode(),
        "payloadType": envelope.payload_type,
        "signatures": [{"keyid": s.keyid, "sig": base64.b64encode(s.sig).decode()} for s in envelope.signatures],
    }
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def parse(data: bytes) -> Envelope:
    """The envelope of ``data``, whose size the caller has bounded.

    Raises:
        EnvelopeRefused: not strict JSON, another set of keys, base64 that isn't canonical, no signature or one key twice.
    """
    try:
        value = strict_json.loads(data)
    except strict_json.NotStrictJson as error:
        raise EnvelopeRefused(f"attestation: {error}; get the run again from its source") from None
    fields = _fields(value, ("payload", "payloadType", "signatures"))
    if not isinstance(fields["payloadType"], str) or not isinstance(fields["signatures"], list):
        raise _refused("payloadType is text and signatures a list")
    signatures = tuple(_signature(item) for item in fields["signatures"])
    if not 1 <= len(signatures) <= MAX_SIGNATURES:
        raise _refused(f"it needs 1 to {MAX_SIGNATURES} signatures and has {len(signatures)}")
    if len({signature.keyid for signature in signatures}) != len(signatures):
        raise _refused("one key signs twice")
    return Envelope(fields["payloadType"], _decoded(fields["payload"], "payload"), signatures)


def signers(envelope: Envelope, keys: Sequence[TrustedKey]) -> tuple[TrustedKey, ...]:
    """The trusted keys that signed ``envelope``, in its order. Signatures of other keys count for nothing.

    Raises:
        SignatureRefused: a signature that claims a trusted key and isn't its, or claims another key and is a trusted one's.
    """
    message = pae(envelope.payload_type, envelope.payload)
    by_id: dict[str, TrustedKey] = {key.keyid: key for key in keys}
    found: list[TrustedKey] = []
    for signature in envelope.signatures:
        claimed = by_id.get(signature.keyid)
        if claimed is not None:
            if not _valid(claimed, signature.sig, message):
                raise SignatureRefused(
                    f"attestation: the signature by key {signature.keyid[:12]} is wrong; the run was changed, don't use it"
                )
            found.append(claimed)
            continue
        for key in by_id.values():
            if _valid(key, signature.sig, message):
                raise SignatureRefused(
                    f"attestation: a signature by key {key.keyid[:12]} claims to be by {signature.keyid[:12]}; don't use it"
                )
    return tuple(found)


def _valid(key: TrustedKey, sig: bytes, message: bytes) -> bool:
    try:
        key.public.verify(sig, message)
    except InvalidSignature:
        return False
    return True


def _fields(value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() != set(names):
        raise _refused(f"it must hold exactly {', '.join(names)}")
    return value


def _signature(value: Any) -> Signature:
    fields = _fields(value, ("keyid", "sig"))
    if not isinstance(fields["keyid"], str) or not _KEYID.fullmatch(fields["keyid"]):
        raise _refused("a keyid is 64 lower-case hex digits")
    sig = _decoded(fields["sig"], "a signature")
    if len(sig) != 64:
        raise _refused("an Ed25519 signature has 64 bytes")
    return Signature(fields["keyid"], sig)


def _decoded(value: Any, what: str) -> bytes:
    """Base64 whose one spelling is the one given: the decoder alone would take stray trailing bits."""
    if isinstance(value, str):
        try:
            data = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            pass
        else:
            if base64.b64encode(data).decode() == value:
                return data
    raise _refused(f"{what} isn't canonical base64")


def _refused(why: str) -> EnvelopeRefused:
    return EnvelopeRefused(f"attestation: no strict DSSE envelope: {why}; get the run again from its source")
