"""Releases as commands: a contract out of a sweep's plan, signed; a run of it checked and published as official, through the whole system."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import deep20ray_cohorts
from deep20ray_artifacts.contract import Contract
from deep20ray_artifacts.documents import verify_document
from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.signing import NewKey, new_key
from deep20ray_cluster.plan import resolve
from deep20ray_cluster.sweep import parse_sweep
from deep20ray_publisher import cli as publisher

from .command import Ended
from .worlds import scripted, sweep_text

Play = Callable[..., Ended]
ALL = tuple(subject.id for subject in deep20ray_cohorts.load("core-1.1").subjects)
SERVED = [word for role in ("oracle", "reviewer", "judge", "validator") for word in ("--served", f"{role}={role}-1")]
SERVED += ["--served", "scripted=guesser-1"]


@pytest.fixture
def key(tmp_path: Path) -> NewKey:
    """A lasting key."""
    return new_key(tmp_path / "keys", "release")


def plan_file(tmp_path: Path, **parts: object) -> Path:
    sweep = parse_sweep(sweep_text("http://127.0.0.1:9", **{"subjects": ALL, "rounds": 3, **parts}), "s.toml")  # type: ignore[arg-type]
    plan = resolve(sweep, deep20ray_cohorts.load("core-1.1"), datetime(2026, 12, 1, tzinfo=UTC))
    path = tmp_path / "plan.json"
    path.write_bytes(plan.data)
    return path


def test_a_contract_is_drafted_from_a_plan_and_signed(tmp_path: Path, deep20ray: Play, key: NewKey) -> None:
    out = tmp_path / "r1.json"
    done = deep20ray("release", "draft", plan_file(tmp_path), "--id", "edition-1.1-r1", "--out", out, *SERVED)
    assert done.code == 0 and "1 models registered" in done.out, done
    assert deep20ray("sign", out, "--key", key.private).code == 0
    contract = verify_document(Contract, tmp_path / "r1.dsse.json", [load_public(key.public)]).predicate
    assert [each.subject_id for each in contract.subjects] == list(ALL)
    assert (contract.rounds, contract.search_backend, contract.support.judge.served_models) == (3, "searxng", ("judge-1",))
    assert contract.guessers[0].served_models == ("guesser-1",)
    again = deep20ray("release", "draft", plan_file(tmp_path), "--id", "edition-1.1-r1", "--out", out)
    assert again.code == 2 and "File exists" in again.complaint


@pytest.mark.parametrize(
    ("parts", "words", "code", "complaint"),
    [
        ({"rounds": 2}, (), 2, "all else is diagnostic"),
        ({"subjects": ALL[:9]}, (), 2, "all else is diagnostic"),
        ({}, ("--served", "oracle"), 2, "write ROLE=NAME"),
        ({}, ("--cohort", "core-1.0"), 2, "isn't the one that the plan was made with"),
    ],
)
def test_what_makes_no_contract(
    tmp_path: Path, deep20ray: Play, parts: dict[str, object], words: tuple[str, ...], code: int, complaint: str
) -> None:
    done = deep20ray("release", "draft", plan_file(tmp_path, **parts), "--id", "r1", "--out", tmp_path / "r1.json", *words)
    assert (done.code, complaint in done.complaint) == (code, True), done
    assert not (tmp_path / "r1.json").exists()


def test_the_embedded_simulator_makes_no_contract(tmp_path: Path, deep20ray: Play) -> None:
    from importlib import resources

    text = resources.files("deep20ray_cluster").joinpath("demo.toml").read_text(encoding="utf-8")
    plan = resolve(parse_sweep(text, "demo"), deep20ray_cohorts.load("core-1.1"), datetime(2026, 12, 1, tzinfo=UTC))
    (tmp_path / "plan.json").write_bytes(plan.data)
    done = deep20ray("release", "draft", tmp_path, "--id", "r1", "--out", tmp_path / "r1.json")
    assert done.code == 2 and "real models and a real search" in done.complaint


@pytest.mark.full
def test_a_whole_release(tmp_path: Path, playing: Play, deep20ray: Play, key: NewKey, monkeypatch: pytest.MonkeyPatch) -> None:
    out, contract = tmp_path / "out", tmp_path / "r1.dsse.json"
    with scripted(tmp_path / "world", {}) as (url, _):
        (tmp_path / "sweep.toml").write_text(sweep_text(url, subjects=ALL, rounds=3))
        assert playing("run", tmp_path / "sweep.toml", "--out", out).code == 0
    (run,) = (out / "runs").iterdir()
    assert deep20ray("sign", run, "--key", key.private).code == 0
    assert deep20ray("audit", run, "--trust", key.public, "--private", out / "private" / run.name).code == 0
    assert (
        deep20ray(
            "release", "draft", out, "--id", "edition-1.1-r1", "--out", tmp_path / "r1.json", "--seen", run, "--trust", key.public
        ).code
        == 0
    )
    assert deep20ray("sign", tmp_path / "r1.json", "--key", key.private).code == 0
    checked = deep20ray("release", "check", run, "--contract", contract, "--trust", key.public, "--json")
    assert checked.code == 0, checked
    (result,) = json.loads(checked.out)["contracts"]
    assert result["official"] and all(clause["holds"] for clause in result["clauses"]) and len(result["clauses"]) > 50
    # Under a contract that lists other names nothing of it is official.
    assert deep20ray("release", "draft", out, "--id", "edition-1.1-r2", "--out", tmp_path / "r2.json").code == 0
    assert deep20ray("sign", tmp_path / "r2.json", "--key", key.private).code == 0
    other = deep20ray("release", "check", run, "--contract", tmp_path / "r2.dsse.json", "--trust", key.public)
    assert other.code == 4 and "no oracle: answered under listed names: oracle-1" in other.out
    words = ["build", out / "runs", "--trust", key.public, "--contract", contract, "--out", tmp_path / "site"]
    monkeypatch.setattr("sys.argv", ["deep20ray-publisher", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(publisher.main())
    assert not ended.value.code
    assert "official under contract" in next((tmp_path / "site").glob("e/1.1/runs/*/index.html")).read_text()
