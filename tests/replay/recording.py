"""A folder of recorded games as steps that a server can play. Only the published form is read; nothing of it is kept in the project.

The recordings wrap an action in one ``result`` key; ours has none. Where only this envelope differs it is taken off, every other fault
stays: two objects stay two, a trailing marker stays, an extra key stays.
"""

import csv
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = {"invalid_json": "not_json", "invalid_action": "wrong_action"}
STRAY = "no action at all"
"""What is replayed for the last reply of a trial that broke the contract at the limit: the recordings leave it out."""

TrialKey = tuple[str, int]
"""(subject id, round)"""


class RecordingError(Exception):
    """A folder that isn't of the recorded form: one line that says where."""


@dataclass(frozen=True, slots=True)
class Step:
    """One Guesser reply and what followed."""

    turn: int
    text: str
    finish: str
    kind: str
    """ask, guess or violation"""
    token: str | None
    """The recorded final token; a violation's is None."""
    violation: str | None
    stray: bool
    """Added here, not recorded."""
    roles: dict[str, tuple[str, str]]
    """Role -> (token, basis)"""


@dataclass(frozen=True, slots=True)
class Game:
    """One recorded trial and what came of it."""

    key: TrialKey
    steps: tuple[Step, ...]
    success: bool
    reason: str
    counted: int
    score: int


@dataclass(frozen=True, slots=True)
class Run:
    """One recorded execution."""

    id: str
    model: str
    games: dict[TrialKey, Game]
    published: dict[str, float]
    """score, low, high"""

    @property
    def slug(self) -> str:
        """The model's id as ours."""
        return self.model.lower()

    @property
    def seed(self) -> str:
        """The run seed that its replay is played under."""
        return f"replay-{self.id}"


def read(folder: Path) -> dict[str, Run]:
    """Every execution of a folder.

    Raises:
        RecordingError: a file is missing or not of the form.
    """
    try:
        turns = _grouped(_lines(folder / "turns.jsonl"))
        verdicts = {(*_key(row), row["turn"]): row["validator"] for row in _lines(folder / "guesses.jsonl")}
        outputs = {(*_key(row), row["turn"]): row["rejected_outputs"][-1] for row in _lines(folder / "violations.jsonl")}
        trials = _grouped(_rows(folder / "trials.csv"))
        board = {row["execution_id"]: row for row in _rows(folder / "leaderboard-published.csv")}
        runs = {}
        for execution, rows in sorted(trials.items()):
            games = {
                _trial(row): _game(row, [turn for turn in turns[execution] if _key(turn) == _key(row)], verdicts, outputs) for row in rows
            }
            published = {ours: float(board[execution][theirs]) for ours, theirs in _PUBLISHED.items()}
            runs[execution] = Run(execution, rows[0]["model_id"], games, published)
        return runs
    except (OSError, KeyError, ValueError, TypeError, IndexError) as error:
        raise RecordingError(f"{folder}: not a folder of recorded games: {type(error).__name__} {error}") from None


_PUBLISHED = {"score": "question_score", "low": "question_score_ci_lower", "high": "question_score_ci_upper"}


def convert(text: str) -> str:
    """A rejected text without the one-key envelope of its objects, all else as it was."""
    decoder = json.JSONDecoder(object_pairs_hook=list)
    out, position = [], 0
    while (start := text.find("{", position)) >= 0:
        try:
            pairs, end = decoder.raw_decode(text, start)
        except ValueError:
            break
        out.append(text[position:start])
        out.append(_unwrapped(pairs, text[start:end]))
        position = end
    return "".join(out) + text[position:]


def _unwrapped(pairs: list[tuple[str, Any]], original: str) -> str:
    inner = dict(pairs).get("result")
    if not isinstance(inner, list) or [key for key, _ in pairs].count("result") != 1:
        return original
    # Keys beside the envelope are the fault; they stay, beside the action's own.
    return _dump([*inner, *((key, value) for key, value in pairs if key != "result")])


def _dump(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, tuple) for item in value) and value:
        return "{" + ",".join(f"{json.dumps(key)}:{_dump(item)}" for key, item in value) + "}"
    return json.dumps(value, ensure_ascii=False)


def _game(row: dict[str, Any], turns: list[dict[str, Any]], verdicts: dict[Any, str], outputs: dict[Any, dict[str, Any]]) -> Game:
    steps = [_step(turn, verdicts, outputs) for turn in turns]
    if [step.turn for step in steps] != list(range(1, len(steps) + 1)):
        raise ValueError(f"the turns of {_key(row)} have gaps")
    cut = row["terminal_reason"] == "guesser_protocol_failure" and (not turns or turns[-1]["counted"])
    if cut:
        steps.append(Step(len(steps) + 1, STRAY, "stop", "violation", None, "not_json", True, {}))
    return Game(
        _trial(row), tuple(steps), row["success"] == "True", row["terminal_reason"], int(row["counted_questions"]), int(row["score"])
    )


def _step(turn: dict[str, Any], verdicts: dict[Any, str], outputs: dict[Any, dict[str, Any]]) -> Step:
    place = (*_key(turn), turn["turn"])
    if turn["type"] == "violation":
        rejected = outputs[place]
        return Step(turn["turn"], convert(rejected["text"]), rejected["finish_reason"], "violation", None, KINDS[turn["kind"]], False, {})
    action = {"action": turn["type"], "question": turn["question"], "name": turn["guess_name"], "description": turn["guess_description"]}
    if turn["type"] == "GUESS":
        roles = {"validator": (verdicts[place], "")}
    else:
        given = {role: (turn[role], turn.get(f"{role}_basis")) for role in ("oracle", "reviewer", "judge")}
        roles = {
            role: (token, "knowledge" if basis == "model_knowledge" else "evidence") for role, (token, basis) in given.items() if token
        }
    return Step(turn["turn"], json.dumps(action, ensure_ascii=False), "stop", turn["type"].lower(), turn["answer"], None, False, roles)


def _key(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["execution_id"], row["target_id"], int(row["trial"].removeprefix("trial-"))


def _grouped(rows: Iterator[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    grouped: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        grouped[row["execution_id"]].append(row)
    return grouped


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _trial(row: dict[str, Any]) -> TrialKey:
    _, subject, round_ = _key(row)
    return subject, round_
