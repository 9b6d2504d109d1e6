"""The plan: a function of what it is made of; what differs is named; it holds no secret and no address."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

import deep20ray_cohorts
from deep20ray.errors import UnknownEdition
from deep20ray_cluster.errors import PlanMismatch, SweepError
from deep20ray_cluster.plan import Plan, check_same, resolve
from deep20ray_cluster.sweep import parse_sweep

from .worlds import sweep_text

NOW = datetime(2026, 12, 1, 10, 30, tzinfo=UTC)
TEXT = sweep_text("http://secret-gateway.test:9", subjects=("T-0001", "T-0004"), rounds=2)


def plan(text: str = TEXT, cohort: str = "core-1.1", now: datetime = NOW) -> Plan:
    return resolve(parse_sweep(text, "s.toml"), deep20ray_cohorts.load(cohort), now)


def test_the_same_in_gives_the_same_bytes_whatever_the_order_or_the_time_zone() -> None:
    assert plan().data == plan().data
    assert plan(now=NOW.astimezone(timezone(timedelta(hours=5)))).data == plan().data
    head, _, tail = TEXT.partition("[search]")
    search, _, rest = tail.partition("[support.oracle]")
    assert plan(f"{head}[support.oracle]{rest}\n[search]{search}").data == plan().data


def test_trials_go_round_the_subjects_and_share_their_variation_by_round() -> None:
    (run,) = plan().runs
    assert [(trial.round, trial.subject.id) for trial in run.trials] == [(1, "T-0001"), (1, "T-0004"), (2, "T-0001"), (2, "T-0004")]
    assert run.trials[0].variation == run.trials[1].variation != run.trials[2].variation
    assert len({trial.id for trial in run.trials}) == 4


def test_two_models_play_the_same_trials_side_by_side() -> None:
    extra = '\n[[models]]\nid = "second"\naccount = "guesser"\nmodel = "m"\n\n[[models]]\nid = "third"\naccount = "guesser"\nmodel = "m"\nseed = "own"\n'
    made = plan(TEXT + extra)
    first, second, third = made.runs
    assert [trial.id for trial in first.trials] == [trial.id for trial in second.trials]
    assert not {trial.id for trial in first.trials} & {trial.id for trial in third.trials}
    assert [trial.run_id for trial in made.trials()][:3] == [first.id, second.id, third.id]
    assert len(list(made.trials())) == 12
    assert len({trial.key for trial in made.trials()}) == 12, "shared ids, but trials of their own"


def test_no_address_and_no_credential_is_in_it() -> None:
    text = TEXT.replace("attempts = 4", 'attempts = 4\napi_key = "env:VERY_PRIVATE_NAME"', 1)
    data = plan(text).data.decode()
    assert "secret-gateway" not in data and "VERY_PRIVATE_NAME" not in data
    other = plan(TEXT.replace("secret-gateway", "other-gateway")).data
    assert other != plan().data, "another endpoint is another plan all the same"


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('model = "judge"', 'model = "other"', "support.judge.requested_model"),
        ("rounds = 2", "rounds = 1", "runs[0].trials"),
        ('seed = "test-seed"', 'seed = "another"', "runs[0].run_seed"),
        ('name = "test"', 'name = "renamed"', "sweep"),
        ('model = "guesser"', 'model = "guesser"\ntemperature = 0.5', "runs[0].guesser.sampling.temperature"),
        ("rounds = 2", 'rounds = 2\npolicy = "bounded-judge"', "policy"),
    ],
)
def test_a_difference_is_named(old: str, new: str, named: str) -> None:
    check_same(plan().data, plan())
    assert old in TEXT
    with pytest.raises(PlanMismatch) as error:
        check_same(plan().data, plan(TEXT.replace(old, new, 1) if old != 'model = "guesser"' else new.join(TEXT.rsplit(old, 1))))
    line = str(error.value)
    names = [part.partition(": ")[0] for part in line.partition("(")[2].split("; ")]
    assert named in names or " more)" in line, line
    assert "start a new sweep" in line


@pytest.mark.parametrize("planned", [b"{", b"\xff", b"[" * 100_000, b"[]", b"null"])
def test_a_spoilt_plan_is_refused(planned: bytes) -> None:
    with pytest.raises(PlanMismatch):
        check_same(planned, plan())


def test_what_the_software_wrote_differs_by_its_version_too() -> None:
    older = dict(json.loads(plan().data), software="deep20ray 0.0.9")
    with pytest.raises(PlanMismatch, match=r'\(software: "deep20ray 0\.0\.9" then, "deep20ray [^"]+" now\)'):
        check_same(json.dumps(older).encode(), plan())
    assert replace(plan(), created_at="x").document == plan().document


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('subjects = ["T-0001", "T-0004"]', "subjects = []", "sweep.subjects"),
        ('subjects = ["T-0001", "T-0004"]', 'subjects = ["T-0001", "T-0001"]', "sweep.subjects"),
        ('subjects = ["T-0001", "T-0004"]', 'subjects = ["T-0007"]', "T-0007"),
        ("rounds = 2", 'rounds = 2\npolicy = "evidence-first"', "sweep.policy: edition 1.1 accepts"),
    ],
)
def test_settings_that_do_not_go_together(old: str, new: str, says: str) -> None:
    with pytest.raises(SweepError) as error:
        plan(TEXT.replace(old, new, 1))
    assert says in str(error.value)


def test_an_edition_that_is_not_defined() -> None:
    with pytest.raises(UnknownEdition):
        plan(TEXT.replace('edition = "1.1"', 'edition = "2.0"'))
