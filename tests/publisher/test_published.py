"""The real runs' board: recorded scores of six models, sealed, signed and verified here, against the board that was published of them."""

import csv
from collections import defaultdict
from pathlib import Path

import pytest

from deep20ray_artifacts.keys import load_public
from deep20ray_publisher import catalog
from deep20ray_publisher.board import edition_boards
from tests.publisher.sites import World

DATA = Path(__file__).parents[3] / "shared" / "data" / "deep20bench-v1.0"


@pytest.mark.skipif(not DATA.exists(), reason=f"no recorded games: {DATA} is not there")
def test_the_board_of_the_recorded_runs_is_the_published_one(world: World) -> None:
    scores: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    with (DATA / "trials.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            scores[row["model_id"].lower()][row["target_id"]].append(int(row["score"]))
    with (DATA / "leaderboard-published.csv").open(encoding="utf-8", newline="") as file:
        published = sorted(csv.DictReader(file), key=lambda row: int(row["rank"]))
    for row in published:
        world.add(row["model_id"].lower(), scores[row["model_id"].lower()], edition="1.0")
    (edition,) = edition_boards(catalog.load([world.runs], [load_public(world.key.public)]), preview=True)
    (board,) = edition.boards
    assert board.whole_edition
    shown = [each.entry.record.run.model_id for each in board.standings]
    assert shown == [row["model_id"].lower() for row in published], "the published ranks, six of which are here, give the same order"
    assert [each.place.rank for each in board.standings] == list(range(1, 7))
    for each, row in zip(board.standings, published, strict=True):
        assert each.score.score == pytest.approx(float(row["question_score"]), abs=1e-12)
        assert each.score.low == pytest.approx(float(row["question_score_ci_lower"]), abs=1e-9)
        assert each.score.high == pytest.approx(float(row["question_score_ci_upper"]), abs=1e-9)
        assert each.success_rate == pytest.approx(float(row["success_rate"]), abs=5e-5)  # published with four digits
