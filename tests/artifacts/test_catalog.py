"""The catalog forgets no run: every way to drop, rewrite, replay or take back an entry, refused."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deep20ray_artifacts.catalog import Catalog, check_follows, check_listed, missing, next_catalog
from deep20ray_artifacts.documents import Signed, verify_bytes
from deep20ray_artifacts.errors import CatalogBroken, InvalidRecord
from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.signing import NewKey, load_private, new_key, sign_payload
from deep20ray_artifacts.verify import VerifiedRun, verify_run
from tests.artifacts.builder import sealed_run

T1, T2 = "2026-12-01T10:00:00.000Z", "2026-12-02T10:00:00.000Z"


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> NewKey:
    return new_key(tmp_path_factory.mktemp("keys"), "signer")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, key: NewKey) -> list[VerifiedRun]:
    root = tmp_path_factory.mktemp("runs")
    folders = [sealed_run(root, key.private, model_id=name, scores={"T-0001": [1], "T-0008": [2]}) for name in ("a", "b")]
    return [verify_run(folder, [load_public(key.public)]) for folder in folders]


def signed(catalog: Catalog, key: NewKey) -> Signed[Catalog]:
    """The catalog, signed and verified."""
    return verify_bytes(Catalog, sign_payload(catalog.statement(), load_private(key.private)), [load_public(key.public)])


@pytest.fixture(scope="module")
def first(runs: list[VerifiedRun], key: NewKey) -> Signed[Catalog]:
    return signed(next_catalog(None, None, "ours", T1, runs), key)


def test_a_catalog_grows(first: Signed[Catalog], runs: list[VerifiedRun], key: NewKey) -> None:
    assert [entry.status for entry in first.predicate.entries] == ["listed", "listed"]
    run_id = runs[0].statement.predicate.run_id
    second = signed(next_catalog(first, None, None, T2, withdrawn={run_id: "wrong search settings"}), key)
    check_follows(second, first)
    check_follows(first, first)
    entry = second.predicate.by_run[run_id]
    assert (entry.status, entry.reason, entry.since, second.predicate.version) == ("withdrawn", "wrong search settings", T2, 2)
    assert missing(second.predicate, []) == (runs[1].statement.predicate.run_id,)
    third = next_catalog(second, None, None, T2, [runs[1]])
    assert third.entries == second.predicate.entries, "listed already: nothing changes"


def test_a_draft_goes_on(first: Signed[Catalog], runs: list[VerifiedRun]) -> None:
    draft = next_catalog(first, None, None, T2, withdrawn={runs[0].statement.predicate.run_id: "x"})
    both = next_catalog(first, draft, None, T2, withdrawn={runs[1].statement.predicate.run_id: "y"})
    assert [entry.reason for entry in both.entries] == ["x", "y"] and both.version == 2


def _spoilt(first: Signed[Catalog], **changes: Any) -> Catalog:
    value = first.predicate.model_dump() | {"version": 2, "previous_sha256": first.sha256, "issued_at": T2} | changes
    return Catalog.of(value)


def _entries(first: Signed[Catalog]) -> list[dict[str, Any]]:
    return [entry.model_dump() for entry in first.predicate.entries]


ATTACKS: dict[str, tuple[Callable[[Signed[Catalog]], Catalog], str]] = {
    "a run dropped": (lambda c: _spoilt(c, entries=_entries(c)[1:]), "forgets no run"),
    "all dropped": (lambda c: _spoilt(c, entries=[]), "forgets no run"),
    "another statement": (lambda c: _spoilt(c, entries=[_entries(c)[0] | {"statement_sha256": "0" * 64}, _entries(c)[1]]), "rewritten"),
    "another chain": (lambda c: _spoilt(c, previous_sha256="0" * 64), "doesn't follow"),
    "another catalog": (lambda c: _spoilt(c, id="theirs"), "give the catalog of that id"),
    "the same version, otherwise": (lambda c: _spoilt(c, version=1, previous_sha256=None), "another catalog of this version"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_does_not_follow_is_refused(first: Signed[Catalog], key: NewKey, name: str) -> None:
    make, words = ATTACKS[name]
    with pytest.raises(CatalogBroken, match=words) as caught:
        check_follows(signed(make(first), key), first)
    assert caught.value.exit_code == 4 and "\n" not in str(caught.value)


def test_an_older_catalog_or_a_withdrawal_taken_back_is_refused(first: Signed[Catalog], runs: list[VerifiedRun], key: NewKey) -> None:
    run_id = runs[0].statement.predicate.run_id
    second = signed(next_catalog(first, None, None, T2, withdrawn={run_id: "x"}), key)
    with pytest.raises(CatalogBroken, match="version 2 was seen before"):
        check_follows(first, second)
    back = Catalog.of(second.predicate.model_dump() | {"version": 3, "previous_sha256": second.sha256, "entries": _entries(first)})
    with pytest.raises(CatalogBroken, match="rewritten"):
        check_follows(signed(back, key), second)
    again = [second.predicate.by_run[run_id].model_dump() | {"reason": "another"}, _entries(first)[1]]
    renamed = Catalog.of(second.predicate.model_dump() | {"version": 3, "previous_sha256": second.sha256, "entries": again})
    with pytest.raises(CatalogBroken, match="rewritten"):
        check_follows(signed(renamed, key), second)
    with pytest.raises(InvalidRecord, match="stays so"):
        next_catalog(second, None, None, T2, [runs[0]])


def test_a_run_is_what_is_listed(first: Signed[Catalog], runs: list[VerifiedRun], tmp_path: Path, key: NewKey) -> None:
    entry = check_listed(first.predicate, runs[0])
    assert entry is not None and entry.statement_sha256 == runs[0].statement_sha256
    assert check_listed(next_catalog(None, None, "ours", T1, runs[1:]), runs[0]) is None
    other = replace(runs[0], payload=runs[0].payload + b" ")
    with pytest.raises(CatalogBroken, match="another run of this id"):
        check_listed(first.predicate, other)
    listed = _entries(first)
    listed[0] |= {"status": "redacted", "redaction_sha256": "0" * 64, "reason": "copyright"}
    with pytest.raises(CatalogBroken, match="another redaction"):
        check_listed(_spoilt(first, entries=listed), runs[0])


def _bad(change: dict[str, Any]) -> Callable[[Signed[Catalog]], dict[str, Any]]:
    return lambda c: c.predicate.model_dump() | {"entries": [_entries(c)[0] | change, _entries(c)[1]]}


@pytest.mark.parametrize(
    "make",
    [
        lambda c: c.predicate.model_dump() | {"entries": _entries(c)[::-1]},
        lambda c: c.predicate.model_dump() | {"entries": [_entries(c)[0]] * 2},
        lambda c: c.predicate.model_dump() | {"version": 2},
        lambda c: c.predicate.model_dump() | {"previous_sha256": "0" * 64},
        lambda c: c.predicate.model_dump() | {"note": 1},
        _bad({"status": "withdrawn"}),
        _bad({"status": "redacted", "reason": "x"}),
        _bad({"reason": "x"}),
        _bad({"redaction_sha256": "0" * 64}),
        _bad({"status": "gone", "reason": "x"}),
        _bad({"run_id": "../x"}),
    ],
)
def test_catalogs_of_another_form(first: Signed[Catalog], make: Callable[[Signed[Catalog]], dict[str, Any]]) -> None:
    with pytest.raises(InvalidRecord, match="no valid catalog"):
        Catalog.of(make(first))
