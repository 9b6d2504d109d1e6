"""The replay finds what is wrong, and nothing else: on recordings where they are, and on small ones of the same form."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deep20ray.actions import Violation, parse
from deep20ray.score import score_run
from tests.replay.recording import RecordingError, convert, read
from tests.replay.server import replies_of

DATA = Path(__file__).parents[3] / "shared" / "data" / "deep20bench-v1.0"
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"recorded games are not there ({DATA.name} beside the checkout, under shared/data)"
)


def ask(turn: int, question: str, answer: str, oracle: str, reviewer: str | None, judge: str | None) -> dict[str, Any]:
    return {
        "turn": turn, "counted": True, "counted_questions": turn, "type": "ASK", "question": question, "guess_name": None,
        "guess_description": None, "answer": answer, "oracle": oracle, "reviewer": reviewer, "reviewer_basis": "evidence" if reviewer else None,
        "judge": judge, "judge_basis": "model_knowledge" if judge else None, "evidence_items": 1,
    }  # fmt: skip


def guess(turn: int, answer: str) -> dict[str, Any]:
    return {
        "turn": turn, "counted": answer == "NO", "counted_questions": turn, "type": "GUESS", "question": None, "guess_name": f"name {turn}",
        "guess_description": "someone", "answer": answer,
    }  # fmt: skip


def game(subject: str, round_: int) -> list[dict[str, Any]]:
    """A short game; each a little different."""
    turns = [ask(1, "Is it old?", "NO", "YES", "NO", "NO"), ask(2, f"Is it {subject}?", "UNKNOWN", "UNKNOWN", None, None)]
    for extra in range(round_):
        turns.append(guess(len(turns) + 1, "NO") if extra % 2 else ask(len(turns) + 1, f"Is it {extra}?", "YES", "YES", "YES", None))
    turns.append(
        {"turn": len(turns) + 1, "counted": True, "counted_questions": len(turns) + 1, "type": "violation", "kind": "invalid_json"}
    )
    return [*turns, guess(len(turns) + 1, "YES")]


def made(
    folder: Path, change: Callable[[dict[str, Any]], None] = lambda row: None, verdict: Callable[[dict[str, Any]], None] = lambda row: None
) -> Path:
    """A folder of the recorded form: one run, two subjects, three rounds. ``change`` edits turns, ``verdict`` edits guesses."""
    folder.mkdir()
    turns, guesses, violations, trials = [], [], [], []
    scores: dict[str, list[int]] = {}
    for subject in ("T-0001", "T-0007"):
        for round_ in (1, 2, 3):
            place = {"execution_id": "BX-1", "model_id": "M-0001", "target_id": subject, "trial": f"trial-{round_:03}"}
            played = game(subject, round_)
            counted = sum(turn["counted"] for turn in played)
            for turn in played:
                turns.append(place | turn)
                if turn["type"] == "GUESS":
                    guesses.append(place | {"turn": turn["turn"], "validator": turn["answer"]})
                if turn["type"] == "violation":
                    text = '{"result":{"action":"ASK","question":"a?","name":null,"description":null}}' * 2
                    violations.append(place | {"turn": turn["turn"], "rejected_outputs": [{"finish_reason": "stop", "text": text}]})
            trials.append(place | {"success": "True", "terminal_reason": "success", "counted_questions": counted, "score": counted})
            scores.setdefault(subject, []).append(counted)
    for row in turns:
        change(row)
    for row in guesses:
        verdict(row)
    for name, rows in (("turns", turns), ("guesses", guesses), ("violations", violations)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    score = score_run(scores)
    board = {
        "execution_id": "BX-1",
        "question_score": score.score,
        "question_score_ci_lower": score.low,
        "question_score_ci_upper": score.high,
    }
    for name, table in (("trials", trials), ("leaderboard-published", [board])):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(table[0]))
            writer.writeheader()
            writer.writerows(table)
    return folder


def run(folder: Path) -> tuple[int, list[str]]:
    """The whole command: exit code and lines."""
    done = subprocess.run([sys.executable, "-m", "tests.replay", str(folder)], capture_output=True, text=True, timeout=240, check=False)
    assert done.stdout, done.stderr
    return done.returncode, [line for line in done.stdout.splitlines() if "pages (preview)" not in line]


def test_unchanged_recordings_have_no_mismatch(tmp_path: Path) -> None:
    code, lines = run(made(tmp_path / "data"))
    assert lines == [lines[-1]]
    assert lines[-1].startswith("replay: 1 runs, 6 trials, 0 mismatches, max |difference| ")
    assert code == 0


@pytest.mark.full
def test_a_changed_final_token_is_exactly_that_trial(tmp_path: Path) -> None:
    def change(row: dict[str, Any]) -> None:
        if (row["target_id"], row["trial"], row["turn"]) == ("T-0007", "trial-002", 3):
            row["answer"] = "NO"

    code, lines = run(made(tmp_path / "data", change))
    assert lines[:-1] == ["BX-1 T-0007 round 2: turn 3: recorded ('ask', 'NO', None), played ('ask', 'YES', None)"]
    assert ", 1 mismatches, " in lines[-1]
    assert code == 1


def test_a_changed_verdict_is_exactly_that_trial(tmp_path: Path) -> None:
    def verdict(row: dict[str, Any]) -> None:
        if (row["target_id"], row["trial"], row["validator"]) == ("T-0001", "trial-003", "YES"):
            row["validator"] = "NO"

    code, lines = run(made(tmp_path / "data", verdict=verdict))
    assert [line.split(":")[0] for line in lines[:-1]] == ["BX-1 T-0001 round 3"]
    assert ", 1 mismatches, " in lines[-1]
    assert code == 1


def test_a_folder_of_another_form_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="not a folder of recorded games"):
        read(tmp_path)


def test_a_shared_seed_stops_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.replay.server.sampling_seed", lambda *parts: 7)
    with pytest.raises(RecordingError, match="share the seed"):
        replies_of(read(made(tmp_path / "data")))


def test_only_the_envelope_is_taken_off() -> None:
    inner = '{"action":"ASK","question":"a?","name":null,"description":null}'
    assert convert('{"result":' + inner + "}") == inner
    assert convert(('{"result":' + inner + "}") * 2) == inner * 2
    assert convert('{"result":' + inner + "}<|eos|>") == inner + "<|eos|>"
    assert convert('```{"result":' + inner + "}```") == "```" + inner + "```"
    assert json.loads(convert('{"result":' + inner + ',"_dummy":1}'))["_dummy"] == 1
    assert convert('{"result":{"action":"ASK","action":"GUESS"}}') == '{"action":"ASK","action":"GUESS"}'
    assert convert("prose") == "prose"
    assert convert('{"broken') == '{"broken'


@needs_data
def test_every_recorded_violation_keeps_its_fault() -> None:
    kinds = {"not_json": 0, "wrong_action": 0}
    for run_ in read(DATA).values():
        for game_ in run_.games.values():
            for step in game_.steps:
                if step.kind == "violation":
                    found = parse(step.text)
                    assert isinstance(found, Violation)
                    assert found.kind == step.violation
                    kinds[found.kind] += not step.stray
    assert kinds == {"not_json": 11, "wrong_action": 16}


@needs_data
@pytest.mark.full
def test_the_recorded_runs_come_out_as_recorded() -> None:
    code, lines = run(DATA)
    assert lines[:-1] == []
    assert lines[-1].startswith("replay: 6 runs, 210 trials, 0 mismatches")
    assert code == 0
