"""The comparison alone, on tables that the rules made: it finds each kind of difference, and only that one."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deep20ray.score import score_run
from tests.replay import by_rules, compare
from tests.replay.builder import DATA, made
from tests.replay.recording import Run, read
from tests.replay.server import replies_of

Row = dict[str, Any]
PLACE = ("T-0007", "trial-002")


def sealed(folder: Path, tmp_path: Path) -> tuple[Run, Path]:
    """The run of a folder and the tables that the rules make of it."""
    runs = read(folder)
    (run,) = runs.values()
    return run, by_rules.play(run, replies_of(runs), tmp_path / "sealed")


def at(turn: int, **values: Any) -> Callable[[Row], None]:
    """Changes one recorded turn."""

    def change(row: Row) -> None:
        if (row["target_id"], row["trial"], row["turn"]) == (*PLACE, turn):
            row.update(values)

    return change


def test_unchanged_games_have_no_difference(tmp_path: Path) -> None:
    run, folder = sealed(made(tmp_path / "data"), tmp_path)
    assert compare.trials(run, folder) == []
    assert compare.comparable(run, folder)


@pytest.mark.parametrize(
    ("turn", "values"),
    [
        (1, {"answer": "YES"}),
        (1, {"answer": "UNKNOWN"}),
        (1, {"judge": "YES"}),
        (1, {"reviewer": "YES"}),  # it agrees, and nobody asks the recorded Judge
        (1, {"oracle": "NO"}),
        (1, {"oracle": "UNKNOWN"}),
        (1, {"counted_questions": 2}),
        (2, {"oracle": "YES"}),  # no recorded Reviewer
        (3, {"reviewer": "NO"}),  # no recorded Judge
        (4, {"answer": "YES"}),  # of a guess that was ruled NO
        (5, {"kind": "invalid_action"}),
        (6, {"answer": "NO"}),
    ],
)
def test_a_changed_turn_is_exactly_that_trial(tmp_path: Path, turn: int, values: Row) -> None:
    run, folder = sealed(made(tmp_path / "data", at(turn, **values)), tmp_path)
    assert [line.split(":")[0] for line in compare.trials(run, folder)] == ["BX-1 T-0007 round 2"]


@pytest.mark.parametrize(("turn", "ruled"), [(4, "YES"), (4, "UNKNOWN"), (6, "NO"), (6, "UNKNOWN")])
def test_a_changed_verdict_is_exactly_that_trial(tmp_path: Path, turn: int, ruled: str) -> None:
    run, folder = sealed(made(tmp_path / "data", verdict=at(turn, validator=ruled)), tmp_path)
    assert [line.split(":")[0] for line in compare.trials(run, folder)] == ["BX-1 T-0007 round 2"]
    assert not compare.comparable(run, folder)


def test_a_changed_kind_in_the_list_of_violations_is_exactly_that_trial(tmp_path: Path) -> None:
    data = made(tmp_path / "data")
    rows = [json.loads(line) for line in (data / "violations.jsonl").read_text().splitlines()]
    for row in rows:
        at(5, violation_kind="invalid_action")(row)
    (data / "violations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run, folder = sealed(data, tmp_path)
    (line,) = compare.trials(run, folder)
    assert line == "BX-1 T-0007 round 2: turn 5: recorded wrong_action; played not_json"


@pytest.mark.parametrize(
    ("column", "value"), [("success", "False"), ("terminal_reason", "limit_exhausted"), ("counted_questions", 9), ("score", 9)]
)
def test_a_changed_trial_is_exactly_that_trial(tmp_path: Path, column: str, value: object) -> None:
    data = made(tmp_path / "data")
    with (data / "trials.csv").open(newline="") as file:
        rows: list[Row] = list(csv.DictReader(file))
    for row in rows:
        if (row["target_id"], row["trial"]) == PLACE:
            row[column] = value
    with (data / "trials.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    run, folder = sealed(data, tmp_path)
    assert [line.split(":")[0] for line in compare.trials(run, folder)] == ["BX-1 T-0007 round 2"]


def test_a_trial_too_many_and_one_too_few(tmp_path: Path) -> None:
    run, folder = sealed(made(tmp_path / "data"), tmp_path)
    rows = compare.table(folder, "trials")
    by_rules.write(folder / "trials.arrow", [*rows[1:], rows[0] | {"round": 9}])
    assert compare.trials(run, folder) == [
        "BX-1 T-0001 round 1: it was not played",
        "BX-1 T-0001 round 9: it was played and not recorded",
    ]


def board(path: Path, **values: object) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(values))
        writer.writeheader()
        writer.writerow(values)
    return path


def test_a_score_or_bound_that_is_off_is_a_line(tmp_path: Path) -> None:
    run = next(iter(read(made(tmp_path / "data")).values()))
    assert run.published is not None
    score, low, high = (run.published[name] for name in ("score", "low", "high"))
    same = board(tmp_path / "same.csv", model_id="m-0001", score=score, low_95=low + 9e-10, high_95=high)
    lines, worst = compare.scores([run], same)
    assert lines == []
    assert 8e-10 < worst < 1e-9
    off = board(tmp_path / "off.csv", model_id="m-0001", score=score, low_95=low, high_95=high + 2e-9)
    assert len(compare.scores([run], off)[0]) == 1
    blank = board(tmp_path / "blank.csv", model_id="m-0001", score=score, low_95="", high_95=high)
    assert compare.scores([run], blank)[1] == float("inf")
    other = board(tmp_path / "other.csv", model_id="m-0002", score=score, low_95=low, high_95=high)
    assert compare.scores([run], other)[0] == ["BX-1: it has no published score"]


def test_the_comparison_loads_nothing_of_the_system() -> None:
    code = "import sys, tests.replay.compare; sys.exit(any(name.startswith('deep20ray') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.skipif(not DATA.is_dir(), reason=f"recorded games are not there ({DATA.name} beside the checkout, under shared/data)")
def test_the_rules_alone_play_every_recorded_run_as_recorded(tmp_path: Path) -> None:
    runs = read(DATA)
    replies = replies_of(runs)
    played = 0
    for run in runs.values():
        folder = by_rules.play(run, replies, tmp_path / run.id)
        assert compare.trials(run, folder) == []
        assert compare.comparable(run, folder)
        by_subject: dict[str, list[int]] = {}
        for row in compare.table(folder, "trials"):
            by_subject.setdefault(row["subject_id"], []).append(row["score"])
            played += 1
        score = score_run(by_subject)
        shown = board(tmp_path / f"{run.id}.csv", model_id=run.slug, score=score.score, low_95=score.low, high_95=score.high)
        assert compare.scores([run], shown)[0] == []
    assert played == 210
