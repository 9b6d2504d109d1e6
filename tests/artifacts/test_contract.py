"""Release contracts: one whole tuple; each field that differs shows, clause by clause; what isn't real and complete equals none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deep20ray.canonical import canonical, digest_of
from deep20ray_artifacts.contract import Contract
from deep20ray_artifacts.documents import verify_document
from deep20ray_artifacts.errors import DocumentRefused, EnvelopeRefused, InvalidRecord, KeyRefused, RecordRefused, SignatureRefused
from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.qualification import Candidate, Clause, check, qualify
from deep20ray_artifacts.signing import NewKey, load_private, new_key, sign_document, sign_payload
from deep20ray_artifacts.verify import verify_run
from tests.artifacts import builder
from tests.artifacts.releases import contract_of, plan_of, release_draft, replan, sealed, signed_contract

Change = Callable[[builder.RunDraft], None]


def judged(
    tmp_path: Path, key: NewKey, change: Change | None = None, contract: Contract | None = None, late: Change | None = None
) -> list[Clause]:
    """The clauses that don't hold for a run that equals the contract but for one change."""
    run = release_draft()
    contract = contract or contract_of(run)
    if change is not None:
        change(run)
    if late is not None:
        run = builder.recorded(run)
        late(run)
    folder = sealed(run, tmp_path / "runs", key.private)
    keys = [load_public(key.public)]
    candidate = Candidate.of(verify_run(folder, keys), keys)
    path = signed_contract(tmp_path / "contract.dsse.json", contract, key.private)
    signed = verify_document(Contract, path, keys)
    failing = [clause for clause in check(candidate, contract) if not clause.holds]
    official = qualify(candidate, [signed])
    assert (official is None) is bool(failing)
    assert official is None or official.contract == signed
    return failing


def test_a_run_that_equals_its_contract_is_official(tmp_path: Path, key: NewKey) -> None:
    assert judged(tmp_path, key) == []


CONTRACT: dict[str, Any] = {
    "protocol version": {"protocol_version": digest_of("another")},
    "seed": {"run_seed": "another"},
    "adjudication policy": {"policy": "bounded-judge"},
    "cohort": {"cohort": "another"},
    "cohort's digest": {"cohort_sha256": digest_of("another")},
    "search back-end": {"search_backend": "brave"},
    "search settings": {"search_sha256": digest_of("another")},
    "fetch policy": {"fetch_policy": "public-pages-v1"},
    "reuse policy": {"reuse_policy": "run"},
}


@pytest.mark.parametrize("clause", CONTRACT)
def test_every_field_of_the_game_counts(tmp_path: Path, key: NewKey, clause: str) -> None:
    contract = contract_of(release_draft(), **CONTRACT[clause])
    assert [each.name for each in judged(tmp_path, key, contract=contract)] == [clause]


def test_another_description_of_a_subject_is_another_contract(tmp_path: Path, key: NewKey) -> None:
    contract = contract_of(release_draft())
    subjects = [each.model_dump() for each in contract.subjects]
    subjects[3]["subject_sha256"] = digest_of("another")
    contract = Contract.of({**contract.model_dump(), "subjects": subjects})
    failing = judged(tmp_path, key, contract=contract)
    assert [each.name for each in failing] == ["subjects and their descriptions"] and "T-0004" in failing[0].found


@pytest.mark.parametrize("role", ["guesser", "oracle", "reviewer", "judge", "validator"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("provider", "gemini"),
        ("requested_model", "another"),
        ("effort", "high"),
        ("sampling", '{"temperature":0.5}'),
        ("max_output_tokens", 2048),
        ("prompt_revision", "another-r2"),
        ("prompt_sha256", digest_of("another")),
    ],
)
def test_every_field_of_every_role_counts(tmp_path: Path, key: NewKey, role: str, field: str, value: object) -> None:
    facts = contract_of(release_draft()).model_dump()
    entry = facts["guessers"][0] if role == "guesser" else facts["support"][role]
    entry[field] = value
    assert [each.name for each in judged(tmp_path, key, contract=Contract.of(facts))] == [f"{role}: {field}"]


def test_any_other_parameter_counts_by_the_digest_of_all(tmp_path: Path, key: NewKey) -> None:
    def change(run: builder.RunDraft) -> None:
        plan = plan_of(run)
        entry = {name: value for name, value in plan["support"]["judge"].items() if name != "config_sha256"} | {"send_seed": False}
        plan["support"]["judge"] = entry | {"config_sha256": digest_of(entry)}
        next(row for row in run.rows["roles"] if row["role"] == "judge")["config_sha256"] = digest_of(entry)
        replan(run, plan)

    assert [each.name for each in judged(tmp_path, key, change)] == ["judge: config_sha256", "judge: parameters of the plan"]


def test_a_digest_copied_from_a_contract_does_not_help(tmp_path: Path, key: NewKey) -> None:
    def change(run: builder.RunDraft) -> None:
        plan = plan_of(run)
        plan["support"]["judge"]["send_seed"] = False
        replan(run, plan)

    with pytest.raises(RecordRefused, match="digest of the judge's settings"):
        judged(tmp_path, key, change)


def test_a_guesser_that_is_not_registered_is_not_official(tmp_path: Path, key: NewKey) -> None:
    contract = contract_of(release_draft("another"))
    assert [each.name for each in judged(tmp_path, key, contract=contract)] == ["Guesser is registered"]


# ---- what can't be official


def test_a_simulated_run_equals_no_contract(tmp_path: Path, key: NewKey) -> None:
    def simulated(run: builder.RunDraft) -> None:
        run.facts["simulated"] = run.rows["run"][0]["simulated"] = True

    assert [each.name for each in judged(tmp_path, key, simulated)] == ["played by real models"]
    for changed in ({"search_backend": "embedded"}, {"support": {"oracle": {"provider": "simulator"}}}):
        facts = contract_of(release_draft()).model_dump()
        if "support" in changed:
            facts["support"]["oracle"]["provider"] = "simulator"
        else:
            facts |= changed
        with pytest.raises(InvalidRecord, match="real models and a real search"):
            Contract.of(facts)


def test_a_diagnostic_shape_makes_no_contract() -> None:
    facts = contract_of(release_draft()).model_dump()
    for changed in ({"rounds": 2}, {"subjects": facts["subjects"][:9]}, {"subjects": [facts["subjects"][0]] * 10}):
        with pytest.raises(InvalidRecord, match="all else is diagnostic"):
            Contract.of(facts | changed)


def test_a_contract_leaves_nothing_open() -> None:
    facts = contract_of(release_draft()).model_dump()
    for name in facts:
        with pytest.raises(InvalidRecord):
            Contract.of({key: value for key, value in facts.items() if key != name})
    for role in facts["support"].values():
        assert role["served_models"]
    facts["support"]["oracle"]["served_models"] = []
    with pytest.raises(InvalidRecord, match="served_models"):
        Contract.of(facts)


def test_an_incomplete_run_is_not_official(tmp_path: Path, key: NewKey) -> None:
    def incomplete(run: builder.RunDraft) -> None:
        trial = run.rows["trials"][-1]
        for table in ("turns", "evidence", "audits", "usage", "violations"):
            run.rows[table] = [row for row in run.rows[table] if row["trial_id"] != trial["trial_id"]]
        zero = ("turns", "asks", "guesses", "rejected_guesses", "repeated_guesses", "violations", "counted_penalties")
        trial |= dict.fromkeys((*zero, "unknown_answers", "degenerate_questions"), 0)
        none = ("success", "terminal_reason", "counted_questions", "score", "completed_at", "duration_ms")
        trial |= dict.fromkeys(none) | {"status": "infrastructure", "cause": "transport"}
        trial |= builder.answering(run.rows["usage"], trial["trial_id"])
        run.rows["run"][0] |= {"status": "incomplete", "scored_trials": 29, "completed_at": None}
        run.facts |= {"status": "incomplete", "completed_at": None}

    assert [each.name for each in judged(tmp_path, key, incomplete)] == ["complete"]


def test_missing_and_contradicted_audits_disqualify(tmp_path: Path, key: NewKey) -> None:
    def missing(run: builder.RunDraft) -> None:
        row = next(row for row in run.rows["audits"] if row["call"] == "validator")
        for table in ("audits", "usage"):
            run.rows[table] = [
                each
                for each in run.rows[table]
                if (each["trial_id"], each["turn"], each["call"]) != (row["trial_id"], row["turn"], "validator")
            ]

    def wrong(run: builder.RunDraft) -> None:
        next(row for row in run.rows["audits"] if row["call"] == "guesser")["message_sha256"] = digest_of("a leak")

    assert [each.name for each in judged(tmp_path / "one", key, missing)] == ["every required audit is kept"]
    assert [each.name for each in judged(tmp_path / "two", key, late=wrong)] == ["no audit contradicts the record"]


def test_drift_disqualifies(tmp_path: Path, key: NewKey) -> None:
    def rows(run: builder.RunDraft, role: str) -> list[dict[str, Any]]:
        return [row for row in run.rows["audits"] if row["call"] == role]

    def another(run: builder.RunDraft) -> None:
        rows(run, "oracle")[5]["served_model"] = "support-oracle-mini"

    def listed(run: builder.RunDraft) -> None:
        rows(run, "judge" if rows(run, "judge") else "reviewer")[0]["served_model"] = "a-second-name"

    def silent(run: builder.RunDraft) -> None:
        rows(run, "validator")[0]["served_model"] = None

    found = [each.name for each in judged(tmp_path / "one", key, another)]
    assert found == ["oracle: answered under listed names", "oracle: no drift within the run"]
    facts = contract_of(release_draft()).model_dump()
    facts["support"]["reviewer"]["served_models"] = ["support-reviewer", "a-second-name"]
    assert [each.name for each in judged(tmp_path / "two", key, listed, Contract.of(facts))] == ["reviewer: no drift within the run"]
    assert [each.name for each in judged(tmp_path / "three", key, silent)] == ["validator: every reply says who answered"]


# ---- signing


def test_a_contract_is_signed_by_the_ordinary_command_and_read_back(tmp_path: Path, key: NewKey) -> None:
    contract = contract_of(release_draft())
    path = tmp_path / "r1.json"
    path.write_bytes(contract.statement())
    signed, digest = sign_document(path, key.private)
    assert signed == tmp_path / "r1.dsse.json"
    read = verify_document(Contract, signed, [load_public(key.public)])
    assert (read.predicate, read.sha256) == (contract, digest)


def test_what_is_no_contract_is_refused(tmp_path: Path, key: NewKey) -> None:
    contract, trusted = contract_of(release_draft()), [load_public(key.public)]

    def signed(payload: bytes, **more: Any) -> Path:
        path = tmp_path / "x.dsse.json"
        path.write_bytes(sign_payload(payload, load_private(key.private), **more))
        return path

    path = signed(contract.statement())
    data = path.read_bytes()
    for spoilt, error in (
        (data[:-20] + b"A" + data[-19:], (EnvelopeRefused, SignatureRefused)),
        (b"{}", EnvelopeRefused),
        (b"x" * (1 << 21), DocumentRefused),
    ):
        path.write_bytes(spoilt)
        with pytest.raises(error):
            verify_document(Contract, path, trusted)
    statement = contract.statement()
    for payload in (
        statement.replace(b'"contract_schema":"1"', b'"contract_schema":"2"'),
        statement.replace(b'"id":"edition-1.1-r1"', b'"id":"edition-1.1-r2"'),
        statement.replace(b"release-contract/v1", b"run/v1"),
        statement.replace(b'"rounds":3', b'"rounds":3,"rounds":3'),
        statement.replace(b'"rounds":3', b'"rounds":3.0'),
        statement + b"\n",
        canonical([]),
    ):
        assert payload != statement
        with pytest.raises(DocumentRefused):
            verify_document(Contract, signed(payload), trusted)
    with pytest.raises(EnvelopeRefused):
        verify_document(Contract, signed(statement, payload_type="application/json"), trusted)
    other = new_key(tmp_path / "other", "other")
    with pytest.raises(SignatureRefused):
        verify_document(Contract, signed(statement), [load_public(other.public)])


def test_a_throwaway_key_signs_no_contract(tmp_path: Path, key: NewKey) -> None:
    throwaway = new_key(tmp_path / "t", "t", throwaway=True)
    path = tmp_path / "r1.json"
    path.write_bytes(contract_of(release_draft()).statement())
    with pytest.raises(SignatureRefused, match="throwaway"):
        sign_document(path, throwaway.private)
    forged = signed_contract(tmp_path / "f.dsse.json", contract_of(release_draft()), throwaway.private)
    with pytest.raises(SignatureRefused, match="throwaway"):
        verify_document(Contract, forged, [load_public(throwaway.public)])


def test_nothing_else_is_signed_as_a_document(tmp_path: Path, key: NewKey) -> None:
    run = release_draft()
    folder = builder.recorded(run).seal(tmp_path / "runs")
    with pytest.raises(DocumentRefused, match="no document that can be signed"):
        sign_document(folder / "statement.json", key.private)
    path = tmp_path / "x.json"
    path.write_bytes(b"not json")
    with pytest.raises(DocumentRefused):
        sign_document(path, key.private)
    with pytest.raises(KeyRefused):
        sign_document(path, tmp_path / "nowhere.key")
