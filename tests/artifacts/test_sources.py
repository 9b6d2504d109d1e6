"""Reused answers in signed tables: accepted where all agrees, refused where a turn claims a source that it can't have."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deep20ray.canonical import digest_of
from deep20ray_artifacts.errors import RecordRefused
from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.signing import new_key
from deep20ray_artifacts.sources import source_rows
from deep20ray_artifacts.verify import check_sealed, verify_run

from .builder import ARCHIVED, RunDraft, draft, force_sign, reuse

Change = Callable[[RunDraft], None]

AGAIN, FIRST, UNKNOWN, DEGENERATE = 6, 0, 2, 7
"""Rows of ``turns`` in the default run's first trial: "Is it real?" again and first, an unreviewed UNKNOWN, a question that is none."""
ELSEWHERE: dict[str, Any] = {
    "run": ARCHIVED,
    "trial": "a" * 64,
    "turn": 4,
    "at": 1_793_000_000_000,
    "policy": "archive",
    "cost_microusd": 70,
}


def run(policy: str = "sweep") -> RunDraft:
    """A run in which one answer is reused, from an earlier turn of the same trial."""
    made = draft()
    reuse(made, AGAIN, FIRST, policy)
    return made


def elsewhere(reuse_policy: str = "archive", **changes: Any) -> RunDraft:
    """A run in which one answer is from another run."""
    made = draft()
    reuse(made, UNKNOWN, ELSEWHERE | changes, reuse_policy)
    return made


def _set(index: int, **values: Any) -> Change:
    def change(made: RunDraft) -> None:
        made.rows["turns"][index] |= values
        made.rows["sources"] = source_rows(made.rows["turns"], {})

    return change


def _in(table: str, index: int, **values: Any) -> Change:
    return lambda made: made.rows[table][index].update(values)


def _called(made: RunDraft) -> None:
    """An adjudicator was called for a reused answer."""
    turn = made.rows["turns"][AGAIN]
    row = next(row for row in made.rows["usage"] if row["call"] == "oracle")
    made.rows["usage"].append({**row, "trial_id": turn["trial_id"], "turn": turn["turn"]})
    audit = next(row for row in made.rows["audits"] if row["call"] == "oracle")
    made.rows["audits"].append({**audit, "trial_id": turn["trial_id"], "turn": turn["turn"]})


def _evidence(made: RunDraft) -> None:
    turn = made.rows["turns"][AGAIN]
    row = next(row for row in made.rows["evidence"] if (row["trial_id"], row["turn"]) == (turn["trial_id"], turn["turn"]))
    row["excerpt"] = "Something else."


def _of_another_subject(made: RunDraft) -> None:
    """The first question of a trial of the other subject, with the text of this one."""
    index = next(
        i for i, row in enumerate(made.rows["turns"]) if row["kind"] == "ask" and row["trial_id"] != made.rows["turns"][0]["trial_id"]
    )
    other = made.rows["turns"][index]
    made.rows["turns"][AGAIN] |= {"source_trial": other["trial_id"], "source_turn": other["turn"], "source_policy": "run"}
    made.rows["sources"] = source_rows(made.rows["turns"], {})


ATTACKS: dict[str, tuple[Change, str]] = {
    "an unknown policy": (_in("run", 0, reuse_policy="always"), "no reuse policy"),
    "reuse where it is off": (_in("run", 0, reuse_policy="off"), "can't have an answer from there"),
    "half a source": (_set(AGAIN, source_turn=None), "isn't whole"),
    "a cost without a source": (_set(FIRST, source_cost_microusd=3), "isn't whole"),
    "a source that is no run": (_set(AGAIN, source_run="somewhere"), "no turn of a run"),
    "a source that is no turn": (_set(AGAIN, source_turn=0), "no turn of a run"),
    "a trial that is none": (_set(AGAIN, source_trial="ab"), "no turn of a run"),
    "a turn that isn't there": (_set(AGAIN, source_turn=99), "no question that was answered afresh"),
    "a guess as a source": (_set(AGAIN, source_turn=4), "no question that was answered afresh"),
    "itself as a source": (_set(AGAIN, source_turn=7), "no question that was answered afresh"),
    "another question": (_set(AGAIN, source_turn=5), "another question"),
    "another subject": (_of_another_subject, "another question"),
    "another path": (_set(AGAIN, oracle_basis="knowledge"), "isn't its source's"),
    "other evidence": (_evidence, "isn't its source's"),
    "another time": (_set(AGAIN, source_at=1_793_000_000_000), "isn't an earlier turn"),
    "another price": (_set(AGAIN, source_cost_microusd=1), "did not cost that"),
    "a source too far for its policy": (_set(AGAIN, source_policy="run"), "can't have an answer from there"),
    "an adjudicator who was called": (_called, "adjudicators were called"),
    "a degenerate question": (_set(DEGENERATE, **{f"source_{k}": v for k, v in ELSEWHERE.items()}), "a degenerate one's never"),
    "a guess": (_set(3, **{f"source_{k}": v for k, v in ELSEWHERE.items()}), "only the answer to a question"),
    "a disputed guess": (_set(3, disputed=True), "can be disputed"),
    "a summary left out": (lambda made: made.rows["sources"].clear(), "summary"),
    "a wrong summary": (_in("sources", 0, hits=2), "summary"),
    "a statement of no archive": (_in("sources", 0, statement_sha256="a" * 64), "summary"),
    "a statement that is no digest": (_in("sources", 0, statement_sha256="a"), "by its digest"),
    "a wrong number of reused answers": (_in("trials", 0, reused_answers=0), "reused_answers"),
    "a wrong cost of answering": (_in("trials", 0, adjudication_cost_microusd=1), "adjudication_cost"),
    "a wrong cost had nothing been reused": (_in("trials", 0, fresh_adjudication_cost_microusd=1), "fresh_adjudication_cost"),
}


@pytest.mark.parametrize("policy", ["trial", "run", "sweep", "archive"])
def test_a_reused_answer_is_accepted(tmp_path: Path, policy: str) -> None:
    check_sealed(run(policy).seal(tmp_path))


@pytest.mark.parametrize("changes", [{}, {"cost_microusd": None}])
def test_an_answer_from_an_archive_names_the_statement(tmp_path: Path, changes: dict[str, Any]) -> None:
    made = elsewhere()
    made.rows["turns"][UNKNOWN] |= {f"source_{name}": value for name, value in changes.items()}
    if changes:
        made.rows["trials"][0]["fresh_adjudication_cost_microusd"] = None
    made.rows["sources"] = source_rows(made.rows["turns"], {ARCHIVED: digest_of("archived")})
    (row,) = check_sealed(made.seal(tmp_path)).tables["sources"].to_pylist()
    assert (row["source_run"], row["source_policy"], row["statement_sha256"]) == (ARCHIVED, "archive", digest_of("archived"))
    assert (row["answers"], row["hits"], row["cost_microusd"]) == (1, 1, changes.get("cost_microusd", 70))


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_a_source_can_not_be_is_refused(tmp_path: Path, attack: str) -> None:
    change, words = ATTACKS[attack]
    made = run()
    change(made)
    key = new_key(tmp_path / "keys", "k", throwaway=True)
    folder = force_sign(made.seal(tmp_path), key.private)
    with pytest.raises(RecordRefused, match=words):
        verify_run(folder, [load_public(key.public)])


@pytest.mark.parametrize(
    ("policy", "source", "words"),
    [
        ("sweep", "archive", "can't have an answer from there"),
        ("run", "sweep", "can't have an answer from there"),
        ("archive", "run", "can't have an answer from there"),
        ("archive", "off", "can't have an answer from there"),
        ("archive", "sweep", ""),
    ],
)
def test_another_run_is_reached_by_sweep_and_archive_alone(tmp_path: Path, policy: str, source: str, words: str) -> None:
    made = elsewhere(policy, policy=source)
    folder = made.seal(tmp_path)
    if not words:
        check_sealed(folder)
        return
    with pytest.raises(RecordRefused, match=words):
        check_sealed(folder)


def test_an_archived_run_without_its_statement_is_refused(tmp_path: Path) -> None:
    made = elsewhere()
    made.rows["sources"][0]["statement_sha256"] = None
    with pytest.raises(RecordRefused, match="summary"):
        check_sealed(made.seal(tmp_path))


def test_answers_that_disagree_must_be_marked_in_every_turn_that_they_concern(tmp_path: Path) -> None:
    made = draft()
    made.rows["turns"][AGAIN] |= {"oracle": "NO", "reviewer": "NO", "final_token": "NO"}
    made.rows["run"][0]["reuse_policy"] = "trial"
    folder = made.seal(tmp_path / "unmarked")
    with pytest.raises(RecordRefused, match="it isn't disputed"):
        check_sealed(folder)
    for index in (FIRST, AGAIN):
        made.rows["turns"][index]["disputed"] = True
    check_sealed(made.seal(tmp_path / "marked"))
    made.rows["run"][0]["reuse_policy"] = "off"
    folder = made.seal(tmp_path / "off")
    with pytest.raises(RecordRefused, match="can be disputed"):
        check_sealed(folder)
