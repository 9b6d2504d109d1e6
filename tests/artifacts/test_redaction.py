"""Redactions: a field goes, its digest stays, and nothing else can have changed from what the original statement signed."""

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deep20ray.canonical import sha256
from deep20ray_artifacts.audit import audit_run
from deep20ray_artifacts.errors import (
    ContentRefused,
    DocumentRefused,
    FolderRefused,
    InvalidRecord,
    RecordRefused,
    SignatureRefused,
    StatementRefused,
    VerificationError,
)
from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.redaction import DRAFT_NAME, REDACTION_NAME, Redaction, Wish, redact
from deep20ray_artifacts.rowdigest import REDACTABLE, rows_digest, text_digest
from deep20ray_artifacts.signing import NewKey, load_private, new_key, sign_payload, sign_run
from deep20ray_artifacts.tables import build_table, table_bytes
from deep20ray_artifacts.verify import ATTESTATION_NAME, VerifiedRun, verify_run
from tests.artifacts import builder

AT = "2026-12-24T12:00:00.000Z"
WHY = "a takedown request by the page's owner"


@pytest.fixture
def folder(tmp_path: Path, key: NewKey) -> Path:
    """The scripted run, signed."""
    return builder.sealed_run(tmp_path / "runs", key.private)


def verified(folder: Path, key: NewKey) -> VerifiedRun:
    return verify_run(folder, [load_public(key.public)])


def place(folder: Path, key: NewKey, field: str) -> Wish:
    """The first row that has such a field."""
    run = verified(folder, key)
    table = next(name for name, columns in REDACTABLE.items() if field in columns)
    row = next(row for row in run.tables[table].to_pylist() if row[field] is not None)
    return Wish(row["trial_id"], row["turn"], field, row.get("number"))


def redacted(folder: Path, key: NewKey, *wishes: Wish, root: Path | None = None, sign: bool = True) -> Path:
    """A redacted copy of a run's folder."""
    run = verified(folder, key)
    earlier = () if run.redaction is None else run.redaction.redacted
    redaction, tables = redact(run.statement.predicate, run.statement_sha256, run.tables, earlier, wishes, WHY, AT)
    target = (root or folder.parent.parent / "redacted") / folder.name
    target.mkdir(parents=True)
    for path in folder.iterdir():
        if path.name != REDACTION_NAME:
            (target / path.name).write_bytes(tables.get(path.name, path.read_bytes()))
    (target / DRAFT_NAME).write_bytes(redaction.statement())
    if sign:
        sign_run(target, key.private)
    return target


FIELDS = ("question", "guess_name", "guess_description", "url", "excerpt", "text")


@pytest.mark.parametrize("field", FIELDS)
def test_a_redacted_field_is_gone_and_its_digest_stands_there(folder: Path, key: NewKey, field: str) -> None:
    wish = place(folder, key, field)
    before = verified(folder, key)
    table = next(name for name, columns in REDACTABLE.items() if field in columns)
    text = next(
        row[field]
        for row in before.tables[table].to_pylist()
        if (row["trial_id"], row["turn"], row.get("number")) == (wish.trial_id, wish.turn, wish.number)
    )
    target = redacted(folder, key, wish)
    run = verified(target, key)
    assert run.redaction is not None and run.statement_sha256 == before.statement_sha256
    for item in run.redaction.redacted:
        assert (item.field, item.sha256, item.reason, item.redacted_at) == (field, hashlib.sha256(text.encode()).hexdigest(), WHY, AT)
    column = run.tables[table][field].to_pylist()
    assert column.count(f"redacted:sha256:{text_digest(text)}") == before.tables[table][field].to_pylist().count(text) > 0
    assert text.encode() not in (target / f"{table}.arrow").read_bytes()
    assert (target / ATTESTATION_NAME).read_bytes() == (folder / ATTESTATION_NAME).read_bytes()


def test_an_audit_says_what_can_no_longer_be_computed(folder: Path, key: NewKey) -> None:
    whole = audit_run(verified(folder, key))
    wish = place(folder, key, "question")
    report = audit_run(verified(redacted(folder, key, wish), key))
    assert report.complete and report.total.calls == whole.total.calls
    assert report.total.checked + report.total.redacted == whole.total.checked
    # All later views of the games that the question was asked in, and who judged it.
    assert report.roles["guesser"].redacted > 0 and report.roles["reviewer"].redacted > 0
    assert report.roles["oracle"].archive_only == whole.roles["oracle"].archive_only


def test_evidence_hides_those_who_judged_by_it_alone(folder: Path, key: NewKey) -> None:
    report = audit_run(verified(redacted(folder, key, place(folder, key, "excerpt")), key))
    assert report.complete
    assert report.roles["guesser"].redacted == report.roles["validator"].redacted == 0 < report.roles["reviewer"].redacted


def test_a_second_redaction_keeps_the_first(folder: Path, key: NewKey) -> None:
    one = redacted(folder, key, place(folder, key, "text"))
    two = redacted(one, key, place(folder, key, "excerpt"), root=folder.parent.parent / "again")
    run = verified(two, key)
    assert run.redaction is not None
    assert {item.field for item in run.redaction.redacted} == {"text", "excerpt"}
    assert list(run.redaction.changed) == ["evidence.arrow", "violations.arrow"]


def test_a_digest_of_rows_is_what_the_documents_say() -> None:
    rows: list[dict[str, Any]] = [
        {"trial_id": "a" * 64, "turn": 1, "kind": "not_json", "counted": True, "finish_reason": None, "text": "é"},
        {"trial_id": "b" * 64, "turn": 2, "kind": "empty", "counted": False, "finish_reason": "stop", "text": None},
    ]
    table = build_table("violations", rows)
    hidden = hashlib.sha256("é".encode()).hexdigest()
    lines = f'["{"a" * 64}",1,"not_json",true,null,"{hidden}"]\n["{"b" * 64}",2,"empty",false,"stop",null]\n'
    assert rows_digest("violations", table) == sha256(lines.encode())
    gone = build_table("violations", [rows[0] | {"text": "gone"}, rows[1]])
    assert rows_digest("violations", gone) != rows_digest("violations", table)
    assert rows_digest("violations", gone, {(0, "text"): text_digest("é")}) == rows_digest("violations", table)


# ---- attacks


def resign(target: Path, key: NewKey, redaction: dict[str, Any]) -> None:
    (target / REDACTION_NAME).write_bytes(sign_payload(Redaction.of(redaction).statement(), load_private(key.private)))


def rewrite(target: Path, key: NewKey, name: str, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Changes a redacted table and signs the redaction to match, as a dishonest redactor would."""
    run = verified(target, key)
    assert run.redaction is not None
    rows = run.tables[name].to_pylist()
    change(rows)
    data = table_bytes(name, build_table(name, rows))
    facts = run.redaction.model_dump()
    for file in facts["files"]:
        if file["name"] == f"{name}.arrow":
            file |= {"bytes": len(data), "sha256": sha256(data)}
    (target / f"{name}.arrow").write_bytes(data)
    resign(target, key, facts)


def other_text(rows: list[dict[str, Any]]) -> None:
    row = next(row for row in rows if not row["excerpt"].startswith("redacted:"))
    row["excerpt"] = "What the page never said."


def other_flag(rows: list[dict[str, Any]]) -> None:
    rows[-1]["verified"] = not rows[-1]["verified"]


def other_time(rows: list[dict[str, Any]]) -> None:
    rows[-1]["retrieved_at"] = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("change", [other_text, other_flag, other_time])
def test_a_redactor_can_change_nothing_else(folder: Path, key: NewKey, change: Callable[[list[dict[str, Any]]], None]) -> None:
    target = redacted(folder, key, place(folder, key, "excerpt"))
    rewrite(target, key, "evidence", change)
    with pytest.raises(RecordRefused, match="more differs from the original than the redacted fields"):
        verified(target, key)


def test_a_redacted_place_holds_its_digest_and_nothing_else(folder: Path, key: NewKey) -> None:
    target = redacted(folder, key, place(folder, key, "text"))

    def other(rows: list[dict[str, Any]]) -> None:
        next(row for row in rows if (row["text"] or "").startswith("redacted:"))["text"] = "I never said that."

    rewrite(target, key, "violations", other)
    with pytest.raises(RecordRefused, match="the redacted text holds something else"):
        verified(target, key)


def test_a_digest_that_is_not_the_originals_is_refused(folder: Path, key: NewKey) -> None:
    target = redacted(folder, key, place(folder, key, "text"))
    run = verified(target, key)
    assert run.redaction is not None
    facts = run.redaction.model_dump()
    marker = facts["redacted"][0]["sha256"]
    for item in facts["redacted"]:
        item["sha256"] = "0" * 64

    def other(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if row["text"] == f"redacted:sha256:{marker}":
                row["text"] = f"redacted:sha256:{'0' * 64}"

    rows = run.tables["violations"].to_pylist()
    other(rows)
    data = table_bytes("violations", build_table("violations", rows))
    facts["files"] = [{"name": "violations.arrow", "bytes": len(data), "sha256": sha256(data)}]
    (target / "violations.arrow").write_bytes(data)
    resign(target, key, facts)
    with pytest.raises(RecordRefused, match="more differs from the original"):
        verified(target, key)


def test_the_original_file_or_another_one_in_a_redacted_files_place_is_refused(folder: Path, key: NewKey) -> None:
    target = redacted(folder, key, place(folder, key, "text"))
    original = (folder / "violations.arrow").read_bytes()
    (target / "violations.arrow").write_bytes(original)
    with pytest.raises((ContentRefused, FolderRefused)):
        verified(target, key)


def test_redacted_files_without_their_redaction_are_refused(folder: Path, key: NewKey) -> None:
    target = redacted(folder, key, place(folder, key, "text"))
    (target / REDACTION_NAME).unlink()
    with pytest.raises((ContentRefused, FolderRefused)):
        verified(target, key)


def test_an_unsigned_redaction_is_refused(folder: Path, key: NewKey) -> None:
    target = redacted(folder, key, place(folder, key, "text"), sign=False)
    with pytest.raises(FolderRefused, match="doesn't belong"):
        verified(target, key)


def test_a_redaction_by_a_stranger_or_a_throwaway_key_is_refused(folder: Path, key: NewKey, tmp_path: Path) -> None:
    target = redacted(folder, key, place(folder, key, "text"), sign=False)
    statement = (target / DRAFT_NAME).read_bytes()
    throwaway = new_key(tmp_path / "t", "t", throwaway=True)
    with pytest.raises(SignatureRefused, match="throwaway"):
        sign_run(target, throwaway.private)
    (target / DRAFT_NAME).unlink()
    for other in (new_key(tmp_path / "o", "o"), throwaway):
        (target / REDACTION_NAME).write_bytes(sign_payload(statement, load_private(other.private)))
        with pytest.raises(SignatureRefused):
            verify_run(target, [load_public(key.public), load_public(throwaway.public)])


def test_another_runs_redaction_is_refused(folder: Path, key: NewKey, tmp_path: Path) -> None:
    other = builder.sealed_run(tmp_path / "others", key.private, model_id="model-b")
    target = redacted(folder, key, place(folder, key, "text"))
    (other / REDACTION_NAME).write_bytes((target / REDACTION_NAME).read_bytes())
    with pytest.raises(StatementRefused, match="its redaction is of another run"):
        verified(other, key)


def test_a_redactor_who_spoils_the_game_gets_no_signature(folder: Path, key: NewKey) -> None:
    target = redacted(folder, key, place(folder, key, "text"), sign=False)
    data = bytearray((target / "turns.arrow").read_bytes())
    data[-200] ^= 1
    (target / "turns.arrow").write_bytes(data)
    with pytest.raises(VerificationError):
        sign_run(target, key.private)


@pytest.mark.parametrize(
    "change",
    [
        {"redacted": []},
        {"files": []},
        {"statement_sha256": "x"},
        {"redaction_schema": "2"},
        {"more": 1},
    ],
)
def test_what_is_no_redaction(folder: Path, key: NewKey, change: dict[str, Any]) -> None:
    run = verified(redacted(folder, key, place(folder, key, "text")), key)
    assert run.redaction is not None
    with pytest.raises(InvalidRecord):
        Redaction.of({**run.redaction.model_dump(), **change})
    statement = json.loads(run.redaction.statement())
    statement["predicate"] |= change
    with pytest.raises(DocumentRefused):
        Redaction.parse(json.dumps(statement).encode())


def test_what_cannot_be_redacted(folder: Path, key: NewKey) -> None:
    run = verified(folder, key)
    wish = place(folder, key, "question")
    ask = next(row for row in run.tables["turns"].to_pylist() if row["kind"] == "ask")
    for bad, why in (
        (Wish(wish.trial_id, wish.turn, "final_token"), "can't be redacted"),
        (Wish(wish.trial_id, wish.turn, "excerpt"), "needs its number"),
        (Wish(wish.trial_id, 999, "question"), "there is no question"),
        (Wish(ask["trial_id"], ask["turn"], "guess_name"), "is empty"),
    ):
        with pytest.raises(InvalidRecord, match=why):
            redact(run.statement.predicate, run.statement_sha256, run.tables, (), [bad], WHY, AT)


def test_a_statement_whose_digests_of_rows_are_wrong_is_not_signed(tmp_path: Path, key: NewKey) -> None:
    draft = builder.draft()
    draft.facts["redactable"] = {"turns": "0" * 64, "evidence": "0" * 64, "violations": "0" * 64}
    with pytest.raises(RecordRefused, match="digests of rows"):
        sign_run(draft.seal(tmp_path / "runs"), key.private)


def test_redacted_tables_hold_nothing_under_their_markers(folder: Path, key: NewKey) -> None:
    target = redacted(folder, key, *(place(folder, key, field) for field in FIELDS))
    run = verified(target, key)
    assert run.redaction is not None
    for name in REDACTABLE:
        with pa.memory_map(str(target / f"{name}.arrow")) as source:
            table = pa.ipc.open_file(source).read_all()
        assert table_bytes(name, table) == (target / f"{name}.arrow").read_bytes()
