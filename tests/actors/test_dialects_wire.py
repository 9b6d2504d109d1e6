"""Every dialect over real sockets: one host, one request with the right path and key, tries counted by the server."""

import asyncio
import json
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from deep20ray.answers import Role
from deep20ray_actors.config import AnthropicSettings, Dialect, LiteralCredential, RouteConfig
from deep20ray_actors.outcomes import CallResult, Completed, Malformed, QuotaExhausted, Refused, ServerFault, Throttled, Truncated, Usage
from deep20ray_actors.providers.features import Feature
from tests.actors.dialects import BASES, BODIES, PATHS, Said
from tests.actors.support import MESSAGES, RECORDED, FakeTime, call, dumped, host, results_of, route

KEY_HEADERS = dict.fromkeys(Dialect, ("Authorization", "Bearer key-1")) | {
    Dialect.ANTHROPIC: ("X-Api-Key", "key-1"),
    Dialect.GEMINI: ("X-Goog-Api-Key", "key-1"),
}


def run(config: RouteConfig, time: FakeTime | None = None) -> CallResult:
    async def one() -> CallResult:
        (result,) = await results_of(host(config.role, config, time), [call(MESSAGES[config.role])])
        return result

    return asyncio.run(one())


def spoken(server: HTTPServer, dialect: Dialect, role: Role = Role.GUESSER, **settings: Any) -> RouteConfig:
    base = server.url_for(BASES[dialect])
    return route(role, base, dialect=dialect, credential=LiteralCredential("key-1"), **settings)


def answers(server: HTTPServer, dialect: Dialect, *replies: tuple[int, Any]) -> list[Request]:
    """Answers with these in turn, the last one for ever; returns the list of requests as they come in."""
    seen: list[Request] = []

    def handler(request: Request) -> Response:
        request.get_data()
        seen.append(request)
        status, body = replies[min(len(seen), len(replies)) - 1]
        return Response(dumped(body), status, content_type="application/json")

    server.expect_request(PATHS[dialect], method="POST").respond_with_handler(handler)
    return seen


@pytest.mark.shows(Feature.SERVED_MODEL, *Dialect)
@pytest.mark.shows(Feature.REASONING_TEXT, *Dialect)
@pytest.mark.shows(Feature.SEED, Dialect.OPENAI_CHAT, Dialect.GEMINI, Dialect.OPENROUTER)
@pytest.mark.parametrize("dialect", Dialect)
def test_one_call_one_request_with_the_key_where_it_belongs(httpserver: HTTPServer, dialect: Dialect) -> None:
    seen = answers(httpserver, dialect, (200, BODIES[dialect](Said('{"a":1}', reasoning="hm"))))
    result = run(spoken(httpserver, dialect))
    assert (result.outcome, result.audit.reasoning, result.audit.served_model) == (Completed('{"a":1}'), "hm", "served")
    (request,) = seen
    name, value = KEY_HEADERS[dialect]
    assert request.headers[name] == value and sum("key-1" in held for held in request.headers.values()) == 1
    assert b"key-1" not in request.data and "key-1" not in request.url
    assert result.audit.wire_tries == 1
    assert result.audit.seed_sent is (b'"seed":7' in request.data) is (dialect not in (Dialect.OPENAI_RESPONSES, Dialect.ANTHROPIC))


def test_anthropic_s_version_and_auth_are_settings(httpserver: HTTPServer) -> None:
    seen = answers(httpserver, Dialect.ANTHROPIC, (200, BODIES[Dialect.ANTHROPIC](Said())))
    run(spoken(httpserver, Dialect.ANTHROPIC))
    run(spoken(httpserver, Dialect.ANTHROPIC, anthropic=AnthropicSettings("bearer", "2026-10-21")))
    assert [(r.headers.get("X-Api-Key"), r.headers.get("Authorization"), r.headers["Anthropic-Version"]) for r in seen] == [
        ("key-1", None, "2023-06-01"),
        (None, "Bearer key-1", "2026-10-21"),
    ]


@pytest.mark.parametrize("dialect", Dialect)
def test_without_a_key_no_key_header_goes_out(httpserver: HTTPServer, dialect: Dialect) -> None:
    seen = answers(httpserver, dialect, (200, BODIES[dialect](Said())))
    run(route(base_url=httpserver.url_for(BASES[dialect]), dialect=dialect))
    assert not {"Authorization", "X-Api-Key", "X-Goog-Api-Key"} & {name.title() for name, _ in seen[0].headers}


@pytest.mark.shows(Feature.ERROR_IN_200, *Dialect)
@pytest.mark.parametrize("dialect", Dialect)
def test_a_fault_inside_a_good_status_is_tried_again_and_a_refusal_never(httpserver: HTTPServer, dialect: Dialect) -> None:
    broken = {"type": "error", "status": "failed", "error": {"type": "overloaded_error", "code": 503}}
    seen = answers(httpserver, dialect, (503, {}), (200, broken), (200, BODIES[dialect](Said())))
    result = run(spoken(httpserver, dialect))
    assert result.outcome == Completed("{}") and len(seen) == result.audit.wire_tries == 3
    assert len({request.data for request in seen}) == 1


@pytest.mark.shows(Feature.QUOTA_ONCE, Dialect.ANTHROPIC, Dialect.OPENROUTER)
@pytest.mark.parametrize(
    ("dialect", "status", "body", "kind", "tries"),
    [
        (Dialect.ANTHROPIC, 529, {"type": "error", "error": {"type": "overloaded_error"}}, ServerFault, 3),
        (Dialect.ANTHROPIC, 429, {"error": {"details": {"error_code": "enforced_spend_limit_reached"}}}, QuotaExhausted, 1),
        (Dialect.ANTHROPIC, 200, BODIES[Dialect.ANTHROPIC](Said(None, "refusal")), Refused, 1),
        (Dialect.ANTHROPIC, 200, BODIES[Dialect.ANTHROPIC](Said("x", "pause_turn")), Truncated, 1),
        (Dialect.GEMINI, 200, {"promptFeedback": {"blockReason": "SAFETY"}}, Refused, 1),
        (Dialect.GEMINI, 200, {}, Malformed, 3),
        (Dialect.OPENAI_RESPONSES, 200, {"status": "failed", "error": {"code": "server_error"}}, ServerFault, 3),
        (Dialect.OPENAI_RESPONSES, 200, BODIES[Dialect.OPENAI_RESPONSES](Said(None, "max_output_tokens")), Truncated, 1),
        (Dialect.OPENROUTER, 200, {"error": {"code": 429, "metadata": {"retry_after_seconds": 5}}}, Throttled, 3),
        (Dialect.OPENROUTER, 200, {"error": {"code": 402}}, QuotaExhausted, 1),
    ],
)
def test_tries_counted_on_the_wire(httpserver: HTTPServer, dialect: Dialect, status: int, body: Any, kind: type, tries: int) -> None:
    seen = answers(httpserver, dialect, (status, body))
    result = run(spoken(httpserver, dialect))
    assert isinstance(result.outcome, kind)
    assert len(seen) == len(httpserver.log) == result.audit.wire_tries == tries


def gemini_quota(quota_id: str) -> dict[str, Any]:
    details = [{"violations": [{"quotaId": quota_id}]}, {"retryDelay": "22s"}]
    return {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}}


@pytest.mark.shows(Feature.QUOTA_ONCE, Dialect.GEMINI)
@pytest.mark.shows(Feature.RETRY_AFTER, Dialect.GEMINI)
def test_gemini_s_minute_is_waited_for_as_asked_and_its_day_is_not(httpserver: HTTPServer) -> None:
    good = (200, BODIES[Dialect.GEMINI](Said()))
    seen = answers(httpserver, Dialect.GEMINI, (429, gemini_quota("RequestsPerMinute")), good, (429, gemini_quota("RequestsPerDay")), good)
    time = FakeTime()
    first, second = run(spoken(httpserver, Dialect.GEMINI), time), run(spoken(httpserver, Dialect.GEMINI), time)
    assert first.outcome == Completed("{}") and isinstance(second.outcome, QuotaExhausted)
    assert time.sleeps == [22.0] and len(seen) == 3 and (first.audit.wire_tries, second.audit.wire_tries) == (2, 1)


yaml = pytest.importorskip("yaml")
recorded = pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded provider exchanges are not here (../shared/data/recorded)")


def replayed(server: HTTPServer, dialect: Dialect, name: str, role: Role, number: int = 0) -> CallResult:
    """The host's reading of a real exchange's reply, served over a socket."""
    response = yaml.load((RECORDED / name).read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))["interactions"][number]["response"]
    answers(server, dialect, (response["status"]["code"], response["parsed_body"]))
    return run(spoken(server, dialect, role))


@recorded
def test_real_messages(httpserver: HTTPServer) -> None:
    result = replayed(httpserver, Dialect.ANTHROPIC, "test_anthropic_opus_5_features.yaml", Role.GUESSER)
    assert result.outcome == Completed("2 + 2 = 4") and result.audit.served_model == "claude-opus-5"
    assert result.audit.usage == Usage(13, 0, 0, 0, 11, 33) and result.audit.reasoning is not None


@recorded
def test_a_real_reply_that_only_thought(httpserver: HTTPServer) -> None:
    name = "test_google_model_max_tokens_thinking_model_empty_response.yaml"
    result = replayed(httpserver, Dialect.GEMINI, name, Role.GUESSER)
    assert result.outcome == Truncated(None, "length", reasoning_only=True)
    assert result.audit.usage == Usage(15, 0, 0, 0, 0, 2) and result.audit.served_model == "gemini-2.5-pro"


@recorded
@pytest.mark.parametrize("role", [Role.GUESSER, Role.ORACLE])
@pytest.mark.parametrize(
    ("dialect", "name"),
    [
        (Dialect.ANTHROPIC, "test_anthropic_web_search_tool.yaml"),
        (Dialect.ANTHROPIC, "test_pause_turn_web_search_vcr.yaml"),
        (Dialect.GEMINI, "test_google_model_web_search_tool.yaml"),
        (Dialect.OPENAI_RESPONSES, "test_openai_include_raw_annotations_non_streaming.yaml"),
        (Dialect.OPENAI_RESPONSES, "test_openai_responses_model_web_search_tool.yaml"),
        (Dialect.OPENROUTER, "test_openrouter_web_search_annotations.yaml"),
        (Dialect.OPENROUTER, "test_openrouter_web_search_tool_usage.yaml"),
    ],
)
def test_a_real_search_that_nobody_gave_is_a_fault_and_bought_once(httpserver: HTTPServer, dialect: Dialect, name: str, role: Role) -> None:
    result = replayed(httpserver, dialect, name, role)
    assert isinstance(result.outcome, Malformed) and "web search" in result.outcome.detail
    assert (result.audit.wire_tries, result.audit.resumptions) == (1, 0) and result.audit.usage.searches >= 1
    assert result.audit.usage.input_fresh is not None


@recorded
def test_a_real_refused_request_is_sent_once(httpserver: HTTPServer) -> None:
    result = replayed(httpserver, Dialect.OPENAI_RESPONSES, "test_openai_responses_model_http_error.yaml", Role.GUESSER)
    assert type(result.outcome).__name__ == "Rejected" and result.audit.wire_tries == 1
    assert "temperature" in result.outcome.detail  # type: ignore[union-attr]


@recorded
def test_a_real_openrouter_reply(httpserver: HTTPServer) -> None:
    name = "test_openrouter_web_search_tool_usage.yaml"
    oracle = replayed(httpserver, Dialect.OPENROUTER, name, Role.ORACLE)
    assert (oracle.audit.served_model, oracle.audit.reported_cost_microusd) == ("openai/gpt-4.1-mini@OpenAI", 13318)
    assert isinstance(oracle.outcome, Malformed) and oracle.audit.usage == Usage(8174, 0, 0, 0, 30, 0, 1)
    sent = json.loads(httpserver.log[0][0].get_data())
    assert sent["provider"] == {"allow_fallbacks": False, "require_parameters": True}
