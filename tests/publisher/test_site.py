"""The built site: its facts, its links, its bytes, and when it isn't built."""

import csv
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints
from urllib.parse import unquote

import pytest

from deep20ray_artifacts.errors import VerificationError
from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.sources import source_rows
from deep20ray_artifacts.verify import VerifiedRun, verify_run
from deep20ray_publisher import catalog, records, site
from deep20ray_publisher.errors import CatalogRefused, InputMissing, NotOfficial, OutRefused, SelectionTie
from deep20ray_publisher.records import RunRecord
from tests.artifacts import builder
from tests.publisher.sites import DAY, Html, World, html_files, incomplete_draft, only, scripted_draft


def rows(out: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((out / "e/1.1" / name).read_bytes().decode(), newline="")))


# -- facts ---------------------------------------------------------------------------------------------------------------------


def test_leaderboard_facts(built: Path) -> None:
    words = Html.of(built / "e/1.1/index.html").words
    # alpha: means 4 and 73/3; Var = (1/3 + 667/9)/4, nu = 2.018, so that the interval goes below 0 and isn't cut off there.
    assert "1 shared 1 to 4 Model alpha simulated 14.17 \u22124.32 to 32.65" in words
    assert "1 shared 1 to 4 Model beta simulated 14.17" in words
    assert "3 1 to 4 Model gamma simulated 25.00 no observed variation" in words
    assert "2 6 trials 83.3% 5 of 6 100% 0 violations $0.0020 all roles $0.0072 2026-12-01" in words
    assert "unknown all roles unknown" in words  # gamma's price is unknown, and unknown is not nothing


def test_reliability_stands_on_all_four_kinds_of_page(built: Path) -> None:
    run = only(built, "e/1.1/runs/*-scripted-*")
    board = Html.of(built / "e/1.1/index.html").words
    assert (
        "Scripted simulated 92.9% 2 not one JSON object, 2 not an accepted action, 1 empty reply, 1 did not end normally, 1 cut off by the output limit 3 of 6 6 1 of 86"
        in board
    )
    page = Html.of(run / "index.html").words
    assert "Compliance 92.9% 92 of 99 replies Violations 7" in page
    assert "Affected trials 3 of 6 Counted penalties 6" in page
    assert "Degenerate questions 1 of 86 questions asked" in page
    subject = Html.of(run / "t-0001.html").words
    assert "Violations 6" in subject and "Affected trials 2 of 3" in subject
    episode = Html.of(run / "t-0001-r3.html").words
    assert "Compliance 0% 0 of 5 replies Violations 5" in episode and "Counted penalties 5" in episode


def test_an_episode_tells_the_whole_game(built: Path) -> None:
    page = Html.of(only(built, "e/1.1/runs/*-scripted-*/t-0001-r1.html"))
    assert "Scripted simulated : found it after 8 counted questions." in page.words
    assert "Oracle Rather yes by evidence → Reviewer Rather no by evidence → Judge Yes by evidence the Judge decided" in page.words
    assert "Oracle Unknown by knowledge final without review" in page.words
    assert "I think it is a **thing**." in page.words
    assert "said before in this game" in page.words and "holds no question" in page.words
    assert "Guess: The subject" in page.words and "Validator: YES not counted" in page.words
    assert {f"t-{turn}" for turn in range(1, 10)} <= set(page.ids) and "t-5-e-3" in page.ids
    assert "✓ verified" in page.words


def test_a_failure_at_the_limit_is_told(built: Path) -> None:
    words = Html.of(only(built, "e/1.1/runs/*-scripted-*/t-0008-r2.html")).words
    assert "did not find it. Broke the action contract after 40 counted questions; scored 41." in words
    assert '{"action":"ASK"}' in words


def test_provenance_has_a_page_of_its_own(built: Path) -> None:
    run = only(built, "e/1.1/runs/*-alpha-*")
    assert "provenance.html" in Html.of(run / "index.html").links
    words = Html.of(run / "provenance.html").words
    folder = only(built, "e/1.1/data/simulated/*-alpha-*")
    plan = hashlib.sha256((folder / "plan.json").read_bytes()).hexdigest()
    for fact in (folder.name, plan, "alpha-2026", "guesser-1.1-r1", "throwaway key", "seed-1", "7 events", "None: no call was superseded"):
        assert fact in words


def test_reused_answers_say_so_and_where_they_are_from(world: World) -> None:
    draft = scripted_draft()
    builder.reuse(draft, 6, 0, "archive")
    source = {"run": builder.ARCHIVED, "trial": "a" * 64, "turn": 4, "at": DAY, "policy": "archive", "cost_microusd": 70}
    builder.reuse(draft, 2, source, "archive")
    draft.rows["turns"][2]["disputed"] = True
    draft.rows["sources"] = source_rows(draft.rows["turns"], {builder.ARCHIVED: "b" * 64})
    world.add_draft(draft)
    out = world.build()
    run = only(out, "e/1.1/runs/*-scripted-*")
    episode = Html.of(run / "t-0001-r1.html")
    assert "agreed reused: answered before, in turn 1 , 2026-12-01" in episode.words and "#t-1" in episode.links
    assert f"reused: answered before, in the earlier run {builder.ARCHIVED} , trial aaaaaaaaaaaa , turn 4" in episode.words
    assert episode.words.count("answers disagree") == 1
    page = Html.of(run / "index.html").words
    assert "Policy archive : 2 of 86 questions got an answer that had been given before" in page
    assert f"{builder.ARCHIVED} statement bbbbbbbbbbbbbbbb… archive 1 1 1 $0.00007" in page
    assert "this run run 1 1 0" in page and "conditional on the reuse policy" in page
    assert "The same, had nothing been reused" in page
    for name in ("index.html", "stability.html"):
        assert "conditional on the reuse policy" in Html.of(out / "e/1.1" / name).words
    reused = [row for row in rows(out, "turns.csv") if row["source_run"]]
    assert [(row["turn"], row["source_turn"], row["source_policy"], row["disputed"]) for row in reused] == [
        ("3", "4", "archive", "true"),
        ("7", "1", "trial", "false"),
    ]


def test_no_word_of_reuse_where_nothing_is_reused(built: Path) -> None:
    assert "conditional on the reuse policy" not in Html.of(built / "e/1.1/index.html").words
    assert "Reused answers" not in Html.of(only(built, "e/1.1/runs/*-alpha-*") / "index.html").words


def test_stability_and_subject_pages(built: Path) -> None:
    assert "1 Model gamma simulated 0.00" in Html.of(built / "e/1.1/stability.html").words
    words = Html.of(built / "e/1.1/subjects/test-cohort/t-0008.html").words
    assert "Subject T-0008" in words and "Model gamma simulated 41 not found 41 not found 41 not found 41.00" in words


def test_an_incomplete_run_is_shown_but_not_ranked(world: World) -> None:
    world.add("alpha", hours=7)
    world.add_draft(incomplete_draft())
    out = world.build()
    board = Html.of(out / "e/1.1/index.html").words
    assert "Runs that are not ranked" in board and "incomplete: 5 of 6 trials are scored" in board
    run = only(out, "e/1.1/runs/*-broken-*")
    assert "This run is not ranked: incomplete" in Html.of(run / "index.html").words
    assert "not scored, transport." in Html.of(run / "t-0008-r3.html").words


def test_an_edition_without_a_complete_run_still_builds(world: World) -> None:
    world.add_draft(incomplete_draft())
    assert "so there is no ranking" in Html.of(world.build() / "e/1.1/index.html").words


def test_repairs_are_shown_apart(world: World) -> None:
    draft = scripted_draft()
    for table in ("audits", "usage"):
        row = next(row for row in draft.rows[table] if row["call"] == "oracle")
        draft.rows[table].append({**row, "attempt": 1, "ask": 1, "state": "lost"} | ({"cost_microusd": None} if table == "usage" else {}))
    key = {name: draft.rows["usage"][-1][name] for name in ("trial_id", "attempt", "turn", "call", "ask", "state")}
    draft.rows["repairs"].append({**key, "cause": "lost", "cost_microusd": None})
    world.add_draft(draft)
    out = world.build()
    assert "1 superseded or lost call of unknown cost" in Html.of(only(out, "e/1.1/runs/*/index.html")).words
    assert "1 call of this trial were superseded or lost" in Html.of(only(out, "e/1.1/runs/*/t-0001-r1.html")).words


# -- marks, links, downloads --------------------------------------------------------------------------------------------------


def test_every_page_is_marked(built: Path) -> None:
    for path in html_files(built):
        text = path.read_text(encoding="utf-8")
        assert "Preview, not official results." in text, path
        assert "<strong>Simulated:</strong>" in text, path
        assert "(simulated) (preview)</title>" in text, path
        assert '<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;;' in text, path


def test_every_row_and_file_is_marked(built: Path) -> None:
    for name in ("leaderboard.csv", "trials.csv", "turns.csv"):
        table = rows(built, name)
        assert table and {row["simulated"] for row in table} == {"true"}
        assert {row["publication"] for row in table} == {"preview"} and {row["edition"] for row in table} == {"1.1"}
    assert not (built / "e/1.1/data/runs").exists()
    assert json.loads((built / "site-manifest.json").read_bytes())["preview"] is True


def test_all_internal_links_and_fragments_resolve(built: Path) -> None:
    pages = {path.resolve(): Html.of(path) for path in html_files(built)}
    checked = 0
    for path, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), path
        for target in page.links + page.sources:
            if target.startswith(("https://", "http://")):
                continue
            file, _, fragment = target.partition("#")
            found = (path.parent / unquote(file)).resolve() if file else path
            assert found.is_file(), (path, target)
            assert found.is_relative_to(built.resolve()) or not file
            if fragment:
                assert fragment in pages[found].ids, (path, target)
            checked += 1
    assert checked > 1000
    assert len(pages) == 13 + 2 + 5 * (2 + 2 + 6) + 6 * (1 + 2)  # six pairs of the four complete runs


def test_every_page_can_be_reached(built: Path) -> None:
    seen: set[Path] = set()
    queue = [(built / "index.html").resolve()]
    while queue:
        path = queue.pop()
        if path in seen or path.suffix != ".html":
            continue
        seen.add(path)
        targets = [link.partition("#")[0] for link in Html.of(path).links if "://" not in link]
        queue += [(path.parent / target).resolve() for target in targets if target]
    assert seen == {path.resolve() for path in html_files(built) if path.name != "404.html"}


def test_nothing_is_inline_and_nothing_comes_from_elsewhere(built: Path) -> None:
    for path in html_files(built):
        page = Html.of(path)
        assert not [name for name, _ in page.attributes if name == "style" or name.startswith("on")], path
        assert page.tags.count("script") == 1 and "style" not in page.tags
        assert all("://" not in source for source in page.sources)


def test_published_runs_verify_from_the_site(built: Path) -> None:
    keys = [load_public(only(built.parent, "keys/*.pub"))]
    folders = sorted((built / "e/1.1/data/simulated").iterdir())
    assert len(folders) == 5
    for folder in folders:
        verify_run(folder, keys)


def test_sums_cover_every_download(built: Path) -> None:
    root = built / "e/1.1"
    sums = {line[66:]: line[:64] for line in (root / "SHA256SUMS").read_text().splitlines()}
    files = [path for path in root.rglob("*") if path.is_file() and path.suffix not in (".html",) and path.name != "SHA256SUMS"]
    assert sums == {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_the_manifest_covers_every_file(built: Path) -> None:
    manifest = json.loads((built / "site-manifest.json").read_bytes())["files"]
    files = {str(path.relative_to(built)): path for path in built.rglob("*") if path.is_file() and path.name != "site-manifest.json"}
    assert manifest == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}


def test_csv_numbers_are_exact(built: Path) -> None:
    alpha = next(row for row in rows(built, "leaderboard.csv") if row["model_id"] == "alpha")
    assert (alpha["score"], alpha["rank"], alpha["rank_shared"]) == ("14.166666666666666", "1", "true")
    turns = [row for row in rows(built, "turns.csv") if row["model_id"] == "scripted"]
    assert len(turns) == 99 and turns[0]["question"] == "Is it real?"


# -- hostile text -------------------------------------------------------------------------------------------------------------


def test_hostile_text_is_inert(hostile: Path) -> None:
    for path in html_files(hostile):
        page = Html.of(path)
        assert page.tags.count("script") == 1, path
        assert "img" not in page.tags
        assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"]
        assert all(link.startswith("https://") or ":" not in link for link in page.links), path
        assert not any("secret" in link for link in page.links)
        text = path.read_text(encoding="utf-8")
        assert not set("\u202e\u2066\u200b\x1b\u2028\U000e0041") & set(text), path
    episode = Html.of(only(hostile, "e/1.1/runs/*/t-0001-r1.html"))
    assert "<script>alert(1)</script>" in episode.text and "{{ 7 * 7 }}" in "".join(Html.of(path).text for path in html_files(hostile))
    assert "U+202E" in "".join(Html.of(path).text for path in html_files(hostile))
    assert "(not linked)" in episode.text and "https://ok.example/path?q=%22#frag" in "".join(
        Html.of(path).text for path in html_files(hostile)
    )


def test_hostile_text_in_csv(hostile: Path) -> None:
    cells = [cell for name in ("leaderboard.csv", "trials.csv", "turns.csv") for row in rows(hostile, name) for cell in row.values()]
    assert any(cell.startswith("'=HYPERLINK") for cell in cells)
    assert not [cell for cell in cells if cell[:1] in "=+@\t" and cell]
    assert not set("\u202e\u200b\x1b") & set("".join(cells))


def test_a_long_reply_is_whole(hostile: Path) -> None:
    page = Html.of(only(hostile, "e/1.1/runs/*/t-0008-r2.html"))
    assert page.text.count("onerror=alert(2)") >= 100
    assert "characters" in page.words


def test_what_is_private_has_no_way_in(world: World) -> None:
    """Canaries stand where private things do: beside the run's folder, and in the plan, which is copied and never shown."""
    folder = world.add("alpha")
    (world.runs.parent / "private" / folder.name).mkdir(parents=True)
    (world.runs.parent / "private" / folder.name / "private.arrow").write_bytes(b"CANARY-reasoning")
    secret = world.key.private.read_bytes()
    out = world.build()
    body = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert b"CANARY" not in body and secret.splitlines()[-2] not in body and str(world.root).encode() not in body


# -- the same bytes ------------------------------------------------------------------------------------------------------------


def test_two_builds_are_equal_whatever_the_machine(world: World) -> None:
    world.add("alpha", hours=10)
    world.add_draft(scripted_draft())
    trees = []
    for number, environment in enumerate(
        ({"TZ": "UTC", "PYTHONHASHSEED": "1", "LANG": "C"}, {"TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "2", "LANG": "C.UTF-8"})
    ):
        out = world.root / f"site-{number}"
        command = [
            sys.executable,
            "-m",
            "deep20ray_publisher.cli",
            "build",
            str(world.runs),
            "--trust",
            str(world.key.public),
            "--out",
            str(out),
            "--preview",
        ]
        subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True, cwd=world.root, timeout=120)
        trees.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()})
    assert trees[0] == trees[1]


# -- refusals -----------------------------------------------------------------------------------------------------------------


def untouched(world: World) -> bool:
    return sorted(path.name for path in world.root.iterdir()) == ["keys", "runs"]


def test_without_preview_every_run_is_refused_with_its_reasons(world: World) -> None:
    one, two = world.add("alpha"), world.add_draft(incomplete_draft())
    with pytest.raises(NotOfficial) as refused:
        world.build(preview=False)
    assert f"{one.name}: simulated, signed with a throwaway key, no release contract covers it" in str(refused.value)
    assert f"{two.name}: simulated, incomplete, " in str(refused.value)
    assert refused.value.exit_code == 4 and untouched(world)


def test_one_invalid_run_stops_the_build(world: World) -> None:
    world.add("alpha")
    spoiled = world.add("beta") / "turns.arrow"
    data = bytearray(spoiled.read_bytes())
    data[len(data) // 2] ^= 1
    spoiled.write_bytes(data)
    with pytest.raises(VerificationError) as refused:
        world.build()
    assert refused.value.exit_code == 4 and "\n" not in str(refused.value) and untouched(world)


def test_a_folder_that_is_no_run_stops_the_build(world: World) -> None:
    world.add("alpha")
    (world.runs / "notes").mkdir()
    with pytest.raises(VerificationError):
        world.build()
    assert untouched(world)


def test_a_link_to_a_run_stops_the_build(world: World, tmp_path: Path) -> None:
    folder = world.add("alpha")
    target = tmp_path / "elsewhere"
    target.mkdir()
    folder.rename(target / folder.name)
    (world.runs / folder.name).symlink_to(target / folder.name)
    with pytest.raises(VerificationError):
        world.build()


def test_a_tie_in_time_writes_nothing(world: World) -> None:
    world.add("alpha", run_seed="one")
    world.add("alpha", run_seed="two")
    with pytest.raises(SelectionTie):
        world.build()
    assert untouched(world)


def test_a_failed_build_leaves_the_earlier_site(world: World) -> None:
    world.add("alpha")
    out = world.build()
    before = (out / "site-manifest.json").read_bytes()
    (world.runs / "notes").mkdir()
    with pytest.raises(VerificationError):
        world.build()
    assert (out / "site-manifest.json").read_bytes() == before


def test_an_earlier_site_is_replaced_whole(world: World) -> None:
    world.add("alpha")
    out = world.build()
    (out / "stray.html").write_text("left over")
    world.add("beta", hours=11)
    assert world.build() == out
    assert not (out / "stray.html").exists() and "Model beta" in (out / "e/1.1/index.html").read_text()
    assert sorted(path.name for path in world.root.iterdir()) == ["keys", "runs", "site"]


@pytest.mark.parametrize("content", [None, b"", b"[]", b'{"made_by": "someone"}'])
def test_a_folder_that_is_not_ours_is_never_replaced(world: World, content: bytes | None) -> None:
    world.add("alpha")
    out = world.root / "site"
    out.mkdir()
    if content is not None:
        (out / "site-manifest.json").write_bytes(content)
    with pytest.raises(OutRefused) as refused:
        world.build()
    assert refused.value.exit_code == 2 and out.is_dir()


def test_out_and_runs_must_lie_apart(world: World) -> None:
    world.add("alpha")
    for name in ("runs/site", "runs", "."):
        with pytest.raises(OutRefused):
            world.build(name)


def test_missing_or_empty_input(world: World) -> None:
    with pytest.raises(InputMissing):
        world.build()
    world.runs.mkdir()
    with pytest.raises(InputMissing, match="no run folder"):
        world.build()
    folder = world.add("alpha")
    with pytest.raises(InputMissing, match="is a run itself"):
        site.build([folder], [load_public(world.key.public)], world.root / "site", preview=True)


def test_two_pages_of_one_address_are_refused(world: World) -> None:
    world.add("alpha", {"T-1": [4, 5, 6], "T-1-R1": [4, 5, 6]})
    with pytest.raises(CatalogRefused, match="have the address"):
        world.build()
    assert untouched(world)


def test_the_publisher_takes_verified_runs_alone() -> None:
    """What becomes pages goes through one function, and that takes nothing but what verification gave."""
    assert get_type_hints(RunRecord.__init__)["verified"] is VerifiedRun
    source = Path(records.__file__).parent
    makers = [path.name for path in source.glob("*.py") if re.search(r"\bRunRecord\(", path.read_text())]
    assert makers == ["catalog.py"]
    assert not [path.name for path in source.glob("*.py") if re.search(r"VerifiedRun\(|check_sealed", path.read_text())]
    # Tables are read again in one place, from bytes that are compared with the verified digests; the other reads what this site wrote.
    readers = {path.name for path in source.glob("*.py") if re.search(r"ipc\.|read_table", path.read_text())}
    assert readers == {"catalog.py", "downloads.py"}


def test_a_table_that_changes_after_verification_stops_the_build(world: World) -> None:
    """The detail is read again when pages are made; it must be the bytes that were verified."""
    folder = world.add("alpha")
    (entry,) = catalog.load([world.runs], [load_public(world.key.public)])
    assert entry.record.turns
    entry.record.release()
    table = folder / "turns.arrow"
    data = bytearray(table.read_bytes())
    data[len(data) // 2] ^= 1
    table.write_bytes(data)
    with pytest.raises(VerificationError, match="changed while it was read"):
        _ = entry.record.turns


@pytest.mark.full
def test_unverified_bytes_do_not_type_check(tmp_path: Path) -> None:
    """The type checker refuses what is only sealed, and bare tables."""
    code = (
        "from pathlib import Path\nfrom deep20ray_artifacts.verify import check_sealed, verify_run\n"
        "from deep20ray_publisher.records import RunRecord\n"
        "RunRecord(verify_run(Path(), []), dict)\nRunRecord(check_sealed(Path()), dict)\nRunRecord(check_sealed(Path()).tables, dict)\n"
    )
    (tmp_path / "given.py").write_text(code)
    root = Path(__file__).parents[2]
    options = ["--config-file", str(root / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache")]
    command = [sys.executable, "-m", "mypy", *options, str(tmp_path / "given.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    wrong = [line for line in done.stdout.splitlines() if "given.py" in line]
    assert done.returncode == 1 and ["given.py:5" in wrong[0], "given.py:6" in wrong[1], len(wrong)] == [True, True, 2], done.stdout
