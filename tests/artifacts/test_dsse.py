"""Envelopes: the golden bytes, a second implementation both ways, and every loose spelling refused."""

import base64
import hashlib
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from securesystemslib import dsse as other
from securesystemslib.signer import CryptoSigner, SSlibKey  # type: ignore[attr-defined]  # public, but not in __all__

from deep20ray_artifacts import dsse
from deep20ray_artifacts.errors import EnvelopeRefused, SignatureRefused
from deep20ray_artifacts.keys import trusted_key
from deep20ray_artifacts.signing import SigningKey, sign_payload

PRIVATE = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"deep20ray golden test key, never trust").digest())
KEY = SigningKey(PRIVATE, throwaway=False)
TRUSTED = trusted_key(PRIVATE.public_key())
OTHER = SigningKey(Ed25519PrivateKey.from_private_bytes(b"\x07" * 32), throwaway=False)
TYPE = "application/vnd.in-toto+json"
PAYLOAD = (
    b'{"_type":"https://in-toto.io/Statement/v1","predicate":{"edition":"1.1"},"predicateType":"https://deep20ray.example/run/v1",'
    b'"subject":[{"digest":{"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},"name":"episodes.arrow"}]}'
)
SIGNATURE = (
    "7ef3f0eaa460d5be5a4f78d88eefa170370f63b22cbd907d372b8e3afa7e75b675708231611773f4675ed33ea99ce3c383a4ac82dfceb7b9c546a88459ce580d"
)
ENVELOPE = sign_payload(PAYLOAD, KEY)


def test_pre_authentication_encoding_of_the_protocol() -> None:
    assert dsse.pae("http://example.com/HelloWorld", b"hello world") == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert dsse.pae("é", b"") == "DSSEv1 2 é 0 ".encode()


def test_golden_vector() -> None:
    raw = PRIVATE.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    assert raw.hex() == "4069f886312ee31d24f57adf9d91766b8a133e547c45c9205d49719db0c8a8c9"
    assert TRUSTED.keyid == KEY.keyid == "3d387037730edf0f9e9f3d92d3f93d3762957fe1c0677713189a14ab5db6ec32"
    envelope = dsse.parse(ENVELOPE)
    assert (envelope.payload_type, envelope.payload) == (TYPE, PAYLOAD)
    assert envelope.signatures[0].sig.hex() == SIGNATURE
    assert dsse.signers(envelope, [TRUSTED]) == (TRUSTED,)


def test_another_implementation_verifies_ours() -> None:
    key = SSlibKey.from_crypto(PRIVATE.public_key(), keyid=TRUSTED.keyid)
    assert other.Envelope.from_dict(json.loads(ENVELOPE)).verify([key], 1)
    tampered = json.loads(ENVELOPE)
    tampered["payload"] = base64.b64encode(PAYLOAD + b" ").decode()
    with pytest.raises(Exception, match=r"(?i)accepted signatures|verif"):
        other.Envelope.from_dict(tampered).verify([key], 1)


def test_we_verify_another_implementations() -> None:
    signer = CryptoSigner(PRIVATE, SSlibKey.from_crypto(PRIVATE.public_key(), keyid=TRUSTED.keyid))
    theirs = other.Envelope(PAYLOAD, TYPE, {})
    theirs.sign(signer)
    envelope = dsse.parse(json.dumps(theirs.to_dict()).encode())
    assert dsse.signers(envelope, [TRUSTED]) == (TRUSTED,)
    assert envelope.signatures[0].sig.hex() == SIGNATURE


def _changed(**changes: Any) -> bytes:
    value = json.loads(ENVELOPE)
    return json.dumps({**value, **changes}).encode()


def _signature(**changes: Any) -> list[dict[str, Any]]:
    return [{**json.loads(ENVELOPE)["signatures"][0], **changes}]


def _loose(text: str) -> str:
    """The same bytes in base64 with stray bits in the last character before the padding."""
    body = text.rstrip("=")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    loose = body[:-1] + alphabet[alphabet.index(body[-1]) + 1] + text[len(body) :]
    assert base64.b64decode(loose, validate=True) == base64.b64decode(text)
    return loose


SIG = json.loads(ENVELOPE)["signatures"][0]["sig"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"\xef\xbb\xbf" + ENVELOPE,
        ENVELOPE.decode().encode("utf-16"),
        ENVELOPE + b"{}",
        ENVELOPE[:-1],
        b"[" * 100_000,
        b'{"payload":' + b"[" * 40 + b"]" * 40 + b"}",
        ENVELOPE.replace(b'{"payload":', b'{"payload":"e30=","payload":', 1),
        ENVELOPE.replace(b'{"payload":', b'{"note":NaN,"payload":', 1),
        _changed(note="x"),
        _changed(payload=None),
        _changed(payload="e30"),
        _changed(payload=json.loads(ENVELOPE)["payload"] + "\n"),
        _changed(payloadType=1),
        _changed(payloadType="\ud800"),
        _changed(signatures=[]),
        _changed(signatures={}),
        _changed(signatures=_signature() * 2),
        _changed(signatures=_signature(keyid="A" * 64)),
        _changed(signatures=_signature(keyid=None)),
        _changed(signatures=_signature(sig=_loose(SIG))),
        _changed(signatures=_signature(sig=base64.b64encode(b"\0" * 63).decode())),
        _changed(signatures=_signature(cert="x")),
    ],
)
def test_loose_envelopes_are_refused(data: bytes) -> None:
    with pytest.raises(EnvelopeRefused, match=r"^attestation: ") as caught:
        dsse.parse(data)
    assert "\n" not in str(caught.value)


def test_a_changed_payload_type_or_signature_is_refused() -> None:
    for data in (_changed(payloadType="application/json"), _changed(signatures=_signature(sig=base64.b64encode(b"\x01" * 64).decode()))):
        with pytest.raises(SignatureRefused, match="is wrong"):
            dsse.signers(dsse.parse(data), [TRUSTED])


def test_a_keyid_that_lies_is_refused() -> None:
    """A trusted key's good signature under a stranger's id, and a stranger's under a trusted id."""
    with pytest.raises(SignatureRefused, match="claims to be by"):
        dsse.signers(dsse.parse(_changed(signatures=_signature(keyid=OTHER.keyid))), [TRUSTED])
    theirs = json.loads(sign_payload(PAYLOAD, OTHER))["signatures"][0]["sig"]
    with pytest.raises(SignatureRefused, match="is wrong"):
        dsse.signers(dsse.parse(_changed(signatures=_signature(sig=theirs))), [TRUSTED])


def test_a_malleable_signature_is_refused() -> None:
    order = 2**252 + 27742317777372353535851937790883648493
    sig = bytes.fromhex(SIGNATURE)
    moved = sig[:32] + (int.from_bytes(sig[32:], "little") + order).to_bytes(32, "little")
    with pytest.raises(SignatureRefused):
        dsse.signers(dsse.parse(_changed(signatures=_signature(sig=base64.b64encode(moved).decode()))), [TRUSTED])


def test_a_stranger_counts_for_nothing() -> None:
    assert dsse.signers(dsse.parse(sign_payload(PAYLOAD, OTHER)), [TRUSTED]) == ()
    assert dsse.signers(dsse.parse(ENVELOPE), []) == ()
