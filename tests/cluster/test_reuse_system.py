"""Reuse over the whole system: how many calls are paid, what is signed and published of it, archives, and why an answer was not reused."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.signing import new_key, sign_run
from deep20ray_artifacts.verify import verify_run
from deep20ray_publisher import site

from .command import Ended, by_role
from .scripted import GAME
from .worlds import scripted, sweep_text

Play = Callable[..., Ended]

SECOND = '\n[[models]]\nid = "second"\naccount = "guesser"\nmodel = "guesser"\n'
PRICES = "".join(
    f'\n[prices."{role}"]\ninput_usd_per_mtok = 0\noutput_usd_per_mtok = 0\n'
    for role in ("guesser", "oracle", "reviewer", "judge", "validator")
)


def write(path: Path, url: str, reuse: str, *, models: str = SECOND, rounds: int = 2, change: tuple[str, str] = ("", "")) -> Path:
    text = sweep_text(url, rounds=rounds, head=reuse) + models + PRICES
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace(*change) if change[0] else text)
    return path


def runs(out: Path) -> list[Path]:
    return sorted(path for path in (out / "runs").iterdir() if not path.name.startswith("."))


def rows(run: Path, name: str) -> list[dict[str, Any]]:
    with pa.memory_map(str(run / f"{name}.arrow")) as source:
        found: list[dict[str, Any]] = pa.ipc.open_file(source).read_all().to_pylist()
        return found


def test_a_sweep_that_reuses_pays_for_each_question_once_and_is_signed_and_published(
    tmp_path: Path, playing: Play, deep20ray: Play
) -> None:
    with scripted(tmp_path / "world", {"latency": {"oracle": 0.2}}) as (url, log):
        done = playing("run", write(tmp_path / "sweep.toml", url, 'reuse = "sweep"'), "--out", tmp_path / "out")
        assert done.code == 0, done
        seen = by_role(log)
        assert {role: seen[role] for role in ("search", "oracle", "reviewer")} == {"search": 2, "oracle": 2, "reviewer": 2}
        assert (seen["guesser"], seen["validator"]) == (12, 4), "what is not an answer is never reused"
        key = new_key(tmp_path / "keys", "k", throwaway=False)
        for run in runs(tmp_path / "out"):
            sign_run(run, key.private)
            tables = verify_run(run, [load_public(key.public)]).tables
            assert tables["run"]["reuse_policy"].to_pylist() == ["sweep"]
        turns = [row for run in runs(tmp_path / "out") for row in rows(run, "turns") if row["kind"] == "ask"]
        assert len(turns) == 8 and sum(row["source_run"] is None for row in turns) == 2
        assert {row["counted"] for row in turns} == {True}
        evidence = Counter(row["trial_id"] for run in runs(tmp_path / "out") for row in rows(run, "evidence"))
        assert set(evidence.values()) == {4}, "a hit carries its evidence; the two runs' trials bear the same ids"
        sources = [row for run in runs(tmp_path / "out") for row in rows(run, "sources")]
        assert sum(row["hits"] for row in sources) == 6
        site.build([tmp_path / "out" / "runs"], [load_public(key.public)], tmp_path / "site", preview=True)
        assert any("reused: answered before" in page.read_text() for page in (tmp_path / "site").rglob("*-r*.html"))
        before = sum(by_role(log).values())
        assert playing("resume", tmp_path / "out").code == 0
        assert sum(by_role(log).values()) == before
        explained = json.loads(deep20ray("reuse", "explain", tmp_path / "out", "--json").out)
    assert (explained["policy"], explained["asked"], explained["reused"], explained["disputed_classes"]) == ("sweep", 8, 6, 0)
    assert [each["question"] for each in explained["classes"]] == [move["question"] for move in GAME[:2]]
    assert [[fresh["why"] for fresh in each["fresh"]] for each in explained["classes"]] == [["first of its kind"]] * 2


@pytest.mark.full
def test_an_archive_of_verified_runs_answers_a_later_sweep(tmp_path: Path, playing: Play) -> None:
    with scripted(tmp_path / "world", {}) as (url, log):
        first = tmp_path / "first"
        assert playing("run", write(tmp_path / "one.toml", url, "", models="", rounds=1), "--out", first).code == 0
        (run,) = runs(first)
        key, stranger = (new_key(tmp_path / "keys", name, throwaway=False) for name in ("k", "s"))
        sign_run(run, key.private)
        paid = by_role(log)["oracle"]
        head = 'reuse = "archive"\nreuse_archive = ["first/runs/{}"]\nreuse_trust = ["keys/{}.pub"]'

        # Nobody trusts that key, or the run was changed: nothing is planned, nothing is paid.
        done = playing("run", write(tmp_path / "two.toml", url, head.format(run.name, "s"), models="", rounds=1), "--out", tmp_path / "no")
        assert (done.code, (tmp_path / "no" / "plan.json").exists()) == (4, False)
        assert stranger.public.exists() and by_role(log)["oracle"] == paid

        sweep = write(tmp_path / "three.toml", url, head.format(run.name, "k"), models="", rounds=1)
        done = playing("run", sweep, "--out", tmp_path / "third")
        assert done.code == 0, done
        assert by_role(log)["oracle"] == paid, "every answer is the archive's"
        (third,) = runs(tmp_path / "third")
        sign_run(third, key.private)
        verified = verify_run(third, [load_public(key.public)])
        (source,) = verified.tables["sources"].to_pylist()
        original = verify_run(run, [load_public(key.public)])
        assert (source["source_run"], source["source_policy"], source["hits"]) == (run.name, "archive", 2)
        assert source["statement_sha256"] == original.statement_sha256
        plan = json.loads(verified.plan)["reuse_archive"]
        assert [(each["run_id"], each["answers"], each["differs"]) for each in plan["runs"]] == [(run.name, 2, [])]
        for name in ("final_token", "path", "oracle", "reviewer", "question"):
            assert verified.tables["turns"][name].to_pylist() == original.tables["turns"][name].to_pylist()
        assert verified.tables["evidence"]["excerpt"].to_pylist() == original.tables["evidence"]["excerpt"].to_pylist()

        # A hit is never itself a source; the folder needs the archived run no more, and notices a changed copy.
        chained = f'reuse = "archive"\nreuse_archive = ["third/runs/{third.name}"]\nreuse_trust = ["keys/k.pub"]'
        done = playing("run", write(tmp_path / "four.toml", url, chained, models="", rounds=1), "--out", tmp_path / "fourth")
        assert (done.code, by_role(log)["oracle"]) == (0, paid + 2), done
        run.rename(tmp_path / "away")
        assert playing("resume", tmp_path / "third").code == 0
        copy = tmp_path / "third" / "archive.json"
        copy.write_text(copy.read_text().replace('"NO"', '"YES"'))
        assert playing("resume", tmp_path / "third").code == 2


def test_the_settings_of_an_archive_go_together(tmp_path: Path, deep20ray: Play) -> None:
    for head, words in (
        ('reuse = "archive"', "needs reuse_archive"),
        ('reuse = "sweep"\nreuse_archive = ["x"]', 'settings of reuse = "archive"'),
        ('reuse = "archive"\nreuse_archive = ["x"]\nreuse_trust = ["y"]\nreuse_cutoff = 2026-12-01T00:00:00', "needs its zone"),
        ('reuse = "always"', "sweep.reuse"),
        ('reuse = "archive"\nreuse_archive = ["x"]\nreuse_trust = ["y"]', "y"),
    ):
        done = deep20ray("run", write(tmp_path / "sweep.toml", "http://127.0.0.1:9", head), "--out", tmp_path / "out", "--progress", "none")
        assert done.code == 2 and words in done.complaint, done
        assert not (tmp_path / "out" / "plan.json").exists()
