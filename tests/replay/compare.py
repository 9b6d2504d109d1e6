"""Recorded against sealed: reads the sealed Arrow files with pyarrow alone, and the published board as text."""

import csv
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.replay.recording import Game, Run


def table(folder: Path, name: str) -> list[dict[str, Any]]:
    """A sealed table's rows."""
    with pa.memory_map(str(folder / f"{name}.arrow")) as source:
        rows: list[dict[str, Any]] = pa.ipc.open_file(source).read_all().to_pylist()
    return rows


def trials(run: Run, folder: Path) -> list[str]:
    """One line for each recorded trial that the sealed run shows differently."""
    sealed = {(row["subject_id"], row["round"]): row for row in table(folder, "trials")}
    turns: dict[str, list[dict[str, Any]]] = {}
    for row in table(folder, "turns"):
        turns.setdefault(row["trial_id"], []).append(row)
    lines = []
    for key, game in sorted(run.games.items()):
        row = sealed.pop(key, None)
        difference = "it was not played" if row is None else _difference(game, row, turns.get(row["trial_id"], []))
        if difference:
            lines.append(f"{run.id} {key[0]} round {key[1]}: {difference}")
    return lines + [f"{run.id} {key[0]} round {key[1]}: it was played and not recorded" for key in sorted(sealed)]


def _difference(game: Game, row: dict[str, Any], turns: list[dict[str, Any]]) -> str | None:
    if row["status"] != "scored":
        return f"{row['status']}, {row['cause']}"
    recorded = (game.success, game.reason, game.counted, game.score)
    played = (row["success"], row["terminal_reason"], row["counted_questions"], row["score"])
    if recorded != played:
        return f"recorded {recorded}, played {played}"
    wanted = [(step.turn, step.kind, step.token, step.violation) for step in game.steps if not step.stray]
    stray = {step.turn for step in game.steps if step.stray}
    ordered = sorted(turns, key=lambda turn: turn["turn"])
    got = [(turn["turn"], turn["kind"], turn["final_token"], turn["violation_kind"]) for turn in ordered if turn["turn"] not in stray]
    for want, have in zip(wanted, got, strict=False):
        if want != have:
            return f"turn {want[0]}: recorded {want[1:]}, played {have[1:]}"
    return None if len(wanted) == len(got) else f"recorded {len(wanted)} turns, played {len(got)}"


def scores(runs: list[Run], board: Path) -> tuple[list[str], float]:
    """Lines for runs whose published score or interval differs by more than 1e-9, and the greatest difference of all."""
    with board.open(encoding="utf-8", newline="") as file:
        published = {row["model_id"]: row for row in csv.DictReader(file)}
    lines, worst = [], 0.0
    for run in runs:
        row = published.get(run.slug)
        if row is None:
            lines.append(f"{run.id}: it has no published score")
            continue
        for ours, theirs in (("score", "score"), ("low_95", "low"), ("high_95", "high")):
            difference = abs(float(row[ours]) - run.published[theirs])
            worst = max(worst, difference)
            if difference > 1e-9:
                lines.append(f"{run.id}: {ours} {row[ours]}, recorded {run.published[theirs]}")
                break
    return lines, worst
