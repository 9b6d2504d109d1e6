"""One site from one or many processes, from nothing or from the site before: the same bytes. And what a finished site's check finds."""

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deep20ray_artifacts.keys import load_public
from deep20ray_publisher import site
from deep20ray_publisher.checking import check_site
from deep20ray_publisher.errors import InputMissing
from tests.publisher.sites import World, scripted_draft


def tree(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def test_a_rebuild_touches_what_changed_and_gives_the_same_bytes(world: World) -> None:
    world.add("alpha", hours=10)
    world.add_draft(scripted_draft())
    out = world.build()
    before = {str(path.relative_to(out)): path.stat().st_ino for path in out.rglob("*") if path.is_file()}
    world.add("beta", hours=11)
    world.build()
    after = {str(path.relative_to(out)): path.stat().st_ino for path in out.rglob("*") if path.is_file()}
    kept = {path for path, inode in before.items() if after.get(path) == inode}
    games = {path for path in before if "/runs/" in path and not path.endswith(("index.html", "provenance.html"))}
    assert games <= kept and "e/1.1/index.html" not in kept
    fresh = world.root / "fresh"
    site.build([world.runs], [load_public(world.key.public)], fresh, True, jobs=1)
    assert tree(out) == tree(fresh)


def test_a_page_that_was_changed_by_hand_is_made_again(world: World) -> None:
    world.add("alpha")
    out = world.build()
    whole = tree(out)
    next(out.glob("e/1.1/runs/*/t-0001-r1.html")).write_text("changed")
    world.build()
    assert tree(out) == whole


def test_a_finished_site_has_no_faults_and_a_spoiled_one_has(world: World) -> None:
    world.add("alpha")
    out = world.build()
    assert list(check_site(out, ["CANARY"])) == []
    page = next(out.glob("e/1.1/runs/*/t-0001-r1.html"))
    page.write_text(page.read_text().replace("</main>", '<p onclick="x()">CANARY<a href="nowhere.html#x">x</a></main>'))
    (out / "stray.txt").write_text("x")
    found = "\n".join(check_site(out, ["CANARY"]))
    for fault in (
        "isn't the file that was built",
        "isn't in the manifest",
        "inline attribute onclick",
        "forbidden text",
        "isn't there",
        "closes",
    ):
        assert fault in found, fault
    with pytest.raises(InputMissing):
        list(check_site(world.root))


def test_every_form_of_a_table_says_the_same(built: Path) -> None:
    root = built / "e/1.1"
    rows = list(csv.DictReader(io.StringIO((root / "turns.csv").read_bytes().decode(), newline="")))
    parquet = pq.read_table(root / "turns.parquet").to_pylist()
    with pa.OSFile(str(root / "turns.arrow")) as file:
        arrow = pa.ipc.open_file(file).read_all().to_pylist()
    assert parquet == arrow and len(rows) == len(parquet) > 300
    assert [row["question"] or None for row in rows] == [row["question"] for row in parquet]
    assert [int(row["turn"]) for row in rows] == [row["turn"] for row in parquet]
    board = json.loads((root / "leaderboard.json").read_bytes())
    assert board["edition"] == "1.1" and len(board["rows"]) == 4 and board["rows"][0]["rank_low"] == 1
    data = json.loads((root / "dataset.jsonld").read_bytes())
    assert {item["name"] for item in data["distribution"]} >= {"turns.parquet", "trials.csv"}
    assert (built / "feed.xml").read_text().count("<entry>") == 5
