"""Accounts of every kind: their settings, which of them go together, what the plan says of them and what the actors get."""

from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from deep20ray.answers import Role
from deep20ray_actors.config import AnthropicSettings, Backend, Dialect, RouteConfig
from deep20ray_actors.providers.dialects import DIALECTS, NATIVE_SEARCH
from deep20ray_cluster.errors import SweepError
from deep20ray_cluster.plan import Plan, resolve
from deep20ray_cluster.routes import routes_of
from deep20ray_cluster.settings import Search
from deep20ray_cluster.sweep import NATIVE_KINDS, Account, parse_sweep
from deep20ray_cohorts import load

from .worlds import sweep_text

PLAIN = 'kind = "openai-chat"'


def text(kind: str, more: str = "", model: str = "") -> str:
    """A sweep whose guesser's account is of that kind."""
    good = sweep_text("http://127.0.0.1:9")
    return good.replace(PLAIN, f'kind = "{kind}"\n{more}', 1).replace('id = "scripted"', f'id = "scripted"\n{model}', 1)


def planned(kind: str, more: str = "", model: str = "") -> Plan:
    sweep = parse_sweep(text(kind, more, model), "my.toml")
    return resolve(sweep, load("core-1.1"), datetime(2026, 11, 1, tzinfo=UTC))


def entry(plan: Plan) -> dict[str, Any]:
    guesser: dict[str, Any] = plan.document["runs"][0]["guesser"]
    return guesser


def route(plan: Plan) -> RouteConfig:
    return routes_of(plan, dict.fromkeys(plan.sweep.accounts), None)[Role.GUESSER]["g0"]


def test_the_kinds_that_search_themselves_are_those_whose_dialect_can() -> None:
    assert set(NATIVE_KINDS) == {dialect.value for dialect in NATIVE_SEARCH}
    assert set(get_args(Search.model_fields["kind"].annotation)) == {*Backend, "native", "simulator"}


def test_every_dialect_is_an_account_s_kind() -> None:
    kinds = set(get_args(Account.model_fields["kind"].annotation))
    assert kinds == {*Dialect, "simulator"} and set(DIALECTS) == set(Dialect)


@pytest.mark.parametrize("dialect", Dialect)
def test_a_kind_is_spoken_and_published(dialect: Dialect) -> None:
    plan = planned(dialect.value)
    assert route(plan).dialect is dialect
    assert entry(plan)["provider"] == dialect.value


def test_the_settings_of_a_kind_reach_the_actors_and_the_plan_s_digests() -> None:
    anthropic = planned("anthropic", 'anthropic_auth = "bearer"\nanthropic_version = "2026-10-21"', 'thinking = "adaptive"')
    assert route(anthropic).anthropic == AnthropicSettings("bearer", "2026-10-21", "adaptive")
    assert entry(anthropic)["dialect"] == {"version": "2026-10-21", "thinking": "adaptive"}
    assert entry(anthropic)["config_sha256"] != entry(planned("anthropic"))["config_sha256"]
    router = planned("openrouter", 'upstreams = ["anthropic"]')
    assert route(router).upstreams == ("anthropic",)
    assert entry(router)["dialect"] == {"only": ["anthropic"], "allow_fallbacks": False, "require_parameters": True}
    assert entry(router)["config_sha256"] != entry(planned("openrouter"))["config_sha256"]


@pytest.mark.parametrize(
    ("kind", "more", "model", "says"),
    [
        ("anthropic", 'output_limit_field = "max_tokens"', "", "output_limit_field is a setting of kind openai-chat"),
        ("openai-chat", 'anthropic_auth = "bearer"', "", "anthropic_auth is a setting of kind anthropic, not of openai-chat"),
        ("gemini", 'upstreams = ["x"]', "", "upstreams is a setting of kind openrouter, not of gemini"),
        ("gemini", "", 'thinking = "adaptive"', "thinking is a setting of accounts of kind anthropic"),
        ("anthropic", 'anthropic_version = "latest"', "", "anthropic_version"),
        ("vertex", "", "", "openrouter"),
    ],
)
def test_settings_of_another_kind_are_refused(kind: str, more: str, model: str, says: str) -> None:
    with pytest.raises(SweepError, match=says):
        parse_sweep(text(kind, more, model), "my.toml")


@pytest.mark.parametrize("dialect", Dialect)
def test_every_kind_needs_an_address_and_is_told_an_example(dialect: Dialect) -> None:
    addressed = 'base_url = "http://127.0.0.1:9/guesser/v1"\n'
    assert addressed in text(dialect.value)
    with pytest.raises(SweepError, match="it needs base_url, for example http"):
        parse_sweep(text(dialect.value).replace(addressed, ""), "my.toml")
