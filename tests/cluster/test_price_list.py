"""The plan's prices: from which list, of which moment, and what is on none."""

import json
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import genai_prices
import pytest

import deep20ray_cohorts
from deep20ray.canonical import sha256
from deep20ray_cluster.errors import PlanMismatch, SweepError
from deep20ray_cluster.plan import Plan, check_same, resolve
from deep20ray_cluster.price_list import load_prices, price_section
from deep20ray_cluster.sweep import Price, Sweep, parse_prices, parse_sweep

from .worlds import sweep_text

NOW = datetime(2026, 12, 1, tzinfo=UTC)
PACKAGE = f"genai-prices {genai_prices.__version__}"
OWN = "https://api.openai.com/v1"


def sweep(kind: str = "openai-chat", base_url: str = OWN, model: str = "gpt-5", more: str = "", head: str = "") -> Sweep:
    """A sweep whose model under test is on that account; the others' servers are private."""
    text = sweep_text("http://127.0.0.1:9", head=head)
    text = text.replace('kind = "openai-chat"\nbase_url = "http://127.0.0.1:9/guesser/v1"', f'kind = "{kind}"\nbase_url = "{base_url}"')
    return parse_sweep(text.replace('model = "guesser"', f'model = "{model}"') + more, "s.toml")


def entry(*args: Any, shared: dict[str, Price] | None = None, at: datetime = NOW, **settings: Any) -> Any:
    """The one entry, or None."""
    found = price_section(sweep(*args, **settings), shared or {}, at)["models"]
    assert len(found) <= 1
    return found[0] if found else None


def test_a_list_price_is_frozen_with_its_source() -> None:
    assert entry() == {
        "provider": "openai-chat",
        "endpoint_sha256": sha256(OWN.encode()),
        "requested_model": "gpt-5",
        "source": PACKAGE,
        "listed_as": "gpt-5",
        "usd_per_mtok": {"input": "1.25", "output": "10", "cache_read": "0.125"},
        "usd_per_thousand_searches": "10",
    }


def test_prices_by_length_of_the_input_and_of_cache_writes() -> None:
    found = entry("anthropic", "https://api.anthropic.com/v1", "claude-sonnet-4-5")
    rates = found["usd_per_mtok"]
    assert rates["input"] == {"base": "3", "above": [{"input_tokens": 200_000, "usd": "6"}]}
    assert set(rates) == {"input", "output", "cache_read", "cache_write_5m", "cache_write_1h"}
    assert found["usd_per_thousand_searches"] == "10"


@pytest.mark.parametrize(
    ("kind", "base_url", "model"),
    [
        ("openai-responses", OWN, "gpt-5"),
        ("anthropic", "https://api.anthropic.com/v1", "claude-opus-4-5"),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta", "gemini-2.5-pro"),
        ("openrouter", "https://openrouter.ai/api/v1", "openai/gpt-5"),
    ],
)
def test_each_kind_of_account_has_its_providers_list(kind: str, base_url: str, model: str) -> None:
    found = entry(kind, base_url, model)
    assert found["source"] == PACKAGE and {"input", "output"} <= set(found["usd_per_mtok"])


@pytest.mark.parametrize(
    "base_url", ["http://127.0.0.1:8000/v1", "https://api.openai.com.example.org/v1", "https://example.org/api.openai.com"]
)
@pytest.mark.parametrize(
    ("kind", "model"),
    [("openai-chat", "gpt-5"), ("openai-responses", "gpt-5"), ("anthropic", "claude-opus-4-5"), ("gemini", "gemini-2.5-pro")],
)
def test_a_server_of_ones_own_has_no_list_price(kind: str, base_url: str, model: str) -> None:
    assert entry(kind, base_url, model) is None
    assert price_section(sweep(kind, base_url), {}, NOW)["package"] is None


def test_a_model_on_no_list_has_no_entry() -> None:
    assert entry(model="no-such-model") is None
    assert price_section(sweep(model="no-such-model"), {}, NOW)["package"] == PACKAGE, "it was asked all the same"


def test_the_price_of_the_moment_counts() -> None:
    from genai_prices.data import providers
    from genai_prices.types import StartDateConstraint

    (openai,) = [provider for provider in providers if provider.id == "openai"]
    changed = [
        (model.id, price.constraint.start_date)
        for model in openai.models
        if isinstance(model.prices, list)
        for price in model.prices
        if isinstance(price.constraint, StartDateConstraint)
    ]
    model, day = changed[0]
    before = entry(model=model, at=datetime(2000, 1, 1, tzinfo=UTC))
    after = entry(model=model, at=datetime(day.year, day.month, day.day, tzinfo=UTC))
    assert before["usd_per_mtok"] != after["usd_per_mtok"]


INLINE = '\n[prices."gpt-5"]\ninput_usd_per_mtok = 0.1\noutput_usd_per_mtok = 1e-7\n'
FILE = (
    '[prices."gpt-5"]\ninput_usd_per_mtok = 7\noutput_usd_per_mtok = 8\ncache_write_1h_usd_per_mtok = 9.5\nsearch_usd_per_thousand = 12\n'
)


def test_the_sweep_file_comes_before_the_prices_file_and_that_before_the_package() -> None:
    shared = parse_prices(FILE, "p.toml")
    inline = entry(more=INLINE, shared=shared)
    assert (inline["source"], inline["usd_per_mtok"]) == ("sweep file", {"input": "0.1", "output": "0.0000001", "cache_read": "0.1"})
    filed = entry(shared=shared, head='prices_file = "some/where/p.toml"')
    assert filed["source"] == "prices file p.toml", "where it lies is nobody's business"
    assert filed["usd_per_mtok"] == {"input": "7", "output": "8", "cache_read": "7", "cache_write_1h": "9.5"}
    assert filed["usd_per_thousand_searches"] == "12"
    assert entry("openai-chat", "http://127.0.0.1:1/v1", shared=shared)["usd_per_mtok"]["input"] == "7"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ('kind = "searxng"\nbase_url = "http://127.0.0.1:9"', ("self-hosted", "0")),
        ('kind = "searxng"\nbase_url = "http://127.0.0.1:9"\nusd_per_thousand = 0.5', ("sweep file", "0.5")),
        ('kind = "simulator"', ("self-hosted", "0")),
        ('kind = "tavily"', ("keyless", "0")),
        ('kind = "tavily"\napi_key = "env:T"', (None, None)),
        ('kind = "tavily"\napi_key = "env:T"\nusd_per_thousand = 8', ("sweep file", "8")),
        ('kind = "brave"\napi_key = "env:B"', (None, None)),
    ],
)
def test_what_a_search_costs(lines: str, found: tuple[str | None, str | None]) -> None:
    before, _, after = sweep_text("http://127.0.0.1:9").partition("[search]\n")
    text = f"{before}[search]\n{lines}\n\n[support.oracle]{after.partition('[support.oracle]')[2]}"
    search = price_section(parse_sweep(text, "s.toml"), {}, NOW)["search"]
    assert (search["source"], search["usd_per_thousand"]) == found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "can't be read"),
        ("[prices", "not valid TOML"),
        ('[prices."m"]\ninput_usd_per_mtok = 1', "prices.m.output_usd_per_mtok"),
        ('[prices."m"]\ninput_usd_per_mtok = -1\noutput_usd_per_mtok = 1', "prices.m.input_usd_per_mtok"),
        ("[prices]\n[sweep]\nname = 1", "sweep: unknown key"),
    ],
)
def test_a_prices_file_that_is_none(tmp_path: Path, text: str | None, says: str) -> None:
    path = tmp_path / "p.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SweepError, match=says) as error:
        load_prices(sweep(head='prices_file = "p.toml"'), path)
    assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)


def test_a_sweep_without_a_prices_file_reads_none(tmp_path: Path) -> None:
    assert load_prices(sweep(), tmp_path / "absent") == {}


def plan() -> Plan:
    return resolve(sweep(), deep20ray_cohorts.load("core-1.1"), NOW)


def test_no_plan_opens_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert plan().document["prices"]["models"]


def test_another_version_of_the_package_is_named() -> None:
    before = json.loads(plan().data)
    before["prices"]["package"] = "genai-prices 0.0.1"
    before["prices"]["models"] = []
    with pytest.raises(PlanMismatch) as error:
        check_same(json.dumps(before).encode(), plan())
    assert "genai-prices 0.0.1" in str(error.value) and PACKAGE in str(error.value) and "genai-prices==0.0.1" in str(error.value)
