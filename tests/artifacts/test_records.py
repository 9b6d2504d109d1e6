"""Tables that are authentic and contradict each other, the statement or the rules: neither the signer nor a reader accepts them."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from deep20ray_artifacts.errors import RecordRefused
from deep20ray_artifacts.keys import TrustedKey
from deep20ray_artifacts.signing import NewKey, sign_run
from deep20ray_artifacts.statement import Journal, Model, RunLimits
from deep20ray_artifacts.verify import check_sealed, verify_run
from tests.artifacts.builder import RunDraft, draft, force_sign, settle

FIRST = 0  # trials: success after 8 questions, with a violation, two rejected guesses, a judged answer
Change = Callable[[RunDraft], object]


def _set(table: str, index: int, **values: Any) -> Change:
    return lambda run: run.rows[table][index].update(values)


def _drop(table: str, index: int) -> Change:
    return lambda run: run.rows[table].pop(index)


def _again(table: str, index: int, **values: Any) -> Change:
    return lambda run: run.rows[table].append({**run.rows[table][index], **values})


def _fact(**values: Any) -> Change:
    return lambda run: run.facts.update(values)


def _swap(table: str, one: int, two: int) -> Change:
    def change(run: RunDraft) -> None:
        rows = run.rows[table]
        rows[one], rows[two] = rows[two], rows[one]

    return change


def _unscored(status: str, cause: str | None, drop_last: bool = True) -> Change:
    """The first trial stopped before its last turn."""

    def change(run: RunDraft) -> None:
        trial = run.rows["trials"][FIRST]
        trial |= {"status": status, "cause": cause, "success": None, "terminal_reason": None, "score": None, "completed_at": None}
        run.facts |= {"status": "incomplete", "completed_at": None}
        run.rows["run"][0] |= {"status": "incomplete", "completed_at": None, "scored_trials": 5}
        if drop_last:
            turn = trial["turns"]
            run.rows["turns"] = [row for row in run.rows["turns"] if (row["trial_id"], row["turn"]) != (trial["trial_id"], turn)]
            trial |= {"turns": turn - 1, "guesses": 2}
        settle(run.rows)

    return change


ATTACKS: dict[str, tuple[Change, str]] = {
    # The game, played again
    "a better score": (_set("trials", FIRST, score=3), "its turns give"),
    "a better count": (_set("trials", FIRST, score=3, counted_questions=3), "its turns give"),
    "a failure called success": (_set("trials", 1, success=True), "its turns give"),
    "another reason": (_set("trials", 1, terminal_reason="limit_exhausted"), "its turns give"),
    "a turn left out": (_drop("turns", 1), "without gaps"),
    "the last turn left out": (_drop("turns", 8), "don't end it"),
    "a turn twice": (_again("turns", 0), "without gaps"),
    "turns in another order": (_swap("turns", 0, 2), "without gaps"),
    "play after the end": (_again("turns", 8, turn=10), "after the end"),
    "a question that isn't counted": (_set("turns", 0, counted=False), "it counts"),
    "a wrong running count": (_set("turns", 0, counted_questions=0), "it counts"),
    "a changed verdict": (_set("turns", 3, verdict="YES", final_token="YES", counted=False, counted_questions=3), "after the end"),
    "a verdict that isn't told": (_set("turns", 3, final_token="UNKNOWN"), "token is its verdict"),
    "a changed token": (_set("turns", 0, final_token="NO"), "doesn't follow"),
    "a token without its Judge": (_set("turns", 4, judge=None, judge_basis=None), "doesn't follow"),
    "a Judge who wasn't needed": (_set("turns", 0, judge="YES"), "isn't the edition's"),
    "another path": (_set("turns", 0, path="judged"), "doesn't follow"),
    "an unknown token": (_set("turns", 0, oracle="MAYBE"), "isn't the edition's"),
    "an unknown basis": (_set("turns", 0, oracle_basis="hunch"), "basis"),
    "a basis of no answer": (_set("turns", 0, judge_basis="evidence"), "basis"),
    "an empty question": (_set("turns", 0, question=" "), "action contract"),
    "a long question": (_set("turns", 0, question="x" * 501), "action contract"),
    "a decomposed question": (_set("turns", 0, question="Is it cafe\u0301?"), "action contract"),
    "a question in a guess": (_set("turns", 3, question="Is it?"), "must be empty"),
    "a token for a violation": (_set("turns", 1, final_token="NO"), "must be empty"),
    "an unknown kind of turn": (_set("turns", 0, kind="hint"), "no ask, guess"),
    "an unknown kind of violation": (_set("turns", 1, violation_kind="rude"), "known violation"),
    "a repeat that isn't marked": (_set("turns", 5, repeated=False), "repeated"),
    "a repeat that is none": (_set("turns", 0, repeated=True), "repeated"),
    "a degenerate question unmarked": (_set("turns", 7, degenerate=False), "degenerate"),
    **{
        f"a wrong sum of {name}": (_set("trials", FIRST, **{name: 17}), name)
        for name in ("turns", "asks", "guesses", "rejected_guesses", "repeated_guesses", "violations", "counted_penalties", "unknown_answers")
    },
    "a scored trial with a cause": (_set("trials", FIRST, cause="quota"), "no cause"),
    "a scored trial without an end": (_set("trials", FIRST, completed_at=None), "an end"),
    "an unknown status": (_set("trials", FIRST, status="void"), "status is unknown"),
    "a bad game called infrastructure": (_unscored("infrastructure", "oracle: transport", drop_last=False), "isn't scored"),
    "infrastructure without a cause": (_unscored("infrastructure", None), "without a cause"),
    # Keys across tables
    "a turn of no trial": (_set("turns", 0, trial_id="f" * 64), "isn't part of the run"),
    "a trial of no subject": (_set("trials", FIRST, subject_id="T-0099"), "isn't part of the run"),
    "a trial of no round": (_set("trials", FIRST, round=4), "isn't part of the run"),
    "a trial twice": (_again("trials", FIRST), "stands 2 times"),
    "a round twice": (_again("trials", FIRST, trial_id="f" * 64), "stands 2 times"),
    "a trial left out": (_drop("trials", 5), "isn't part of the run|every round"),
    "another identity": (_set("trials", 5, trial_id="f" * 64), "identity"),
    "another variation": (_set("trials", FIRST, variation="0" * 12), "identity"),
    "a subject twice": (_again("subjects", 0), "stands 2 times"),
    "a subject left out": (_drop("subjects", 1), "subjects"),
    "a subject described otherwise": (_set("subjects", 0, description="Someone else."), "digest"),
    "evidence of no turn": (_set("evidence", 0, turn=99), "no question was asked"),
    "evidence of no trial": (_set("evidence", 0, trial_id="f" * 64), "no question was asked"),
    "evidence of a guess": (_set("evidence", 0, turn=4), "no question was asked"),
    "evidence twice": (_again("evidence", 0), "numbered"),
    "evidence with a gap": (_set("evidence", 0, number=2), "numbered"),
    "too much evidence": (_again("evidence", 3, number=4), "numbered"),
    "a long excerpt": (_set("evidence", 0, excerpt="x" * 1001), "published form"),
    "a violation left out": (_drop("violations", 0), "aren't those of the turns"),
    "a violation called otherwise": (_set("violations", 0, kind="refused"), "aren't those of the turns"),
    "a violation of no turn": (_again("violations", 0, turn=99), "aren't those of the turns"),
    "an audit of no trial": (_set("audits", 0, trial_id="f" * 64), "no turn or attempt"),
    "an audit of no turn": (_set("audits", 0, turn=11), "no turn or attempt"),
    "an audit of no attempt": (_set("audits", 0, attempt=2), "no turn or attempt"),
    "an audit of no role": (_set("audits", 0, call="coach"), "unknown kind"),
    "an audit twice": (_again("audits", 0), "stands 2 times"),
    "usage without an audit": (_drop("audits", 0), "audits.arrow doesn't have"),
    "usage twice": (_again("usage", 0), "stands 2 times"),
    "a terminal repair": (lambda run: run.rows["repairs"].append(_repair(run, state="terminal")), "unknown kind or state"),
    "a repair of no trial": (lambda run: run.rows["repairs"].append(_repair(run, trial_id="f" * 64)), "no turn or attempt"),
    "a role left out": (_drop("roles", 3), "five roles"),
    "a role twice": (_again("roles", 0), "stands 2 times"),
    "another guesser": (_set("roles", 0, requested_model="a-better-one"), "its guesser"),
    # The statement
    "an event left out": (_drop("chain", 2), "numbers? the journal's events"),
    "another event": (_set("chain", 2, event_sha256="0" * 64), "the journal's head"),
    "events in another order": (lambda run: _reorder(run), "the journal's head"),
    "an event that is no digest": (_set("chain", 2, event_sha256="xyz"), "the journal's head"),
    "another head": (_fact(journal=Journal(events=7, head="0" * 64)), "the journal's head"),
    "two runs in one": (_again("run", 0), "one row"),
    **{
        f"another {name}": (_set("run", 0, **{name: value}), name)
        for name, value in {
            "run_id": "x", "edition": "1.0", "policy": "x", "run_seed": "x", "model_id": "x", "simulated": False, "status": "incomplete",
            "planned_trials": 7, "scored_trials": 5, "cohort_sha256": "0" * 64, "protocol_version": "0" * 64, "plan_sha256": "0" * 64,
        }.items()
    },
    "started at another time": (lambda run: _move(run, "started_at"), "started_at"),
    "a later completion": (lambda run: _move(run, "completed_at"), "completed_at"),
    "limits of another edition": (_fact(limits=RunLimits(questions=50, failure_score=51, rounds=3, subjects=2)), "edition"),
    "an unknown edition": (_fact(edition="9.9"), "no edition"),
    "another edition's policy": (_fact(policy="evidence-first"), "no policy"),
    "another seed": (_fact(run_seed="seed-2"), "identity"),
    "another protocol": (_fact(protocol_version="0" * 64), "identity"),
    "more rounds": (_fact(limits=RunLimits(questions=40, failure_score=41, rounds=4, subjects=2)), "every round"),
    "another model": (_fact(model=Model(id="model-a", provider="openai-chat", requested="x")), "its guesser"),
    "an unfinished run called complete": (lambda run: _claim_complete(run), "says the run is complete"),
}  # fmt: skip


def _reorder(run: RunDraft) -> None:
    one, two = run.rows["chain"][2], run.rows["chain"][3]
    one["event_sha256"], two["event_sha256"] = two["event_sha256"], one["event_sha256"]


def _move(run: RunDraft, name: str) -> None:
    run.rows["run"][0][name] += timedelta(milliseconds=1)


def _claim_complete(run: RunDraft) -> None:
    facts = dict(run.facts)
    _unscored("unfinished", None)(run)
    run.facts |= {"status": facts["status"], "completed_at": facts["completed_at"]}


def _repair(run: RunDraft, **values: Any) -> dict[str, Any]:
    key = {name: run.rows["audits"][0][name] for name in ("trial_id", "attempt", "turn", "call", "ask")}
    return {**key, "state": "superseded", "cause": "transport", **values}


@pytest.mark.parametrize("name", ATTACKS)
def test_contradictions_are_refused(tmp_path: Path, key: NewKey, trusted: list[TrustedKey], name: str) -> None:
    change, words = ATTACKS[name]
    run = draft()
    change(run)
    folder = run.seal(tmp_path)
    with pytest.raises(RecordRefused, match=words) as caught:
        sign_run(folder, key.private)
    assert "\n" not in str(caught.value)
    with pytest.raises(RecordRefused, match=words):
        verify_run(force_sign(folder, key.private), trusted)


@pytest.mark.parametrize(("status", "cause"), [("infrastructure", "oracle: transport"), ("unfinished", None)])
def test_an_incomplete_run_is_accepted_as_such(tmp_path: Path, status: str, cause: str | None) -> None:
    run = draft()
    _unscored(status, cause)(run)
    for table in ("audits", "usage"):
        run.rows[table].append({**run.rows[table][0], "ask": 1, "state": "superseded"})
    settle(run.rows)
    predicate = check_sealed(run.seal(tmp_path)).statement.predicate
    assert (predicate.status, predicate.completed_at) == ("incomplete", None)
