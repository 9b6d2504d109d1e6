"""Attacks on a run folder, each shown refused with one line. Every test first holds a run that verifies."""

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deep20ray.canonical import canonical, sha256
from deep20ray.score import METHOD
from deep20ray_artifacts import dsse
from deep20ray_artifacts.errors import (
    ContentRefused,
    EnvelopeRefused,
    FolderRefused,
    SignatureRefused,
    StatementRefused,
    VerificationError,
)
from deep20ray_artifacts.keys import TrustedKey, load_public
from deep20ray_artifacts.limits import Limits
from deep20ray_artifacts.signing import NewKey, load_private, new_key, sign_payload, sign_run
from deep20ray_artifacts.statement import SCORING
from deep20ray_artifacts.verify import ATTESTATION_NAME, STATEMENT_NAME, check_sealed, verify_run
from tests.artifacts.builder import RunDraft, draft, force_sign, sealed_run


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> NewKey:
    """One key for the module; no test changes it."""
    return new_key(tmp_path_factory.mktemp("keys"), "signer")


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory, key: NewKey) -> Path:
    """A signed run that verifies, made once."""
    folder = sealed_run(tmp_path_factory.mktemp("sealed"), key.private)
    verify_run(folder, [load_public(key.public)])
    return folder


@pytest.fixture
def run(tmp_path: Path, sealed: Path) -> Path:
    """A test's own copy of it."""
    return Path(shutil.copytree(sealed, tmp_path / "runs" / sealed.name))


def _refused(folder: Path, trusted: list[TrustedKey], error: type[VerificationError], words: str, limits: Limits | None = None) -> None:
    with pytest.raises(error, match=words) as caught:
        verify_run(folder, trusted, limits)
    assert type(caught.value) is error
    assert caught.value.exit_code == 4
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("edition", ["1.0", "1.1"])
def test_a_run_of_each_edition_verifies(tmp_path: Path, key: NewKey, trusted: list[TrustedKey], edition: str) -> None:
    scores = {"T-0001": [3, 7, 51 if edition == "1.0" else 41], "T-0002": [0, 1, 40]}
    folder = sealed_run(tmp_path, key.private, edition=edition, scores=scores, simulated=False)
    verified = verify_run(folder, trusted)
    assert verified.keyid == key.keyid
    assert verified.statement.predicate.run_id == folder.name
    assert sorted(verified.tables["trials"].column("score").to_pylist()) == sorted(s for row in scores.values() for s in row)
    assert verified.plan == (folder / "plan.json").read_bytes()
    assert verified.statement_sha256 == sha256(verified.payload)


def test_the_default_run_has_every_terminal_reason(run: Path, trusted: list[TrustedKey]) -> None:
    tables = verify_run(run, trusted).tables
    reasons = set(tables["trials"].column("terminal_reason").to_pylist())
    assert reasons == {"success", "limit_exhausted", "guesser_protocol_failure", "validator_unknown"}
    assert set(tables["turns"].column("path").to_pylist()) == {None, "oracle_unknown", "agreed", "judged"}
    assert tables["evidence"].num_rows
    assert tables["violations"].num_rows


def test_sealing_and_signing_are_deterministic(tmp_path: Path, key: NewKey) -> None:
    one, two = (sealed_run(tmp_path / name, key.private) for name in ("one", "two"))
    assert {p.name: p.read_bytes() for p in one.iterdir()} == {p.name: p.read_bytes() for p in two.iterdir()}


# Entries of the folder


def _link(folder: Path) -> None:
    shutil.move(folder / "turns.arrow", folder.parent / "outside.arrow")
    (folder / "turns.arrow").symlink_to(folder.parent / "outside.arrow")


def _hard_link(folder: Path) -> None:
    os.link(folder / "turns.arrow", folder.parent / "second-name.arrow")


def _pipe(folder: Path) -> None:
    (folder / "turns.arrow").unlink()
    os.mkfifo(folder / "turns.arrow")


def _directory(folder: Path) -> None:
    (folder / "turns.arrow").unlink()
    (folder / "turns.arrow").mkdir()


def _socket(folder: Path) -> None:
    (folder / "turns.arrow").unlink()
    here = Path.cwd()
    os.chdir(folder)  # a socket's path may be short only
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("turns.arrow")
    finally:
        os.chdir(here)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_link, "no regular file"),
        (_hard_link, "hard links"),
        (_pipe, "no regular file"),
        (_directory, "no regular file"),
        (_socket, "no regular file"),
        (lambda f: (f / "turns.arrow").unlink(), "turns.arrow is missing"),
        (lambda f: (f / "turns.arrow").rename(f / "Turns.arrow"), "doesn't belong"),
        (lambda f: (f / "notes.txt").write_text(""), "doesn't belong"),
        (lambda f: (f / ".hidden").write_text(""), "doesn't belong"),
        (lambda f: (f / "turns\n.arrow").write_text(""), "doesn't belong"),
        (lambda f: (f / os.fsdecode(b"\xff.arrow")).write_text(""), "doesn't belong"),
        (lambda f: (f / STATEMENT_NAME).write_text("{}"), "doesn't belong beside"),
        (lambda f: (f / ATTESTATION_NAME).unlink(), "attestation.dsse.json is missing"),
        (lambda f: (f / ATTESTATION_NAME).rename(f / STATEMENT_NAME), "not signed"),
        (lambda f: (f / "turns.arrow").write_bytes((f / "turns.arrow").read_bytes() + b"\0"), "bytes, not the"),
        (lambda f: (f / "turns.arrow").write_bytes(b""), "has 0 bytes"),
    ],
)
def test_hostile_entries(run: Path, trusted: list[TrustedKey], spoil: Callable[[Path], Any], words: str) -> None:
    spoil(run)
    _refused(run, trusted, FolderRefused, words)


def test_a_link_to_a_run_or_no_folder_is_refused(run: Path, trusted: list[TrustedKey], tmp_path: Path) -> None:
    other = tmp_path / "links" / run.name
    other.parent.mkdir()
    other.symlink_to(run)
    _refused(other, trusted, FolderRefused, "not a run folder")
    _refused(tmp_path / "absent", trusted, FolderRefused, "not a run folder")
    _refused(run / "turns.arrow", trusted, FolderRefused, "not a run folder")


def test_bounds_hold(run: Path, trusted: list[TrustedKey]) -> None:
    _refused(run, trusted, FolderRefused, "more than the 100 that are read", Limits(attestation_bytes=100))
    _refused(run, trusted, FolderRefused, "more than the 100 that are read", Limits(file_bytes=100))
    _refused(run, trusted, FolderRefused, "larger than the 100 bytes", Limits(run_bytes=100))


# Contents


@pytest.mark.parametrize("name", ["run.arrow", "turns.arrow", "chain.arrow", "plan.json"])
def test_every_changed_byte_is_refused(run: Path, trusted: list[TrustedKey], name: str) -> None:
    data = (run / name).read_bytes()
    for position in (0, len(data) // 2, len(data) - 1):
        (run / name).write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        _refused(run, trusted, ContentRefused, f"{name} isn't the file that was sealed")


def test_a_file_of_another_run_is_refused(run: Path, key: NewKey, trusted: list[TrustedKey], tmp_path: Path) -> None:
    """Both runs are valid, of equal shape and signed by the same key; only the model's name differs, by no length."""
    other = sealed_run(tmp_path / "others", key.private, name="Model B")
    assert (other / "run.arrow").stat().st_size == (run / "run.arrow").stat().st_size
    shutil.copyfile(other / "run.arrow", run / "run.arrow")
    _refused(run, trusted, ContentRefused, "run.arrow isn't the file")


def test_a_renamed_run_is_refused(run: Path, trusted: list[TrustedKey]) -> None:
    moved = run.rename(run.with_name(run.name[:-1] + ("0" if run.name[-1] != "0" else "1")))
    _refused(moved, trusted, StatementRefused, "must bear the run's id")


@pytest.mark.parametrize(
    "plan", [b"[]", b'{"b":1,"a":2}', b'{"a": 1}', b'{"a":1,"a":1}', b'{"a":1}\n', b"\xff", b'{"a":NaN}', b'{"a":"\\ud800"}']
)
def test_a_plan_must_be_a_canonical_object(tmp_path: Path, key: NewKey, trusted: list[TrustedKey], plan: bytes) -> None:
    spoilt = draft()
    spoilt.plan = plan
    spoilt.rows["run"][0]["plan_sha256"] = sha256(plan)
    folder = spoilt.seal(tmp_path / "runs")
    with pytest.raises(ContentRefused, match="canonical form"):
        sign_run(folder, key.private)
    _refused(force_sign(folder, key.private), trusted, ContentRefused, "canonical form")


# Statement and envelope


def _restate(folder: Path, key: NewKey, change: Callable[[dict[str, Any]], object], kind: str = "application/vnd.in-toto+json") -> None:
    """Signs a changed statement with the trusted key: authentic, and still not acceptable."""
    envelope = json.loads((folder / ATTESTATION_NAME).read_bytes())
    statement = json.loads(base64.b64decode(envelope["payload"]))
    change(statement)
    (folder / ATTESTATION_NAME).write_bytes(sign_payload(canonical(statement), load_private(key.private), kind))


def _file(statement: dict[str, Any], name: str) -> dict[str, Any]:
    return next(file for file in statement["predicate"]["files"] if file["name"] == name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.update(_type="https://in-toto.io/Statement/v0.1"), "_type"),
        (lambda s: s.update(predicateType="https://slsa.dev/provenance/v1"), "predicateType"),
        (lambda s: s.update(note=1), "note"),
        (lambda s: s["predicate"].update(note=1), "note"),
        (lambda s: s["predicate"].pop("simulated"), "simulated"),
        (lambda s: s["predicate"].update(simulated="false"), "simulated"),
        (lambda s: s["predicate"].update(simulated=0), "simulated"),
        (lambda s: s["predicate"].update(artifact_schema="2"), "artifact_schema"),
        (lambda s: s["predicate"].update(scoring="median"), "scoring"),
        (lambda s: s["predicate"].update(run_id="../../etc"), "run_id"),
        (lambda s: s["predicate"].update(started_at="2026-12-01 09:30:00"), "started_at"),
        (lambda s: s["predicate"].update(started_at="2026-02-30T09:30:00.000Z"), "started_at"),
        (lambda s: s["predicate"].update(completed_at=None), "completed_at"),
        (lambda s: s["predicate"].update(status="incomplete"), "completed_at"),
        (lambda s: s["predicate"]["limits"].update(questions=40.5), "questions"),
        (lambda s: s["predicate"]["limits"].update(questions=True), "questions"),
        (lambda s: s["predicate"]["limits"].update(rounds=0), "rounds"),
        (lambda s: s["predicate"]["counts"].update(turns=1), "counts must equal"),
        (lambda s: s["predicate"].update(plan_sha256="0" * 64), "plan_sha256"),
        (lambda s: s["predicate"]["journal"].update(head="G" * 64), "head"),
        (lambda s: s["predicate"]["journal"].update(head="0" * 64 + "\n"), "head"),
        (lambda s: s["predicate"]["files"].reverse(), "files must list"),
        (lambda s: _file(s, "turns.arrow").update(name="../turns.arrow"), "files must list"),
        (lambda s: _file(s, "turns.arrow").update(schema_sha256="0" * 64), "its schema"),
        (lambda s: _file(s, "turns.arrow").update(media_type="text/html"), "its schema"),
        (lambda s: _file(s, "turns.arrow").update(rows=None), "its schema"),
        (lambda s: _file(s, "turns.arrow").update(bytes=-1), "bytes"),
        (lambda s: s["subject"].pop(), "subject must list"),
        (lambda s: s["subject"].append(s["subject"][-1]), "subject must list"),
        (lambda s: s["subject"].reverse(), "subject must list"),
        (lambda s: s["subject"][0].update(name="Audits.arrow"), "subject must list"),
        (lambda s: s["subject"][0]["digest"].update(sha512="0"), "sha512"),
        (lambda s: s.update(subject=[]), "subject must list"),
    ],
)
def test_statements_of_another_form(run: Path, key: NewKey, trusted: list[TrustedKey], change: Callable[[Any], object], words: str) -> None:
    _restate(run, key, change)
    _refused(run, trusted, StatementRefused, words)


@pytest.mark.parametrize("payload", [b"", b"null", b"[]", b'{"_type":1,"_type":1}', b'{"a":Infinity}', b"[" * 33 + b"]" * 33])
def test_payloads_that_are_no_statement(run: Path, key: NewKey, trusted: list[TrustedKey], payload: bytes) -> None:
    (run / ATTESTATION_NAME).write_bytes(sign_payload(payload, load_private(key.private)))
    _refused(run, trusted, StatementRefused, "^statement: ")


def test_another_payload_type_is_refused(run: Path, key: NewKey, trusted: list[TrustedKey]) -> None:
    _restate(run, key, lambda statement: None, kind="application/json")
    _refused(run, trusted, EnvelopeRefused, "no run's attestation")


def test_nothing_is_parsed_before_it_verifies(run: Path, key: NewKey, trusted: list[TrustedKey], tmp_path: Path) -> None:
    """A stranger's broken statement is refused for its signature, not for its form; likewise the files are not looked at."""
    stranger = new_key(tmp_path / "strangers", "stranger")
    (run / ATTESTATION_NAME).write_bytes(sign_payload(b"not even JSON", load_private(stranger.private)))
    (run / "turns.arrow").write_bytes(b"")
    _refused(run, trusted, SignatureRefused, "none of the 1 trusted")
    _refused(run, [], SignatureRefused, "none of the 0 trusted")


def test_two_signatures_are_refused(run: Path, key: NewKey, trusted: list[TrustedKey], tmp_path: Path) -> None:
    stranger = load_private(new_key(tmp_path / "strangers", "stranger").private)
    envelope = json.loads((run / ATTESTATION_NAME).read_bytes())
    envelope["signatures"] += json.loads(sign_payload(base64.b64decode(envelope["payload"]), stranger))["signatures"]
    (run / ATTESTATION_NAME).write_text(json.dumps(envelope))
    _refused(run, trusted, EnvelopeRefused, "one signature, not 2")


# Throwaway keys


def test_a_throwaway_key_is_for_simulated_runs(tmp_path: Path) -> None:
    marked = new_key(tmp_path / "keys", "demo", throwaway=True)
    keys = [load_public(marked.public)]
    verify_run(sealed_run(tmp_path / "runs", marked.private), keys)
    real = draft(model_id="real", simulated=False).seal(tmp_path / "runs")
    with pytest.raises(SignatureRefused, match="simulated runs only"):
        sign_run(real, marked.private)
    assert (real / STATEMENT_NAME).exists()
    _refused(force_sign(real, marked.private), keys, SignatureRefused, "simulated runs only")


# Signing


def test_sign_recomputes_before_it_signs(tmp_path: Path, key: NewKey) -> None:
    for name in ("turns.arrow", "chain.arrow", "plan.json"):
        folder = draft(model_id=name.replace(".", "-")).seal(tmp_path)
        data = bytearray((folder / name).read_bytes())
        data[len(data) // 2] ^= 1
        (folder / name).write_bytes(data)
        with pytest.raises(ContentRefused, match=name):
            sign_run(folder, key.private)
        assert not (folder / ATTESTATION_NAME).exists()


def test_signing_again_after_being_cut_short(tmp_path: Path, key: NewKey, trusted: list[TrustedKey]) -> None:
    folder = draft().seal(tmp_path)
    (folder / ATTESTATION_NAME).write_bytes(b"half a fi")
    with pytest.raises(FolderRefused, match="doesn't belong beside"):
        check_sealed(folder)
    digest = sign_run(folder, key.private)
    assert verify_run(folder, trusted).statement_sha256 == digest


def test_signing_twice_is_once(tmp_path: Path, run: Path, key: NewKey) -> None:
    """The same key again changes nothing; another key, or a run that was changed since, is refused with its reason."""
    before = (run / ATTESTATION_NAME).read_bytes()
    assert sign_run(run, key.private) == sha256(dsse.parse(before).payload)
    assert (run / ATTESTATION_NAME).read_bytes() == before
    other = new_key(tmp_path / "keys", "other")
    with pytest.raises(SignatureRefused, match=f"signed already, by key {key.keyid[:12]} and not by {other.keyid[:12]}"):
        sign_run(run, other.private)
    (run / "plan.json").write_bytes(b"{}")
    with pytest.raises(FolderRefused, match="bytes, not the"):
        sign_run(run, key.private)


def test_a_folder_one_level_up_is_named_as_such(run: Path, key: NewKey, trusted: list[TrustedKey]) -> None:
    """The sweep's folder, or that of its runs: the line says which folder to give."""
    for folder in (run.parent, run.parent.parent):
        _refused(folder, trusted, FolderRefused, f"give a run's own folder, such as .*/runs/{run.name}$")
        with pytest.raises(FolderRefused, match="give a run's own folder"):
            sign_run(folder, key.private)


def test_verifying_imports_nothing_that_signs() -> None:
    code = "import sys, deep20ray_artifacts.verify; print([m for m in sys.modules if 'signing' in m or m in ('ray', 'httpx')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_the_scoring_method_is_the_rules() -> None:
    assert SCORING == METHOD


def test_the_builder_is_honest_about_its_parameters(tmp_path: Path) -> None:
    made: RunDraft = draft(model_id="m", name="N", scores={"T-0003": [2, 2]}, simulated=False)
    predicate = check_sealed(made.seal(tmp_path)).statement.predicate
    assert (predicate.model.id, predicate.simulated, predicate.limits.rounds, predicate.limits.subjects) == ("m", False, 2, 1)
