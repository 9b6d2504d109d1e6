"""The trust file: terms of keys as attacks on them, strict parsing, versions, and encrypted private keys."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from deep20ray.canonical import sha256
from deep20ray_artifacts import dsse
from deep20ray_artifacts.catalog import Catalog, next_catalog
from deep20ray_artifacts.contract import Contract
from deep20ray_artifacts.documents import Predicate, verify_bytes
from deep20ray_artifacts.errors import DocumentRefused, KeyRefused, SignatureRefused, StatementRefused, TrustRefused
from deep20ray_artifacts.keys import TrustedKey, load_public
from deep20ray_artifacts.kinds import KINDS
from deep20ray_artifacts.redaction import Redaction
from deep20ray_artifacts.signing import NewKey, load_private, new_key, sign_payload, sign_run
from deep20ray_artifacts.statement import PREDICATE_TYPE
from deep20ray_artifacts.trust import USES, TrustFile, empty, load_trust, read_trust
from deep20ray_artifacts.verify import ATTESTATION_NAME, verify_run
from tests.artifacts.builder import COMPLETED_AT, draft, recorded, sealed_run

EARLY, LATE = "2026-01-01T00:00:00.000Z", "2027-12-31T23:59:59.999Z"


def trusting(key: NewKey, *, since: str = EARLY, until: str = LATE, editions: Sequence[str] = (), uses: Sequence[str] = USES) -> TrustFile:
    """A trust file with one key."""
    return empty().added(load_public(key.public), "signer", since, until, editions, uses)


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> NewKey:
    return new_key(tmp_path_factory.mktemp("keys"), "signer")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, key: NewKey) -> Path:
    return sealed_run(tmp_path_factory.mktemp("runs"), key.private)


def _digest(run: Path) -> str:
    return sha256(dsse.parse((run / ATTESTATION_NAME).read_bytes()).payload)


def test_a_run_within_the_terms_verifies(run: Path, key: NewKey, tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    path.write_bytes(trusting(key, editions=["1.1"], uses=["runs"]).data())
    keys = load_trust([path], COMPLETED_AT)
    assert verify_run(run, keys).keyid == key.keyid
    assert read_trust(path).version == 2


TERMS: dict[str, tuple[Callable[[NewKey], tuple[TrustedKey, ...]], str]] = {
    "not valid yet": (lambda key: trusting(key, since="2026-12-02T00:00:00.000Z").trusted(None), "not valid yet"),
    "expired": (lambda key: trusting(key, until="2026-11-30T23:59:59.999Z").trusted(None), "had expired"),
    "another edition": (lambda key: trusting(key, editions=["1.0"]).trusted(None), "may not sign runs of edition 1.1"),
    "another use": (lambda key: trusting(key, uses=["documents", "catalog"]).trusted(None), "may sign catalog and documents, not runs"),
    "revoked": (lambda key: trusting(key).revoking(key.keyid, LATE, "lost", []).trusted(None), r"is revoked \(lost\)"),
    "revoked, others pinned": (lambda key: trusting(key).revoking(key.keyid, LATE, "lost", ["0" * 64]).trusted(None), "is revoked"),
    "a time to come": (lambda key: trusting(key).trusted(COMPLETED_AT - timedelta(hours=1)), "still to come"),
}


@pytest.mark.parametrize("name", TERMS)
def test_a_run_outside_the_terms_is_refused(run: Path, key: NewKey, name: str) -> None:
    keys, words = TERMS[name][0](key), TERMS[name][1]
    with pytest.raises(SignatureRefused, match=words) as caught:
        verify_run(run, keys)
    assert run.name in str(caught.value) and "\n" not in str(caught.value)


def test_a_pinned_statement_outlives_its_key(run: Path, key: NewKey, tmp_path: Path) -> None:
    revoked = trusting(key).revoking(key.keyid, LATE, "lost", [_digest(run)])
    assert verify_run(run, revoked.trusted(None)).keyid == key.keyid
    forged = sealed_run(tmp_path, key.private, scores={"T-0001": [0, 0, 0], "T-0008": [0, 0, 0]})  # back-dated by who found the key
    with pytest.raises(SignatureRefused, match="is revoked"):
        verify_run(forged, revoked.trusted(None))


def test_a_schema_below_the_minimum_is_refused(run: Path, key: NewKey) -> None:
    keys = TrustFile.model_validate({**trusting(key).model_dump(), "minimum_artifact_schema": "2"}).trusted(None)
    with pytest.raises(StatementRefused, match="below the trust file's minimum"):
        verify_run(run, keys)


def test_a_key_for_runs_signs_no_document(key: NewKey) -> None:
    catalog = next_catalog(None, None, "ours", EARLY)
    signed = sign_payload(catalog.statement(), load_private(key.private))
    assert verify_bytes(Catalog, signed, trusting(key, uses=["catalog"]).trusted(None)).predicate == catalog
    for trust, words in (
        (trusting(key, uses=["runs", "documents"]), "not catalog"),
        (trusting(key).revoking(key.keyid, LATE, "lost", []), "is revoked"),
    ):
        with pytest.raises(SignatureRefused, match=words):
            verify_bytes(Catalog, signed, trust.trusted(None))


def test_no_kind_of_statement_passes_for_another(run: Path, key: NewKey) -> None:
    """Each has a predicate type of its own, and it is signed: authentic bytes of one kind are refused as any other."""
    kinds: list[type[Predicate]] = [*KINDS]
    types = [kind.predicate_type for kind in kinds] + [PREDICATE_TYPE]
    assert len(set(types)) == len(types) and {Contract, Redaction, Catalog} == set(kinds)
    trusted = [load_public(key.public)]
    signed = {"run": (run / ATTESTATION_NAME).read_bytes()}
    signed["catalog"] = sign_payload(next_catalog(None, None, "ours", EARLY).statement(), load_private(key.private))
    for name, data in signed.items():
        for kind in kinds:
            if kind.noun != name:
                with pytest.raises(DocumentRefused, match=f"no {kind.noun}"):
                    verify_bytes(kind, data, trusted)


def test_a_catalog_in_an_attestations_place_is_refused(tmp_path: Path, key: NewKey) -> None:
    folder = sealed_run(tmp_path, key.private)
    (folder / ATTESTATION_NAME).write_bytes(sign_payload(next_catalog(None, None, "ours", EARLY).statement(), load_private(key.private)))
    with pytest.raises(StatementRefused, match="predicate"):
        verify_run(folder, [load_public(key.public)])


def _entry(change: dict[str, Any]) -> Callable[[dict[str, Any]], object]:
    return lambda value: value["keys"][0].update(change)


SPOILT: dict[str, Callable[[dict[str, Any]], object]] = {
    "unknown field": lambda value: value.update(note=1),
    "no version": lambda value: value.pop("version"),
    "version 0": lambda value: value.update(version=0),
    "version as text": lambda value: value.update(version="2"),
    "another schema": lambda value: value.update(trust_schema="2"),
    "a key twice": lambda value: value["keys"].append(value["keys"][0]),
    "a revocation of no key": lambda value: value["revoked"].append(_revocation("0" * 64)),
    "a revocation twice": lambda value: value["revoked"].extend([_revocation(value["keys"][0]["keyid"])] * 2),
    "a lying keyid": _entry({"keyid": "0" * 64}),
    "a key of small order": _entry({"public": "01" + "00" * 31}),
    "a key that isn't canonical": _entry({"public": "ee" + "ff" * 30 + "7f"}),
    "upper-case hex": _entry({"public": "A" * 64}),
    "an end before its beginning": _entry({"not_after": "2025-01-01T00:00:00.000Z"}),
    "a time of another spelling": _entry({"not_after": "2027-01-01"}),
    "an unknown edition": _entry({"editions": ["9.9"]}),
    "an edition twice": _entry({"editions": ["1.1", "1.1"]}),
    "an unknown use": _entry({"uses": ["everything"]}),
    "no use": _entry({"uses": []}),
}


def _revocation(keyid: str) -> dict[str, Any]:
    return {"keyid": keyid, "at": LATE, "reason": "lost", "accept_statements": []}


@pytest.mark.parametrize("name", SPOILT)
def test_a_trust_file_of_another_form_is_refused(tmp_path: Path, key: NewKey, name: str) -> None:
    value = json.loads(trusting(key).data())
    SPOILT[name](value)
    path = tmp_path / "trust.json"
    path.write_text(json.dumps(value))
    with pytest.raises(TrustRefused, match=r"trust\.json: no trust file: ") as caught:
        read_trust(path)
    assert caught.value.exit_code == 2 and "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b'{"version":1,"version":2}', b"[" * 40, b'{"a":NaN}'])
def test_bytes_that_are_no_trust_file(data: bytes) -> None:
    with pytest.raises(TrustRefused, match="no trust file"):
        TrustFile.parse(data)


def test_a_key_named_twice_has_no_terms_to_go_by(tmp_path: Path, key: NewKey) -> None:
    """A bare key beside a trust file that revokes it must not bring it back."""
    path = tmp_path / "trust.json"
    path.write_bytes(trusting(key).revoking(key.keyid, LATE, "lost", []).data())
    with pytest.raises(TrustRefused, match="named twice"):
        load_trust([path, key.public])


def test_changes_make_versions(key: NewKey) -> None:
    trust = trusting(key)
    assert [empty().version, trust.version, trust.revoking(key.keyid, LATE, "lost", []).version] == [1, 2, 3]
    with pytest.raises(TrustRefused, match="stands twice"):
        trust.added(load_public(key.public), "again", EARLY, LATE, [], USES)
    with pytest.raises(TrustRefused, match="isn't listed"):
        trust.revoking("0" * 64, LATE, "lost", [])
    assert TrustFile.parse(trust.data()) == trust


def test_terms_do_not_depend_on_the_clock_unless_one_is_given(run: Path, key: NewKey) -> None:
    (trusted,) = trusting(key).trusted(None)
    assert trusted.terms is not None
    late = replace(trusted.terms, now=datetime(2030, 1, 1, tzinfo=UTC))
    assert verify_run(run, [replace(trusted, terms=late)]).keyid == key.keyid


# Encrypted keys


def test_an_encrypted_key_signs_with_its_passphrase(tmp_path: Path) -> None:
    made = new_key(tmp_path, "locked", passphrase=b"correct horse")
    assert b"ENCRYPTED PRIVATE KEY" in made.private.read_bytes() and made.private.stat().st_mode & 0o777 == 0o600
    assert load_private(made.private, lambda: b"correct horse").keyid == made.keyid
    for passphrase in (lambda: b"wrong", lambda: b""):
        with pytest.raises(KeyRefused, match="passphrase is wrong"):
            load_private(made.private, passphrase)
    with pytest.raises(KeyRefused, match="encrypted; give its passphrase"):
        load_private(made.private)
    folder = sealed_run_unsigned(tmp_path)
    sign_run(folder, made.private, passphrase=lambda: b"correct horse")
    assert verify_run(folder, [load_public(made.public)]).keyid == made.keyid


def test_a_passphrase_is_not_asked_for_a_clear_key(key: NewKey) -> None:
    def never() -> bytes:
        raise AssertionError("asked")

    assert load_private(key.private, never).keyid == key.keyid


def test_an_empty_passphrase_is_none(tmp_path: Path) -> None:
    with pytest.raises(KeyRefused, match="empty passphrase"):
        new_key(tmp_path, "open", passphrase=b"")
    assert list(tmp_path.iterdir()) == []


def sealed_run_unsigned(root: Path) -> Path:
    """A sealed run that waits for its signature."""
    return recorded(draft()).seal(root / "runs")
