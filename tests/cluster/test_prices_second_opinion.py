"""Our costs of real providers' replies beside those of genai-prices' own reading of the same bodies.

It misses the searches of OpenAI and Gemini, which are added here at its own price, and knows no cost that a provider reports.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import genai_prices
import pytest
from genai_prices.types import Usage as TheirUsage

from deep20ray_actors.config import Dialect
from deep20ray_actors.outcomes import Usage
from deep20ray_actors.providers.usage import cost_microusd, read_anthropic_usage, read_gemini_usage, read_responses_usage, read_usage
from deep20ray_cluster.price_list import price_section
from deep20ray_cluster.prices import UnitPrices, call_cost
from deep20ray_cluster.sweep import parse_sweep
from tests.actors.recorded import KEYS, exchanges, needed

from .worlds import sweep_text

NOW = datetime(2026, 12, 1, tzinfo=UTC)
PLACES = {
    Dialect.OPENAI_RESPONSES: ("openai", "responses", "https://api.openai.com/v1"),
    Dialect.OPENAI_CHAT: ("openai", "chat", "https://api.openai.com/v1"),
    Dialect.ANTHROPIC: ("anthropic", "default", "https://api.anthropic.com/v1"),
    Dialect.GEMINI: ("google", "default", "https://generativelanguage.googleapis.com/v1beta"),
    Dialect.OPENROUTER: ("openrouter", "chat", "https://openrouter.ai/api/v1"),
}
READ: dict[Dialect, Callable[[Any], Usage]] = {
    Dialect.OPENAI_RESPONSES: lambda body: read_responses_usage(body["usage"], body.get("tool_usage"), searched(body)),
    Dialect.OPENAI_CHAT: lambda body: read_usage(body["usage"]),
    Dialect.OPENROUTER: lambda body: read_usage(body["usage"]),
    Dialect.ANTHROPIC: lambda body: read_anthropic_usage(body["usage"]),
    Dialect.GEMINI: lambda body: replace(read_gemini_usage(body["usageMetadata"]), searches=grounded(body)),
}


def searched(body: Any) -> int:
    """OpenAI's searches."""
    return sum(item["type"] == "web_search_call" and (item.get("action") or {}).get("type") == "search" for item in body.get("output", ()))


def grounded(body: Any) -> int:
    """Gemini's searches."""
    return len(body["candidates"][0].get("groundingMetadata", {}).get("webSearchQueries", ())) if body.get("candidates") else 0


def frozen(dialect: Dialect, model: str) -> UnitPrices:
    """The prices that a plan would hold for that model."""
    text = sweep_text("http://127.0.0.1:9")
    text = text.replace(
        'kind = "openai-chat"\nbase_url = "http://127.0.0.1:9/guesser/v1"', f'kind = "{dialect.value}"\nbase_url = "{PLACES[dialect][2]}"'
    ).replace('model = "guesser"', f'model = "{model}"')
    (entry,) = price_section(parse_sweep(text, "s.toml"), {}, NOW)["models"]
    return UnitPrices.of(entry)


def theirs(dialect: Dialect, body: Any, model: str, searches: int) -> int:
    """The second opinion, in micro-dollars."""
    provider, flavor, _ = PLACES[dialect]
    extracted = genai_prices.extract_usage(body, provider_id=provider, api_flavor=flavor)
    usage = extracted.usage
    if not usage.reported_value("web_searches") and searches and dialect is not Dialect.OPENROUTER:
        usage = usage + TheirUsage(web_searches=searches)
    price = genai_prices.calc_price(usage, model, provider_id=provider, genai_request_timestamp=NOW).total_price
    return int((price * 1_000_000).to_integral_value(ROUND_HALF_UP))


@needed
@pytest.mark.parametrize(("name", "number"), KEYS)
def test_a_recorded_reply_costs_what_the_package_says(name: str, number: int) -> None:
    exchange = exchanges(name)[number]
    if exchange.status != 200:
        pytest.skip("an error, which has no usage")
    body, dialect = exchange.body, exchange.dialect
    model = body["modelVersion"] if dialect is Dialect.GEMINI else body["model"]
    usage = READ[dialect](body)
    # What OpenRouter charges for a search is in its reported cost and on no list.
    ours = call_cost(replace(usage, searches=0) if dialect is Dialect.OPENROUTER else usage, frozen(dialect, model), None)
    assert ours == theirs(dialect, body, model, usage.searches)
    assert ours


@needed
@pytest.mark.parametrize("name", ["test_openrouter_web_search_annotations", "test_openrouter_web_search_tool_usage"])
def test_what_openrouter_charged_wins_over_its_list(name: str) -> None:
    (exchange,) = exchanges(name)
    reported = cost_microusd(exchange.body["usage"])
    assert reported == round(Decimal(str(exchange.body["usage"]["cost"])) * 1_000_000)
    assert call_cost(read_usage(exchange.body["usage"]), frozen(Dialect.OPENROUTER, exchange.body["model"]), reported) == reported


@needed
def test_the_recordings_reach_the_dear_step_and_searches() -> None:
    first, second = exchanges("test_pause_turn_web_search_vcr")
    assert first.body["usage"]["input_tokens"] > 200_000 and first.body["usage"]["server_tool_use"]["web_search_requests"] == 10
    assert second.body["stop_reason"] != "pause_turn"


MADE: list[tuple[Dialect, str, dict[str, Any]]] = [
    (
        Dialect.ANTHROPIC,
        "claude-sonnet-4-5",
        {
            "input_tokens": 1201,
            "cache_read_input_tokens": 30_000,
            "cache_creation_input_tokens": 3000,
            "cache_creation": {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 2000},
            "output_tokens": 777,
            "output_tokens_details": {"thinking_tokens": 700},
            "server_tool_use": {"web_search_requests": 3},
        },
    ),
    (
        Dialect.OPENAI_CHAT,
        "gpt-6-sol",
        {
            "prompt_tokens": 300_000,
            "prompt_tokens_details": {"cached_tokens": 250_000, "cache_write_tokens": 20_000},
            "completion_tokens": 999,
            "completion_tokens_details": {"reasoning_tokens": 900},
            "total_tokens": 300_999,
        },
    ),
    (Dialect.OPENAI_CHAT, "gpt-5", {"prompt_tokens": 123, "completion_tokens": 45, "total_tokens": 168}),
]


@pytest.mark.parametrize(("dialect", "model", "usage"), MADE)
def test_caches_thinking_and_searches_together(dialect: Dialect, model: str, usage: dict[str, Any]) -> None:
    body = {"model": model, "usage": usage}
    read = READ[dialect](body)
    ours = call_cost(read, frozen(dialect, model), None)
    assert ours == theirs(dialect, body, model, read.searches)
    assert ours


def test_a_cached_and_thinking_gemini() -> None:
    usage = {"promptTokenCount": 210_000, "cachedContentTokenCount": 9000, "candidatesTokenCount": 10, "thoughtsTokenCount": 90}
    body = {"modelVersion": "gemini-2.5-pro", "usageMetadata": usage, "candidates": [{}]}
    ours = call_cost(READ[Dialect.GEMINI](body), frozen(Dialect.GEMINI, "gemini-2.5-pro"), None)
    assert ours == theirs(Dialect.GEMINI, body, "gemini-2.5-pro", 0)
    assert ours
