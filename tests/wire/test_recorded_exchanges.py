"""Real exchanges over sockets: a server that gives the recorded reply only to a request that says what the recorded one said."""

import asyncio
import json
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from deep20ray.answers import Role
from deep20ray_actors.config import AnthropicSettings, Dialect, LiteralCredential, NativeSearch, Sampling
from deep20ray_actors.messages import ResearchMessage
from deep20ray_actors.outcomes import CallResult, Completed, Rejected, Throttled, Truncated
from deep20ray_actors.providers.features import Feature
from tests.actors import recorded
from tests.actors.dialects import BASES, PATHS
from tests.actors.support import MESSAGES, SUBJECT, FakeTime, call, dumped, host, results_of, route

pytestmark = recorded.needed
RESEARCH = ResearchMessage.of(SUBJECT, "Is it alive?", 1)
Way = tuple[str | int, ...]

AGREED: list[tuple[str, dict[str, Any], list[Way], type]] = [
    (
        "test_anthropic_opus_5_features",
        {
            "model": "claude-opus-5",
            "max_output_tokens": 4096,
            "effort": "xhigh",
            "anthropic": AnthropicSettings(thinking="adaptive"),
        },
        [("model",), ("max_tokens",), ("output_config", "effort"), ("thinking", "type"), ("messages", 0, "role")],
        Completed,
    ),
    (
        "test_anthropic_sampling_settings_reach_the_wire",
        {"model": "claude-haiku-4-5", "max_output_tokens": 4096, "sampling": Sampling(temperature=0.2)},
        [("model",), ("max_tokens",), ("temperature",), ("messages", 0, "content", 0, "type")],
        Completed,
    ),
    (
        "test_anthropic_web_search_tool",
        {"model": "claude-sonnet-4-0", "native": NativeSearch(3)},
        [("model",), ("tools", 0, "type"), ("tools", 0, "name")],
        Completed,
    ),
    (
        "test_google_model_max_tokens_thinking_model_empty_response",
        {"model": "gemini-2.5-pro", "max_output_tokens": 5},
        [("generationConfig", "maxOutputTokens"), ("contents", 0, "role")],
        Truncated,
    ),
    ("test_google_model_web_search_tool", {"model": "gemini-2.5-pro", "native": NativeSearch(3)}, [("tools",)], Completed),
    (
        "test_openai_include_raw_annotations_non_streaming",
        {"model": "gpt-5.2", "native": NativeSearch(3)},
        [("model",), ("tools", 0, "type"), ("input", 0, "role")],
        Completed,
    ),
    (
        "test_openai_responses_model_http_error",
        {"model": "gpt-4o", "sampling": Sampling(temperature=-1)},
        [("model",), ("temperature",), ("input", 0, "role")],
        Rejected,
    ),
    (
        "test_openai_responses_model_web_search_tool",
        {"model": "gpt-5", "native": NativeSearch(3)},
        [("model",), ("tools", 0, "type")],
        Completed,
    ),
    (
        "test_openrouter_errors_raised",
        {"model": "google/gemini-2.0-flash-exp:free"},
        [("model",), ("messages", 0, "role"), ("messages", 1, "role")],
        Throttled,
    ),
    (
        "test_openrouter_web_search_annotations",
        {"model": "deepseek/deepseek-chat", "native": NativeSearch(1)},
        [("model",), ("tools", 0, "type"), ("tools", 0, "parameters", "max_uses")],
        Completed,
    ),
    (
        "test_openrouter_web_search_tool_usage",
        {"model": "openai/gpt-4.1-mini", "native": NativeSearch(1)},
        [("model",), ("tools", 0, "type"), ("tools", 0, "parameters", "max_uses")],
        Completed,
    ),
    (
        "test_pause_turn_web_search_vcr",
        {"model": "claude-sonnet-4-5", "max_output_tokens": 15000, "native": NativeSearch(20)},
        [("model",), ("max_tokens",), ("tools", 0, "type"), ("tools", 0, "name")],
        Completed,
    ),
]
"""Each file, the route's settings that say the same, the members that must agree, and what becomes of it."""


def at(body: Any, way: Way) -> Any:
    for step in way:
        body = body[step]
    return body


def replay(server: HTTPServer, name: str, settings: dict[str, Any], members: list[Way]) -> CallResult:
    """One call against a file's replies, in turn, the first asked for as recorded."""
    exchanges = recorded.exchanges(name)
    dialect = exchanges[0].dialect
    seen: list[Any] = []

    def handler(request: Request) -> Response:
        body = json.loads(request.get_data())
        first = exchanges[0].request
        if not seen:
            wrong = [way for way in members if at(body, way) != at(first, way)]
            if wrong:
                return Response(dumped({"error": {"message": str(wrong)}}), 418)
        exchange = exchanges[min(len(seen), len(exchanges) - 1)]
        seen.append(body)
        return Response(dumped(exchange.body), exchange.status, content_type="application/json")

    server.expect_request(exchanges[0].path, method="POST").respond_with_handler(handler)
    role = Role.ORACLE if "native" in settings else Role.GUESSER
    config = route(role, server.url_for(BASES[dialect]), dialect=dialect, credential=LiteralCredential("key-1"), **settings)
    message = RESEARCH if role is Role.ORACLE else MESSAGES[role]
    time = FakeTime()

    async def one() -> CallResult:
        (result,) = await results_of(host(role, config, time), [call(message)])
        return result

    result = asyncio.run(one())
    assert len(seen) == len(server.log), server.log[0][1].get_data()
    return result


def test_every_recorded_file_is_replayed() -> None:
    assert [name for name, *_ in AGREED] == list(recorded.FILES)
    for name in recorded.FILES:
        for exchange in recorded.exchanges(name):
            model = exchange.path.rpartition("/")[2].removesuffix(":generateContent")
            assert exchange.path.replace(model, "model-1") == PATHS[exchange.dialect] or exchange.path == PATHS[exchange.dialect]


@pytest.mark.parametrize(("name", "settings", "members", "kind"), AGREED, ids=[name for name, *_ in AGREED])
def test_what_was_said_is_said_and_what_was_answered_is_read(
    httpserver: HTTPServer, name: str, settings: dict[str, Any], members: list[Way], kind: type
) -> None:
    result = replay(httpserver, name, settings, members)
    assert type(result.outcome) is kind
    tries = {Throttled: 3, Completed: 1 + result.audit.resumptions}.get(kind, 1)
    assert result.audit.wire_tries == len(httpserver.log) == tries
    assert result.audit.resumptions == (name == "test_pause_turn_web_search_vcr")


def test_a_request_that_says_something_else_gets_no_recorded_reply(httpserver: HTTPServer) -> None:
    name, settings, members, _ = AGREED[0]
    with pytest.raises(AssertionError, match="effort"):
        replay(httpserver, name, settings | {"effort": "low"}, members)


@pytest.mark.shows(Feature.PAUSED_TURN, Dialect.ANTHROPIC)
def test_the_paused_turn_is_one_call_whose_usage_is_the_sum(httpserver: HTTPServer) -> None:
    name, settings, members, _ = AGREED[-1]
    result = replay(httpserver, name, settings, members)
    bodies = [exchange.body for exchange in recorded.exchanges(name)]
    said = [body["usage"] for body in bodies]
    usage = result.audit.usage
    assert usage.searches == sum(one["server_tool_use"]["web_search_requests"] for one in said)
    assert usage.input_fresh == sum(one["input_tokens"] for one in said)
    assert (usage.output_visible or 0) + (usage.output_reasoning or 0) == sum(one["output_tokens"] for one in said)
    # The second request repeats what the first reply held, byte for byte.
    echoed = [json.loads(request.get_data())["messages"][-1] for request, _ in httpserver.log][1]
    assert echoed == {"role": "assistant", "content": bodies[0]["content"]}
