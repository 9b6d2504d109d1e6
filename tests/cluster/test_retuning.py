"""Limits that are edited while a sweep is played, and the record of what changed."""

import json
from pathlib import Path

from deep20ray_cluster.limits import Change
from deep20ray_cluster.retuning import recorder, retuner
from deep20ray_cluster.routes import limits_of

SWEEP = (Path(__file__).parents[2] / "cluster/deep20ray_cluster/demo.toml").read_text()


def test_an_edited_file_is_read_once_and_a_broken_one_changes_nothing(tmp_path: Path) -> None:
    path, said = tmp_path / "sweep.toml", list[str]()
    path.write_text(SWEEP)
    retuned = retuner(path, said.append)
    assert retuned() is None
    path.write_text(SWEEP.replace('kind = "simulator"\n', 'kind = "simulator"\nrequests_per_minute = 77\n', 1))
    sweep = retuned()
    assert sweep is not None and 77 in {limits.requests for limits in limits_of(sweep).values()}
    assert retuned() is None
    path.write_text("no sweep file")
    assert retuned() is None and retuned() is None
    assert len(said) == 1 and "sweep.toml" in said[0] and "the limits stay as they were" in said[0]
    path.unlink()
    assert retuned() is None


def test_changes_are_written_down_and_a_folder_that_is_gone_stops_nothing(tmp_path: Path) -> None:
    record = recorder(tmp_path / "gates.jsonl")
    record(Change("paid", "learned", {"requests": 60}))
    record(Change("paid", "paused", {"seconds": 3.0}))
    lines = [json.loads(line) for line in (tmp_path / "gates.jsonl").read_text().splitlines()]
    assert [(line["gate"], line["what"]) for line in lines] == [("paid", "learned"), ("paid", "paused")]
    assert lines[0]["requests"] == 60
    recorder(tmp_path / "none" / "gates.jsonl")(Change("paid", "paused", {}))
