"""Documents as hostile input: whatever is changed in a signed contract, redaction or catalog, it is refused in one line, and nothing breaks."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from deep20ray_artifacts import dsse
from deep20ray_artifacts.catalog import Catalog
from deep20ray_artifacts.contract import Contract
from deep20ray_artifacts.documents import Predicate, verify_bytes
from deep20ray_artifacts.errors import VerificationError
from deep20ray_artifacts.keys import TrustedKey, load_public
from deep20ray_artifacts.kinds import KINDS, parse_any
from deep20ray_artifacts.redaction import Redaction
from deep20ray_artifacts.signing import SigningKey, load_private, new_key, sign_payload
from tests.artifacts.releases import contract_of, release_draft

DIGEST = "a" * 64
FACTS: dict[type[Predicate], dict[str, Any]] = {
    Contract: contract_of(release_draft()).model_dump(),
    Redaction: {
        "redaction_schema": "1",
        "run_id": "20261201T093000Z-model-a-0123456789ab",
        "statement_sha256": DIGEST,
        "redacted": [
            {
                "table": "evidence",
                "trial_id": DIGEST,
                "turn": 1,
                "number": 2,
                "field": "url",
                "sha256": DIGEST,
                "reason": "x",
                "redacted_at": "2026-12-01T00:00:00.000Z",
            }
        ],
        "files": [{"name": "evidence.arrow", "bytes": 10, "sha256": DIGEST}],
    },
    Catalog: {
        "catalog_schema": "1",
        "id": "ours",
        "version": 2,
        "previous_sha256": DIGEST,
        "issued_at": "2026-12-01T00:00:00.000Z",
        "entries": [
            {
                "run_id": "20261201T093000Z-model-a-0123456789ab",
                "statement_sha256": DIGEST,
                "status": "withdrawn",
                "redaction_sha256": DIGEST,
                "reason": "x",
                "since": "2026-12-01T00:00:00.000Z",
            }
        ],
    },
}
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.just([]),
    st.just({}),
    st.just(["x"]),
    st.just(DIGEST),
    st.just("simulator"),
    st.just("9" * 5000),
)


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> tuple[SigningKey, list[TrustedKey]]:
    """A lasting key, both halves."""
    key = new_key(Path(tmp_path_factory.mktemp("keys")), "k")
    return load_private(key.private), [load_public(key.public)]


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, each in inner for place in places(each, (*at, key)))]


def changed(value: Any, place: tuple[Any, ...], how: str, by: Any) -> Any:
    """A copy with one place replaced, dropped, doubled or given a neighbour."""
    copy = json.loads(json.dumps(value))
    if not place:
        return by
    holder = copy
    for step in place[:-1]:
        holder = holder[step]
    last = place[-1]
    if how == "drop":
        del holder[last]
    elif how == "add" and isinstance(holder, dict):
        holder[f"{last}x"] = by
    elif how == "double" and isinstance(holder, list):
        holder.append(holder[last])
    else:
        holder[last] = by
    return copy


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), how=st.sampled_from(["replace", "drop", "add", "double"]), by=VALUES)
def test_a_changed_statement_is_refused_or_the_same(
    signer: tuple[SigningKey, list[TrustedKey]], kind: type[Predicate], data: st.DataObject, how: str, by: Any
) -> None:
    key, trusted = signer
    good = kind.of(FACTS[kind]).statement()
    value = json.loads(good)
    payload = json.dumps(
        changed(value, data.draw(st.sampled_from(places(value))), how, by), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode("utf-8", "surrogatepass")
    refused = ""
    try:
        found = verify_bytes(kind, sign_payload(payload, key), trusted)
        # What is accepted is a whole document in its one spelling: another value in a field, say, signed by a key that may.
        assert found.predicate.statement() == payload
    except VerificationError as error:
        refused = str(error)
    assert "\n" not in refused and len(refused) < 1000


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 100_000), bits=st.integers(1, 255))
@example(at=0, bits=1)
def test_a_changed_byte_of_the_file_is_refused(
    signer: tuple[SigningKey, list[TrustedKey]], kind: type[Predicate], at: int, bits: int
) -> None:
    key, trusted = signer
    file = bytearray(sign_payload(kind.of(FACTS[kind]).statement(), key))
    file[at % len(file)] ^= bits
    with pytest.raises(VerificationError):
        verify_bytes(kind, bytes(file), trusted)


@settings(max_examples=60)
@given(data=st.binary(max_size=400))
def test_bytes_that_are_anything_are_refused(data: bytes) -> None:
    with pytest.raises(VerificationError):
        parse_any(data)
    with pytest.raises(VerificationError):
        verify_bytes(Contract, data, [])


def test_no_kind_passes_for_another(signer: tuple[SigningKey, list[TrustedKey]]) -> None:
    key, trusted = signer
    assert len({kind.predicate_type for kind in KINDS}) == len(KINDS) == len(FACTS)
    for kind in KINDS:
        statement = kind.of(FACTS[kind]).statement()
        assert parse_any(statement) == kind.of(FACTS[kind])
        for other in KINDS:
            if other is not kind:
                with pytest.raises(VerificationError, match=f"this is no {other.noun}"):
                    verify_bytes(other, sign_payload(statement, key), trusted)
    assert dsse.parse(sign_payload(statement, key)).payload == statement
