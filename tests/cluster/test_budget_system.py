"""A budget on the whole system: real Ray, the embedded simulator; it ends with 5, within its limit, and goes on when it is raised."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from deep20ray_cluster.driver import load_plan
from deep20ray_cluster.folder import SweepFolder
from deep20ray_cluster.spending import spending

from .command import Ended, events

Play = Callable[..., Ended]

PRICE = "input_usd_per_mtok = 1.0\noutput_usd_per_mtok = 4.0\n"
ROLES = ("oracle", "reviewer", "judge", "validator")


def sweep_text(*models: str, head: str = "", search: str = "") -> str:
    """A simulated sweep with a few games; ``models`` are further lines of each model."""
    support = "".join(f'[support.{role}]\naccount = "sim"\nmodel = "sim-{role}"\nmax_output_tokens = 300\n\n' for role in ROLES)
    contestants = "".join(
        f'[[models]]\nid = "model-{number}"\naccount = "sim"\nmodel = "sim-gain"\nmax_output_tokens = 300\n{more}\n\n'
        for number, more in enumerate(models)
    )
    prices = "".join(f'[prices."sim-{name}"]\n{PRICE}\n' for name in ("gain", *ROLES))
    return f"""[sweep]
name = "budget"
edition = "1.1"
cohort = "core-1.1"
seed = "budget"
rounds = 1
subjects = ["T-0001", "T-0004", "T-0011"]
{head}

[accounts.sim]
kind = "simulator"
attempts = 1

[search]
kind = "simulator"
{search}

{support}{contestants}{prices}"""


def spent(out: Path) -> dict[str, int]:
    """Micro-dollars by model, by the journal alone."""
    plan = load_plan(SweepFolder(out))
    found = spending(plan.document, events(out))
    assert not found.unknown
    return {run.contestant.id: found.spent[run.id] for run in plan.runs}


def started(out: Path) -> int:
    return sum(event.kind == "started" for event in events(out))


def test_a_small_budget_ends_the_sweep_and_a_larger_one_lets_it_end(tmp_path: Path, playing: Play) -> None:
    out, file = tmp_path / "out", tmp_path / "s.toml"
    text = sweep_text("", head="max_cost_usd = 0.03", search="usd_per_thousand = 1.0")
    file.write_text(text)
    done = playing("run", file, "--out", out)
    assert done.code == 5, done
    assert (
        "the budget of $0.03 is reached: $" in done.complaint
        and "; 3 trials are owed" in done.complaint
        and f"deep20ray resume {out}" in done.complaint
    )
    first = started(out)
    assert 0 < spent(out)["model-0"] <= 30_000 and first > 5
    assert all("budget" in event.body for event in events(out) if event.kind == "started")

    document, journal = load_plan(SweepFolder(out)).document, events(out)
    for length in range(len(journal)):
        assert sum(spending(document, journal[:length]).spent.values()) <= 30_000, "wherever a driver may die"

    again = playing("resume", out)
    assert (again.code, again.complaint) == (5, done.complaint)
    assert started(out) == first, "nothing more was sent"

    (out / "sweep.toml").write_text(text.replace("0.03", "50"))
    last = playing("resume", out)
    assert last.code == 0, last
    assert 30_000 < spent(out)["model-0"] < 50_000_000
    (sealed,) = (out / "runs").iterdir()
    assert b'"usd_per_thousand":"1"' in (sealed / "plan.json").read_bytes(), "the prices are published"


@pytest.mark.full
def test_a_models_budget_stops_that_model_alone(tmp_path: Path, playing: Play) -> None:
    out, file = tmp_path / "out", tmp_path / "s.toml"
    text = sweep_text("max_cost_usd = 0.02", "")
    file.write_text(text)
    done = playing("run", file, "--out", out, "--json")
    assert done.code == 5, done
    assert "the budget of $0.02 of model model-0 is reached: $" in done.complaint and "; 3 trials are owed" in done.complaint
    paid = spent(out)
    assert 0 < paid["model-0"] <= 20_000 < paid["model-1"]
    (sealed,) = (out / "runs").iterdir()
    assert "model-1" in sealed.name
    assert playing("resume", out).code == 5

    (out / "sweep.toml").write_text(text.replace("0.02", "9.5"))
    last = playing("resume", out)
    assert last.code == 0, last
    # Both models have one seed, and so the same trial ids.
    assert len(list((out / "runs").iterdir())) == 2 and spent(out)["model-1"] == paid["model-1"]
    ended = Counter(event.run for event in events(out) if event.kind == "ended")
    assert sorted(ended.values()) == [3, 3]


def without(model: str, text: str) -> str:
    """A sweep file without a model's prices."""
    return re.sub(rf'\[prices\."{model}"\]\n(?:[^\[\n]+\n)*', "", text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            without("sim-judge", sweep_text("", head="max_cost_usd = 1")),
            'model "sim-judge" on kind simulator',
        ),
        (without("sim-gain", sweep_text("max_cost_usd = 1", "")), 'write [prices."sim-gain"]'),
        (sweep_text("", head="max_cost_usd = 0"), "sweep.max_cost_usd"),
        (sweep_text("max_cost_usd = -1"), "models.0.max_cost_usd"),
    ],
)
def test_a_budget_that_can_not_be_kept_is_refused_before_anything(tmp_path: Path, deep20ray: Play, text: str, says: str) -> None:
    file = tmp_path / "s.toml"
    file.write_text(text)
    done = deep20ray("run", file, "--out", tmp_path / "out")
    assert (done.code, done.out) == (2, "") and says in done.complaint
    assert not (tmp_path / "out").exists()


@pytest.mark.full
def test_prices_from_a_file_are_kept_with_the_sweep(tmp_path: Path, playing: Play) -> None:
    out, file = tmp_path / "out", tmp_path / "s.toml"
    own, _, prices = sweep_text("", head='max_cost_usd = 0.01\nprices_file = "lists/mine.toml"').partition("[prices.")
    file.write_text(own)
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "mine.toml").write_text(f"[prices.{prices}")
    assert playing("run", file, "--out", out).code == 5
    (tmp_path / "lists" / "mine.toml").unlink()
    assert playing("resume", out).code == 5
    (out / "prices.toml").write_text(f"[prices.{prices}".replace("4.0", "5.0"))
    changed = playing("resume", out)
    assert changed.code == 2 and "prices" in changed.complaint
    (out / "prices.toml").unlink()
    assert "prices.toml: can't be read" in playing("resume", out).complaint
