"""A small folder of the recorded form: one run, two subjects, three rounds."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deep20ray.score import score_run

DATA = Path(__file__).parents[3] / "shared" / "data" / "deep20bench-v1.0"


def ask(turn: int, question: str, answer: str, oracle: str, reviewer: str | None, judge: str | None) -> dict[str, Any]:
    return {
        "turn": turn, "counted": True, "counted_questions": turn, "type": "ASK", "question": question, "guess_name": None,
        "guess_description": None, "answer": answer, "oracle": oracle, "reviewer": reviewer, "reviewer_basis": "evidence" if reviewer else None,
        "judge": judge, "judge_basis": "model_knowledge" if judge else None, "evidence_items": 1,
    }  # fmt: skip


def guess(turn: int, answer: str) -> dict[str, Any]:
    return {
        "turn": turn, "counted": answer == "NO", "counted_questions": turn - (answer == "YES"), "type": "GUESS", "question": None, "guess_name": f"name {turn}",
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
                    violations.append(
                        place
                        | {
                            "turn": turn["turn"],
                            "violation_kind": turn["kind"],
                            "rejected_outputs": [{"finish_reason": "stop", "text": text}],
                        }
                    )
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
