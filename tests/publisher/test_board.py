"""Selection and order: the newest run and never the best, exact ties shared, ties in time refused."""

from pathlib import Path

import pytest

from deep20ray_artifacts.keys import load_public
from deep20ray_publisher import catalog
from deep20ray_publisher.board import EditionBoards, edition_boards
from deep20ray_publisher.errors import CatalogRefused, SelectionTie
from tests.publisher.sites import World, incomplete_draft


def boards(world: World) -> tuple[EditionBoards, ...]:
    return edition_boards(catalog.load([world.runs], [load_public(world.key.public)]), preview=True)


def order(world: World) -> list[tuple[str, int, bool]]:
    ((board,),) = [edition.boards for edition in boards(world)]
    return [(each.entry.record.run.model_id, each.place.rank, each.place.shared) for each in board.standings]


def test_the_newest_completed_run_is_used_even_if_it_is_worse(world: World) -> None:
    world.add("alpha", {"T-0001": [1, 1, 2], "T-0008": [1, 2, 1]}, hours=9)
    newest = world.add("alpha", {"T-0001": [30, 31, 32], "T-0008": [40, 40, 41]}, hours=10)
    (edition,) = boards(world)
    (standing,) = edition.boards[0].standings
    assert standing.entry.record.run.run_id == newest.name
    assert [item.reason for item in edition.left_out] == [f"a newer completed run of this model is used: {newest.name}"]


def test_a_tie_in_time_stops_the_build(world: World) -> None:
    world.add("alpha", run_seed="one")
    world.add("alpha", run_seed="two")
    with pytest.raises(SelectionTie, match="both are the newest completed run of model 'alpha'"):
        boards(world)


def test_a_tie_among_older_runs_does_not_matter(world: World) -> None:
    world.add("alpha", run_seed="one", hours=8)
    world.add("alpha", run_seed="two", hours=8)
    world.add("alpha", run_seed="three", hours=9)
    assert order(world) == [("alpha", 1, False)]


def test_exact_ties_share_a_rank_and_the_next_rank_is_skipped(world: World) -> None:
    # Means of 4 and 73/3 in another order of trials: equal as fractions, whatever floats would say.
    world.add("c", {"T-0001": [3, 5, 4], "T-0008": [20, 41, 12]})
    world.add("b", {"T-0001": [5, 4, 3], "T-0008": [41, 12, 20]})
    world.add("a", {"T-0001": [3, 5, 4], "T-0008": [20, 41, 13]})
    world.add("d", {"T-0001": [3, 5, 4], "T-0008": [20, 41, 11]})
    assert order(world) == [("d", 1, False), ("b", 2, True), ("c", 2, True), ("a", 4, False)]


def test_stability_is_by_width_and_needs_an_interval(world: World) -> None:
    world.add("noisy", {"T-0001": [1, 20, 40], "T-0008": [1, 20, 40]})
    world.add("steady", {"T-0001": [41, 41, 41], "T-0008": [41, 41, 41]})
    (edition,) = boards(world)
    assert [each.entry.record.run.model_id for each in edition.boards[0].by_stability] == ["steady", "noisy"]
    assert [each.entry.record.run.model_id for each in edition.boards[0].standings] == ["noisy", "steady"]


def test_a_run_with_single_trials_has_no_stability_rank(world: World) -> None:
    world.add("once", {"T-0001": [4], "T-0008": [5]})
    (edition,) = boards(world)
    (standing,) = edition.boards[0].standings
    assert standing.stability is None
    assert standing.score.low is None


def test_runs_of_another_shape_are_not_ranked_together(world: World) -> None:
    world.add("alpha", {"T-0001": [4, 5], "T-0008": [5, 6]})
    world.add("alpha", {"T-0001": [4, 5, 6], "T-0008": [5, 6, 7]}, hours=8)
    (edition,) = boards(world)
    assert [(board.rounds, len(board.standings)) for board in edition.boards] == [(3, 1), (2, 1)]


def test_editions_never_mix(world: World) -> None:
    world.add("alpha")
    world.add("alpha", edition="1.0", hours=8)
    assert [edition.rules.id for edition in boards(world)] == ["1.1", "1.0"]


def test_one_cohort_id_for_two_cohorts_is_refused(world: World) -> None:
    world.add("alpha")
    world.add("beta", {"T-0001": [4, 5, 6], "T-0009": [4, 5, 6]})
    with pytest.raises(CatalogRefused, match="a changed cohort needs its own id"):
        boards(world)


def test_an_incomplete_run_is_listed_with_its_reason(world: World) -> None:
    world.add("alpha")
    world.add_draft(incomplete_draft())
    (edition,) = boards(world)
    assert [each.entry.record.run.model_id for each in edition.boards[0].standings] == ["alpha"]
    assert [item.reason for item in edition.left_out] == ["incomplete: 5 of 6 trials are scored"]


def test_the_same_run_in_two_folders_is_refused(world: World, tmp_path: Path) -> None:
    folder = world.add("alpha")
    other = tmp_path / "other" / folder.name
    other.mkdir(parents=True)
    for file in folder.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    with pytest.raises(CatalogRefused, match="was found twice"):
        catalog.load([world.runs, other.parent], [load_public(world.key.public)])
