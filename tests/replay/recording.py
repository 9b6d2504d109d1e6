"""A folder of recorded games as steps that a server can play. Only the published form is read; nothing of it is kept in the project.

The recordings wrap an action in one ``result`` key; ours has none. Where only this envelope differs it is taken off, every other fault
stays: two objects stay two, a trailing marker stays, an extra key stays. Where the envelope itself was the fault (it was missing), the
fault stays as well: such an action is replayed inside one, which is ours.
"""

import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deep20ray.actions import Violation, parse

KINDS = {"invalid_json": "not_json", "invalid_action": "wrong_action"}
FINISHES = {
    **dict.fromkeys(("stop", "end_turn", "stop_sequence", "STOP"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "MAX_TOKENS"), "length"),
}
"""Other providers' names of a finish, as chat completions say it; any other finish is replayed as it was."""
UNREAD = {"length": "output_limit", "content_filter": "refused"}
"""What a reply that didn't end by itself is, whatever its text holds; any other finish makes it incomplete."""
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
    counted: int
    """Counted questions after this turn."""
    violation: str | None
    """The kind among the turns."""
    listed: str | None
    """The kind in the list of violations."""
    stray: bool
    """Not among the recorded turns."""
    roles: dict[str, tuple[str, str]]
    """Role -> (token, basis)"""
    evidence: int
    """How many items the Oracle gave."""


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
    slug: str
    """Our id of its model: the recorded one, or the execution's where a model was run more than once."""
    name: str
    seed: str
    """The run seed that its replay is played under."""
    games: dict[TrialKey, Game]
    published: dict[str, float] | None
    """score, low, high; None where the published board doesn't list it."""


def read(folder: Path, salt: str = "replay") -> dict[str, Run]:
    """Every execution of a folder. Another ``salt`` makes other run seeds.

    Raises:
        RecordingError: a file is missing or not of the form.
    """
    try:
        turns = _grouped(_lines(folder / "turns.jsonl"))
        verdicts = {(*_key(row), row["turn"]): row["validator"] for row in _lines(folder / "guesses.jsonl")}
        outputs = {(*_key(row), row["turn"]): row for row in _lines(folder / "violations.jsonl")}
        trials = _grouped(_rows(folder / "trials.csv"))
        board = {row["execution_id"]: row for row in _rows(folder / "leaderboard-published.csv")}
        models = [rows[0]["model_id"] for rows in trials.values()]
        runs = {}
        for execution, rows in sorted(trials.items()):
            games = {
                _trial(row): _game(row, [turn for turn in turns[execution] if _key(turn) == _key(row)], verdicts, outputs) for row in rows
            }
            published = {ours: float(board[execution][theirs]) for ours, theirs in _PUBLISHED.items()} if execution in board else None
            model = rows[0]["model_id"]
            slug = _slug(model if models.count(model) == 1 else execution)
            runs[execution] = Run(execution, slug, rows[0].get("model_name") or model, f"{salt}-{execution}", games, published)
        return runs
    except (OSError, KeyError, ValueError, TypeError, IndexError) as error:
        raise RecordingError(f"{folder}: not a folder of recorded games: {type(error).__name__} {error}") from None


_PUBLISHED = {"score": "question_score", "low": "question_score_ci_lower", "high": "question_score_ci_upper"}


def faulty(text: str) -> str:
    """A rejected text as ours, with its fault. It comes out as an action only where the original took it for one."""
    converted = convert(text)
    if isinstance(parse(converted), Violation):
        return converted
    # The envelope was the fault. A missing one becomes one too many; any other stays, and is one too many as it stands.
    return text if converted != text else '{"result":' + text + "}"


def convert(text: str) -> str:
    """A rejected text without the one-key envelope of its objects, all else as it was."""
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs)
    out, position = [], 0
    while (start := text.find("{", position)) >= 0:
        try:
            pairs, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            break
        out.append(text[position:start])
        out.append(_unwrapped(pairs, text[start:end]))
        position = end
    return "".join(out) + text[position:]


class _Pairs(list[tuple[str, Any]]):
    """An object's members in order, doubled keys included; an array stays a plain list."""


def _unwrapped(pairs: _Pairs, original: str) -> str:
    inner = dict(pairs).get("result")
    if not isinstance(inner, _Pairs) or [key for key, _ in pairs].count("result") != 1:
        return original
    # Keys beside the envelope are the fault; they stay, beside the action's own.
    return _dump(_Pairs([*inner, *((key, value) for key, value in pairs if key != "result")]))


def _dump(value: Any) -> str:
    match value:
        case _Pairs():
            return "{" + ",".join(f"{json.dumps(key)}:{_dump(item)}" for key, item in value) + "}"
        case list():
            return "[" + ",".join(map(_dump, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _game(row: dict[str, Any], turns: list[dict[str, Any]], verdicts: dict[Any, str], outputs: dict[Any, dict[str, Any]]) -> Game:
    steps = [_step(turn, verdicts, outputs) for turn in sorted(turns, key=lambda turn: turn["turn"])]
    if [step.turn for step in steps] != list(range(1, len(steps) + 1)):
        raise ValueError(f"the turns of {_key(row)} have gaps")
    if row["terminal_reason"] == "guesser_protocol_failure" and int(row["total_turns"]) == len(steps) + 1:
        steps.append(_cut(row, len(steps) + 1, outputs))
    return Game(
        _trial(row), tuple(steps), row["success"] == "True", row["terminal_reason"], int(row["counted_questions"]), int(row["score"])
    )


def _step(turn: dict[str, Any], verdicts: dict[Any, str], outputs: dict[Any, dict[str, Any]]) -> Step:
    place = (*_key(turn), turn["turn"])
    if turn["type"] == "violation":
        return _violation(turn["turn"], turn["counted"], turn["counted_questions"], turn["kind"], outputs[place])
    action = {"action": turn["type"], "question": turn["question"], "name": turn["guess_name"], "description": turn["guess_description"]}
    evidence = 0
    if turn["type"] == "GUESS":
        roles = {"validator": (verdicts[place], "")}
    else:
        given = {role: (turn[role], turn.get(f"{role}_basis")) for role in ("oracle", "reviewer", "judge")}
        roles = {
            role: (token, "knowledge" if basis == "model_knowledge" else "evidence") for role, (token, basis) in given.items() if token
        }
        evidence = int(turn.get("evidence_items") or 0)
    text, kind = json.dumps(action, ensure_ascii=False), turn["type"].lower()
    return Step(turn["turn"], text, "stop", kind, turn["answer"], turn["counted_questions"], None, None, False, roles, evidence)


def _violation(turn: int, penalty: bool, counted: int, kind: str, row: dict[str, Any]) -> Step:
    rejected = row["rejected_outputs"][-1]
    text, finish = rejected["text"] or "", FINISHES.get(rejected["finish_reason"], rejected["finish_reason"])
    # In the guess-only turn a well-formed ASK is a violation too; elsewhere a violation must stay one.
    said = faulty(text) if penalty else convert(text)
    return Step(
        turn, said, finish, "violation", None, counted, _kind(kind, said, finish), _kind(row["violation_kind"], said, finish), False, {}, 0
    )


def _cut(row: dict[str, Any], turn: int, outputs: dict[Any, dict[str, Any]]) -> Step:
    """The last reply of a trial that broke the contract at the limit: the published turns leave it out."""
    counted = int(row["counted_questions"])
    known = outputs.get((*_key(row), turn))
    if known is None:
        return Step(turn, STRAY, "stop", "violation", None, counted, None, None, True, {}, 0)
    return replace(_violation(turn, False, counted, known["violation_kind"], known), stray=True)


def _kind(recorded: str, text: str, finish: str) -> str:
    if finish != "stop":
        return UNREAD.get(finish, "incomplete")
    return KINDS.get(recorded, recorded) if text.strip() else "empty"


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:64]


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
