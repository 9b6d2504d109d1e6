"""Recorded against sealed: reads the sealed Arrow files with pyarrow alone, and the published board as text.

It must not load any code of the system that it checks; the recorded games are handed to it as plain values.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pathlib import Path

    from tests.replay.recording import Game, Run, Step

TOLERANCE = 1e-9
Row = dict[str, Any]


def table(folder: Path, name: str) -> list[Row]:
    """A sealed table's rows."""
    with pa.memory_map(str(folder / f"{name}.arrow")) as source:
        rows: list[Row] = pa.ipc.open_file(source).read_all().to_pylist()
    return rows


def trials(run: Run, folder: Path) -> list[str]:
    """One line for each recorded trial that the sealed run shows differently."""
    sealed = {(row["subject_id"], row["round"]): row for row in table(folder, "trials")}
    turns, violations = _by_trial(table(folder, "turns")), _by_trial(table(folder, "violations"))
    lines = []
    for key, game in sorted(run.games.items()):
        row = sealed.pop(key, None)
        difference = "it was not played" if row is None else _difference(game, row, turns[row["trial_id"]], violations[row["trial_id"]])
        if difference:
            lines.append(f"{run.id} {key[0]} round {key[1]}: {difference}")
    return lines + [f"{run.id} {key[0]} round {key[1]}: it was played and not recorded" for key in sorted(sealed)]


def comparable(run: Run, folder: Path) -> bool:
    """Whether every trial has its recorded score. Only then does the run's own score say anything that its trials don't say already."""
    sealed = {(row["subject_id"], row["round"]): row["score"] for row in table(folder, "trials")}
    return sealed == {key: game.score for key, game in run.games.items()}


def scores(runs: list[Run], board: Path) -> tuple[list[str], float]:
    """Lines for runs whose published score or interval differs by more than 1e-9, and the greatest difference of all."""
    with board.open(encoding="utf-8", newline="") as file:
        shown = {row["model_id"]: row for row in csv.DictReader(file)}
    lines, worst = [], 0.0
    for run in runs:
        if run.published is None:
            continue
        row = shown.get(run.slug)
        if row is None:
            lines.append(f"{run.id}: it has no published score")
            continue
        differences = {ours: _apart(row[ours], run.published[theirs]) for ours, theirs in _COLUMNS.items()}
        worst = max(worst, *differences.values())
        if said := [f"{ours} {row[ours]} ({apart:.2g} off)" for ours, apart in differences.items() if apart > TOLERANCE]:
            lines.append(f"{run.id}: {', '.join(said)}")
    return lines, worst


_COLUMNS = {"score": "score", "low_95": "low", "high_95": "high"}


def _apart(shown: str, recorded: float) -> float:
    """How far apart two numbers are; a number that isn't shown, or isn't one, is infinitely far."""
    apart = abs(float(shown or "nan") - recorded)
    return apart if apart == apart else float("inf")


def _difference(game: Game, row: Row, turns: list[Row], violations: list[Row]) -> str | None:
    if row["status"] != "scored":
        return f"{row['status']}, {row['cause']}"
    recorded = (game.success, game.reason, game.counted, game.score)
    played = (row["success"], row["terminal_reason"], row["counted_questions"], row["score"])
    if recorded != played:
        return f"recorded {recorded}, played {played}"
    left_out = {step.turn for step in game.steps if step.stray}
    steps = [step for step in game.steps if not step.stray]
    return _apart_at([_step(step) for step in steps], [_turn(turn) for turn in turns if turn["turn"] not in left_out]) or _apart_at(
        [(step.turn, step.listed) for step in steps if step.kind == "violation"],
        [(row["turn"], row["kind"]) for row in violations if row["turn"] not in left_out],
    )


def _apart_at(recorded: list[tuple[Any, ...]], played: list[tuple[Any, ...]]) -> str | None:
    """The first difference of two lists of (turn, ...)."""
    for want, have in zip(recorded, played, strict=False):
        if want != have:
            return f"turn {want[0]}: recorded {_said(want)}; played {_said(have)}"
    return None if len(recorded) == len(played) else f"recorded {len(recorded)} turns, played {len(played)}"


def _said(values: tuple[Any, ...]) -> str:
    return " ".join(str(value) for value in values[1:] if value is not None)


_ROLES = ("oracle", "reviewer", "judge")


def _step(step: Step) -> tuple[Any, ...]:
    given = {role: token for role, (token, _) in step.roles.items()}
    return step.turn, step.kind, step.counted, step.token, step.violation, *(given.get(role) for role in (*_ROLES, "validator"))


def _turn(row: Row) -> tuple[Any, ...]:
    given = (*(row[role] for role in _ROLES), row["verdict"])
    return row["turn"], row["kind"], row["counted_questions"], row["final_token"], row["violation_kind"], *given


def _by_trial(rows: list[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: int(row["turn"])):
        found[row["trial_id"]].append(row)
    return found
