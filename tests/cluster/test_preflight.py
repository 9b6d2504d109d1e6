"""Preflight: what it finds out before any trial starts, over real HTTP with the role actors' own code."""

import asyncio
import ssl
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import pytest

import deep20ray_cohorts
from deep20ray.actions import Ask
from deep20ray.answers import Role
from deep20ray_actors.config import LiteralCredential
from deep20ray_cluster import preflight
from deep20ray_cluster.plan import Plan, load_cohort, resolve
from deep20ray_cluster.pools import Pool
from deep20ray_cluster.preflight import QUESTION, SUBJECT, Check, Report
from deep20ray_cluster.routes import routes_of
from deep20ray_cluster.sweep import parse_sweep

from .blind import FakeTime, _starter, researching
from .command import run
from .provider import Provider, World
from .worlds import ROLES, sweep_text

GOOD = World(
    "thing",
    SUBJECT,
    (Ask("Is it alive?").canonical,),
    {QUESTION: ("YES", "YES", "YES")},
    {"paper clip": "YES"},
    (("https://example.org/clip", "Clip", "A small bent wire."),),
    usage={"prompt_tokens": 10, "completion_tokens": 5},
)


def report(world: World, change: tuple[str, str] = ("", ""), head: str = "") -> dict[str, Check]:
    """The checks of a sweep against a world, by name; of several of one name the first."""
    with patch.object(ssl.SSLContext, "load_verify_locations"):
        checks = asyncio.run(_report(world, change, head))
    return {check.what: check for check in reversed(checks)}


async def _report(world: World, change: tuple[str, str], head: str) -> list[Check]:
    time = FakeTime()
    provider = Provider([world], time.wait)
    runner, url = await provider.start()
    try:
        plan = _plan(researching(sweep_text(url, head=head)).replace(*change))
        routes = routes_of(plan, {role: LiteralCredential(f"key-{role}") for role in ROLES}, None)
        pools = {role: Pool(role.value, _starter(role, routes[role], time)) for role in Role}
        return [*preflight._unpriced(plan), *await preflight._checks(plan, pools)]
    finally:
        await runner.cleanup()


def _plan(text: str) -> Plan:
    sweep = parse_sweep(text, "s.toml")
    return resolve(sweep, load_cohort(sweep, Path()), datetime(2026, 12, 1, tzinfo=UTC))


def states(checks: dict[str, Check]) -> dict[str, str]:
    return {what: check.state for what, check in checks.items()}


def test_the_subject_belongs_to_no_cohort() -> None:
    names = {SUBJECT.canonical_name, *SUBJECT.aliases}
    for cohort in deep20ray_cohorts.names():
        for subject in deep20ray_cohorts.load(cohort).subjects:
            assert not names & {subject.trusted.canonical_name, *subject.trusted.aliases}


def test_every_role_model_and_search_is_tried_once() -> None:
    checks = report(GOOD)
    expected = ("guesser scripted", "oracle, queries", "search", "search-2", "oracle", "reviewer", "judge", "validator")
    assert states(checks) == {"prices": "note", **dict.fromkeys(expected, "ok")}
    assert "served by guesser-1, 10 tokens in, 5 out" in checks["guesser scripted"].detail
    assert Report(tuple(checks.values())).exit_code == 0


@pytest.mark.parametrize(
    ("call", "what", "status", "words", "code"),
    [
        ("guesser", "guesser scripted", "401", "Credentials: ", 2),
        ("queries", "oracle, queries", "401", "Credentials: ", 2),
        ("oracle", "oracle", "404", "Rejected: ", 2),
        ("reviewer", "reviewer", "402", "QuotaExhausted: ", 2),
        ("judge", "judge", "503", "ServerFault: ", 3),
        ("validator", "validator", "429", "Throttled: ", 3),
        ("validator", "validator", "close", "Transport: ", 3),
    ],
)
def test_what_fails_is_named_with_its_cause_and_the_rest_is_tried_all_the_same(
    call: str, what: str, status: str, words: str, code: int
) -> None:
    checks = report(replace(GOOD, faults={call: (status,) * 9}))
    assert (checks[what].state, checks[what].detail.startswith(words)) == ("failed", True), checks[what]
    assert {name for name, state in states(checks).items() if state == "failed"} == {what}
    assert {"reviewer", "judge", "validator", "guesser scripted"} <= checks.keys()
    assert Report(tuple(checks.values())).exit_code == code


@pytest.mark.parametrize("model", ["sonar-embed-7b", "gpt-5", "vendor/online-model", "deepsearcher"])
def test_a_model_of_a_like_name_is_tried(model: str) -> None:
    assert report(GOOD, ('model = "guesser"', f'model = "{model}"'))["guesser scripted"].state == "ok"


def test_a_search_that_another_could_make_up_for_is_only_noted() -> None:
    checks = report(replace(GOOD, faults={"search": ("500",) * 4}))
    assert (checks["search"].state, checks["search-2"].state) == ("note", "failed"), "the last one must work if no other did"


def test_a_feature_that_a_protocol_lacks_is_noted() -> None:
    plan = _plan(sweep_text("http://127.0.0.1:9").replace('kind = "openai-chat"', 'kind = "anthropic"', 1))
    (note,) = preflight._features(plan)
    assert note.what == "guesser scripted" and "no sampling seed" in note.detail


def test_a_search_server_that_refuses_json_is_named() -> None:
    checks = report(replace(GOOD, faults={"search": ("403",) * 9}))
    assert checks["search-2"].detail.startswith("Rejected: the search server refuses JSON") and "oracle" not in checks


def test_an_adjudicator_that_does_not_keep_to_the_schema_fails_and_a_guesser_is_only_noted() -> None:
    checks = report(replace(GOOD, guesser=("Let me think.",), unread={"judge": 9}))
    assert (checks["guesser scripted"].state, checks["judge"].state) == ("note", "failed")
    assert "not_json" in checks["guesser scripted"].detail and "can't be used" in checks["judge"].detail


@pytest.mark.parametrize(
    "model",
    [
        "gpt-4o-search-preview",
        "x-ai/grok:online",
        "perplexity/sonar-pro",
        "sonar",
        "o4-mini-deep-research",
        "gpt-5-search-api",
        "x-ai/grok-4:online:nitro",
    ],
)
def test_a_model_whose_search_can_not_be_switched_off_is_refused_without_a_call(model: str) -> None:
    checks = report(replace(GOOD, faults={"guesser": ("500",) * 9}), ('model = "guesser"', f'model = "{model}"'))
    assert checks["guesser scripted"].state == "failed" and "can't be switched off" in checks["guesser scripted"].detail


def test_without_usage_or_a_served_model_costs_and_drift_stay_unknown() -> None:
    checks = report(replace(GOOD, usage=None))
    assert "no usage" in checks["guesser scripted"].detail


def test_a_missing_price_is_a_note_and_under_a_budget_a_failure() -> None:
    assert "guesser" in report(GOOD)["prices"].detail
    with_budget = report(GOOD, head="max_cost_usd = 5.0")
    assert with_budget["prices"].state == "failed"


def test_the_command_tries_the_demo_out(tmp_path: Path) -> None:
    done = run("preflight", "--json")
    assert done.code == 0 and '"state": "ok"' in done.out and "failed" not in done.out
