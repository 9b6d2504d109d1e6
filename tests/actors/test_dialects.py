"""Every dialect without a network: exact bodies, every way a reply can end, every kind of fault, usage that adds up."""

import json
from dataclasses import astuple
from itertools import pairwise
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep20ray.answers import Role, Token
from deep20ray.game import Exchange, Reminder, View
from deep20ray_actors.config import AnthropicSettings, Dialect, NativeSearch, Sampling
from deep20ray_actors.messages import GuesserMessage
from deep20ray_actors.outcomes import (
    Completed,
    Credentials,
    Empty,
    Malformed,
    Outcome,
    QuotaExhausted,
    Refused,
    Rejected,
    ServerFault,
    Throttled,
    Truncated,
    Usage,
    is_fault,
)
from deep20ray_actors.providers.dialects import DIALECTS
from deep20ray_actors.providers.features import Feature
from deep20ray_actors.providers.usage import read_anthropic_usage, read_gemini_usage, read_responses_usage, read_usage
from deep20ray_actors.providers.wire import Reading, WireReply
from deep20ray_actors.render import answer_schema
from tests.actors.dialects import BODIES, Said
from tests.actors.support import ASK, MESSAGES, NOW, dumped, route

RESPONSES, ANTHROPIC, GEMINI, OPENROUTER = Dialect.OPENAI_RESPONSES, Dialect.ANTHROPIC, Dialect.GEMINI, Dialect.OPENROUTER
SCHEMA = answer_schema(MESSAGES[Role.GUESSER], tuple(Token))[1]  # type: ignore[arg-type]
START = "Category: thing\n\nLabels mean this.\n\nVariation: 0a1b2c"
FULL: dict[str, Any] = {"sampling": Sampling(0.5, 0.9), "effort": "low"}


def body_of(dialect: Dialect, seed: int | None = 5, message: Any = None, **settings: Any) -> Any:
    request = DIALECTS[dialect].build(route(dialect=dialect, **settings), message or MESSAGES[Role.GUESSER], seed)  # type: ignore[arg-type]
    assert request.seed_sent == ("seed" in json.loads(request.body) or "seed" in json.loads(request.body).get("generationConfig", {}))
    return json.loads(request.body)


def read(dialect: Dialect, body: Any, role: Role = Role.GUESSER, status: int = 200, headers: dict[str, str] | None = None) -> Reading:
    data = body if isinstance(body, bytes) else dumped(body)
    return DIALECTS[dialect].read(WireReply(status, headers or {}, data), role, NOW, None)


def test_every_dialect_has_its_row() -> None:
    assert set(DIALECTS) == set(Dialect) == set(BODIES)


def test_the_exact_body_of_responses() -> None:
    plain = {
        "model": "model-1",
        "instructions": "Play.",
        "input": [
            {"type": "message", "role": "user", "content": START},
            {"type": "message", "role": "assistant", "content": ASK},
            {"type": "message", "role": "user", "content": "RATHER_NO"},
            {"type": "message", "role": "user", "content": "Mind the format."},
        ],
        "text": {"format": {"type": "json_schema", "name": "action", "strict": True, "schema": SCHEMA}},
        "max_output_tokens": 512,
        "store": False,
    }
    assert body_of(RESPONSES) == plain
    assert body_of(RESPONSES, **FULL) == plain | {"temperature": 0.5, "top_p": 0.9, "reasoning": {"effort": "low"}}


def test_the_exact_body_of_anthropic() -> None:
    plain = {
        "model": "model-1",
        "max_tokens": 512,
        "system": "Play.",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": START}]},
            {"role": "assistant", "content": [{"type": "text", "text": ASK}]},
            {"role": "user", "content": [{"type": "text", "text": "RATHER_NO"}, {"type": "text", "text": "Mind the format."}]},
        ],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    }
    assert body_of(ANTHROPIC) == plain
    more = {"temperature": 0.5, "top_p": 0.9, "thinking": {"type": "adaptive"}}
    assert body_of(ANTHROPIC, **FULL, anthropic=AnthropicSettings(thinking="adaptive")) == plain | more | {
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}, "effort": "low"}
    }


@pytest.mark.shows(Feature.EFFORT, Dialect.GEMINI)
def test_the_exact_body_of_gemini() -> None:
    config = {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA, "maxOutputTokens": 512, "seed": 5}
    plain = {
        "systemInstruction": {"parts": [{"text": "Play."}]},
        "contents": [
            {"role": "user", "parts": [{"text": START}]},
            {"role": "model", "parts": [{"text": ASK}]},
            {"role": "user", "parts": [{"text": "RATHER_NO"}, {"text": "Mind the format."}]},
        ],
        "generationConfig": config,
    }
    assert body_of(GEMINI) == plain
    more = {"temperature": 0.5, "topP": 0.9, "thinkingConfig": {"thinkingLevel": "LOW"}}
    assert body_of(GEMINI, **FULL)["generationConfig"] == config | more
    assert body_of(GEMINI, effort="none")["generationConfig"]["thinkingConfig"] == {"thinkingBudget": 0}
    assert "seed" not in body_of(GEMINI, send_seed=False)["generationConfig"]


def test_the_exact_body_of_openrouter() -> None:
    pinned = {"only": ["anthropic"], "allow_fallbacks": False, "require_parameters": True}
    chat = body_of(Dialect.OPENAI_CHAT)
    assert body_of(OPENROUTER, upstreams=("anthropic",)) == chat | {"provider": pinned}
    assert body_of(OPENROUTER, effort="low") == chat | {
        "provider": {"allow_fallbacks": False, "require_parameters": True},
        "reasoning": {"effort": "low"},
    }


@pytest.mark.shows(Feature.TOOLS_OFF, *Dialect)
@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("role", Role)
def test_no_request_holds_tools_and_equal_calls_give_equal_bytes(dialect: Dialect, role: Role) -> None:
    config = route(role, dialect=dialect, **FULL)
    requests = [DIALECTS[dialect].build(config, MESSAGES[role], 5) for _ in range(2)]  # type: ignore[arg-type]
    assert requests[0] == requests[1] and requests[0].digest == requests[1].digest
    for word in (b'"tools"', b"tool_choice", b"web_search", b"googleSearch", b'"plugins"', b'"user":', b"metadata", b'"stream"'):
        assert word not in requests[0].body
    assert not {"authorization", "x-api-key", "x-goog-api-key"} & requests[0].headers.keys()


@pytest.mark.parametrize(("dialect", "key", "inner"), [(ANTHROPIC, "messages", "content"), (GEMINI, "contents", "parts")])
def test_a_longer_history_begins_with_the_shorter_one(dialect: Dialect, key: str, inner: str) -> None:
    history: list[Any] = [Exchange(ASK, Token.YES), Reminder(), Exchange(ASK, Token.NO), Reminder(), Reminder(), Exchange(ASK, Token.YES)]

    def flat(length: int) -> list[tuple[str, str]]:
        message = GuesserMessage.of(View("thing", "0a1b2c", tuple(history[:length])))
        turns = body_of(dialect, message=message)[key]
        assert all(one["role"] != other["role"] for one, other in pairwise(turns))
        return [(turn["role"], part["text"]) for turn in turns for part in turn[inner]]

    for length in range(len(history)):
        shorter, longer = flat(length), flat(length + 1)
        assert longer[: len(shorter)] == shorter and len(longer) > len(shorter)


def test_gemini_s_path_holds_the_model_and_the_version_stands_in_base_url() -> None:
    for base in ("https://g.example/v1", "https://g.example/v1beta"):
        for model, path in (
            ("gemini-3.5-pro", "/models/gemini-3.5-pro"),
            ("tunedModels/my-1", "/tunedModels/my-1"),
            ("a b?c#", "/models/a%20b%3Fc%23"),
        ):
            request = DIALECTS[GEMINI].build(route(base_url=base, model=model), MESSAGES[Role.GUESSER], 1)  # type: ignore[arg-type]
            assert (request.base_url, request.path) == (base, f"{path}:generateContent")


NORMAL, LENGTH, CUT, OTHER, TOOLS = "normal", "length", "cut", "other", "tools"
ENDS: list[tuple[Dialect, str, str]] = [
    *[(RESPONSES, word, kind) for word, kind in (("completed", NORMAL), ("max_output_tokens", LENGTH), ("content_filter", CUT))],
    *[(RESPONSES, word, OTHER) for word in ("max_messages", "steered", "never heard of")],
    *[(ANTHROPIC, word, NORMAL) for word in ("end_turn", "stop_sequence")],
    *[(ANTHROPIC, word, LENGTH) for word in ("max_tokens", "model_context_window_exceeded")],
    *[(ANTHROPIC, word, CUT) for word in ("refusal", "content_filter")],
    *[(ANTHROPIC, word, OTHER) for word in ("pause_turn", "never heard of")],
    (ANTHROPIC, "tool_use", TOOLS),
    (GEMINI, "STOP", NORMAL),
    (GEMINI, "MAX_TOKENS", LENGTH),
    *[(GEMINI, w, CUT) for w in ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR")],
    *[(GEMINI, w, OTHER) for w in ("MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE", "CONTINUATION", "OTHER", "NEW")],
    *[(GEMINI, w, TOOLS) for w in ("UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_FUNCTION_CALL")],
    *[(OPENROUTER, w, kind) for w, kind in (("stop", NORMAL), ("length", LENGTH), ("content_filter", CUT), ("tool_calls", TOOLS))],
]


def outcome_of(kind: str, text: str | None) -> Outcome | type[Malformed]:
    return {
        NORMAL: Completed(text) if text else Empty(),
        LENGTH: Truncated(text, "length", reasoning_only=text is None),
        CUT: Refused(text),
        OTHER: Truncated(text, "other", reasoning_only=False),
        TOOLS: Malformed,
    }[kind]


@pytest.mark.shows(Feature.REASONING_ONLY, *(dialect for dialect in Dialect if dialect is not Dialect.OPENAI_CHAT))
@pytest.mark.parametrize(("dialect", "word", "kind"), ENDS)
@pytest.mark.parametrize("text", ['{"a": 1}', None])
def test_every_way_a_reply_can_end(dialect: Dialect, word: str, kind: str, text: str | None) -> None:
    for role in Role:
        got = read(dialect, BODIES[dialect](Said(text, word, reasoning='{"action":"GUESS"}')), role)
        expected = outcome_of(kind, text)
        assert isinstance(got.outcome, Malformed) if expected is Malformed else got.outcome == expected
        assert not got.retry
        assert (got.finish_reason, got.served_model, got.reasoning) == (word, "served", '{"action":"GUESS"}')


@pytest.mark.parametrize("dialect", Dialect)
def test_an_end_that_isn_t_given_is_no_normal_one(dialect: Dialect) -> None:
    body = BODIES[dialect](Said("{}"))
    body.pop("status", None), body.pop("stop_reason", None)
    for holder in (*body.get("choices", []), *body.get("candidates", [])):
        holder.pop("finish_reason", None), holder.pop("finishReason", None)
    assert read(dialect, body).outcome == Truncated("{}", "other", False)


@pytest.mark.parametrize("dialect", Dialect)
def test_white_space_is_no_text_and_lone_surrogates_can_be_stored(dialect: Dialect) -> None:
    assert read(dialect, BODIES[dialect](Said(" \n"))).outcome == Empty()
    assert read(dialect, BODIES[dialect](Said("a\ud800b"))).outcome == Completed("a\ufffdb")


def test_refusals_in_their_other_shapes() -> None:
    body = BODIES[RESPONSES](Said("x"))
    body["output"][1]["content"] = [{"type": "refusal", "refusal": "I can't."}]
    assert read(RESPONSES, body).outcome == Refused("I can't.")
    assert read(GEMINI, {"promptFeedback": {"blockReason": "SAFETY"}}).outcome == Refused(None)
    assert read(GEMINI, {"candidates": [], "promptFeedback": {"blockReason": "OTHER"}}).finish_reason == "OTHER"
    assert read(GEMINI, {"candidates": [{"finishReason": "SAFETY", "index": 0}]}).outcome == Refused(None)


def test_a_commentary_is_no_answer() -> None:
    body = BODIES[RESPONSES](Said("{}"))
    body["output"].insert(1, body["output"][1] | {"phase": "commentary", "content": [{"type": "output_text", "text": "Hm."}]})
    assert read(RESPONSES, body).outcome == Completed("{}")


def searched(dialect: Dialect) -> list[dict[str, Any]]:
    """Replies after a search of the provider's own, each found out in another way."""
    one, two, three = (BODIES[dialect](Said("{}")) for _ in range(3))
    match dialect:
        case Dialect.OPENAI_RESPONSES:
            one["output"].insert(0, {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search"}})
            two["output"][1]["content"][0]["annotations"] = [{"type": "url_citation", "url": "https://x.example"}]
            return [one, two]
        case Dialect.ANTHROPIC:
            one["content"].insert(0, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})
            two["content"][0]["citations"] = [{"type": "web_search_result_location", "url": "https://x.example"}]
            three["usage"] = {"input_tokens": 1, "output_tokens": 1, "server_tool_use": {"web_search_requests": 1}}
            return [one, two, three]
        case Dialect.GEMINI:
            one["candidates"][0]["groundingMetadata"] = {"webSearchQueries": ["x"]}
            two["candidates"][0]["groundingMetadata"] = {"groundingChunks": [{"web": {}}]}
            return [one, two]
        case Dialect.OPENROUTER | Dialect.OPENAI_CHAT:
            one["choices"][0]["message"]["annotations"] = [{"type": "url_citation"}]
            return [one]


def tooled(dialect: Dialect) -> dict[str, Any]:
    body = BODIES[dialect](Said("{}"))
    match dialect:
        case Dialect.OPENAI_RESPONSES:
            body["output"].append({"type": "function_call", "name": "f", "arguments": "{}"})
        case Dialect.ANTHROPIC:
            body["content"].append({"type": "tool_use", "id": "t", "name": "f", "input": {}})
        case Dialect.GEMINI:
            body["candidates"][0]["content"]["parts"].append({"functionCall": {"name": "f"}})
        case Dialect.OPENROUTER | Dialect.OPENAI_CHAT:
            body["choices"][0]["message"]["tool_calls"] = [{"id": "1"}]
    return body


@pytest.mark.shows(Feature.TOOLS_OFF, *Dialect)
@pytest.mark.parametrize("dialect", Dialect)
def test_searches_and_tools_that_nobody_gave_are_infrastructure(dialect: Dialect) -> None:
    for role in Role:
        for body in [*searched(dialect), tooled(dialect)]:
            got = read(dialect, body, role)
            assert isinstance(got.outcome, Malformed) and not got.retry


def test_what_gemini_recites_is_no_search() -> None:
    body = BODIES[GEMINI](Said("{}"))
    body["candidates"][0]["citationMetadata"] = {"citationSources": [{"uri": "https://x.example"}]}
    assert read(GEMINI, body).outcome == Completed("{}")


UNREADABLE: list[tuple[Dialect, Any]] = [
    (RESPONSES, {"status": "completed"}),
    (RESPONSES, {"status": "completed", "output": None}),
    (RESPONSES, {"status": "completed", "output": ["x"]}),
    (ANTHROPIC, {"stop_reason": "end_turn"}),
    (ANTHROPIC, {"stop_reason": "end_turn", "content": "text"}),
    (GEMINI, {}),
    (GEMINI, {"candidates": []}),
    (GEMINI, {"candidates": ["x"]}),
    (GEMINI, {"promptFeedback": {}}),
    *[(dialect, body) for dialect in Dialect for body in (b"", b"<html>", b"[]", b'"x"', b"{malformed", b"[" * 100_000)],
]


@pytest.mark.parametrize(("dialect", "body"), UNREADABLE)
def test_a_reply_that_isn_t_the_protocol_s_is_malformed_and_tried_again(dialect: Dialect, body: Any) -> None:
    got = read(dialect, body)
    assert isinstance(got.outcome, Malformed) and got.retry


@pytest.mark.parametrize("status", ["queued", "in_progress", "cancelled"])
def test_an_unfinished_response_is_a_fault(status: str) -> None:
    got = read(RESPONSES, BODIES[RESPONSES](Said("x", status)))
    assert isinstance(got.outcome, ServerFault) and got.retry


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "22s"}


def quota(*ids: str, value: str = "250") -> dict[str, Any]:
    violations = [{"quotaId": id_, "quotaValue": value} for id_ in ids]
    details = [{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations}, RETRY_INFO]
    return {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your quota", "details": details}}


def failure(type_: str, code: str | None = None) -> dict[str, Any]:
    details = {} if code is None else {"details": {"error_code": code}}
    return {"type": "error", "error": {"type": type_, "message": "Halley", **details}, "request_id": "r"}


def router(code: int, **metadata: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": "Halley", "metadata": metadata}, "user_id": "u"}


FAULTS: list[tuple[Dialect, int, Any, type, bool, float | None]] = [
    (RESPONSES, 429, {"error": {"type": "insufficient_quota", "code": "insufficient_quota"}}, QuotaExhausted, False, None),
    (RESPONSES, 400, {"error": {"code": "decimal_below_min_value", "param": "temperature"}}, Rejected, False, None),
    (RESPONSES, 200, {"status": "failed", "error": {"code": "server_error"}}, ServerFault, True, None),
    (RESPONSES, 200, {"status": "failed", "error": {"code": "rate_limit_exceeded"}}, Throttled, True, None),
    (RESPONSES, 200, {"status": "failed", "error": {"code": "invalid_prompt"}}, Rejected, False, None),
    (RESPONSES, 200, {"status": "failed", "error": None}, ServerFault, True, None),
    (ANTHROPIC, 429, failure("rate_limit_error"), Throttled, True, None),
    (ANTHROPIC, 429, failure("rate_limit_error", "ramp_limit_exceeded"), Throttled, True, None),
    (ANTHROPIC, 429, failure("rate_limit_error", "contract_spend_limit_reached"), QuotaExhausted, False, None),
    (ANTHROPIC, 429, failure("rate_limit_error", "enforced_spend_limit_reached"), QuotaExhausted, False, None),
    (ANTHROPIC, 402, failure("billing_error", "linked_organization_spend_limit_reached"), QuotaExhausted, False, None),
    (ANTHROPIC, 529, failure("overloaded_error"), ServerFault, True, None),
    (ANTHROPIC, 504, failure("timeout_error"), ServerFault, True, None),
    (ANTHROPIC, 409, failure("conflict_error"), ServerFault, True, None),
    (ANTHROPIC, 401, failure("authentication_error"), Credentials, False, None),
    (ANTHROPIC, 403, failure("permission_error"), Credentials, False, None),
    (ANTHROPIC, 400, failure("invalid_request_error", "organization_on_hold"), Rejected, False, None),
    (ANTHROPIC, 413, failure("request_too_large"), Rejected, False, None),
    (ANTHROPIC, 200, failure("overloaded_error"), ServerFault, True, None),
    (ANTHROPIC, 200, failure("rate_limit_error"), Throttled, True, None),
    (GEMINI, 429, quota("GenerateRequestsPerMinutePerProjectPerModel"), Throttled, True, 22.0),
    (GEMINI, 429, quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), QuotaExhausted, False, 22.0),
    (GEMINI, 429, quota("TokensPerMinute", "GenerateRequestsPerDayPerProject"), QuotaExhausted, False, 22.0),
    (GEMINI, 429, quota("TokensPerMinute", value="0"), QuotaExhausted, False, 22.0),
    (GEMINI, 429, [quota("TokensPerMinute")], Throttled, True, 22.0),
    (GEMINI, 429, {"error": {"code": 429, "message": "limit: 0, model: x"}}, QuotaExhausted, False, None),
    (GEMINI, 503, {"error": {"code": 503, "status": "UNAVAILABLE"}}, ServerFault, True, None),
    (GEMINI, 504, {"error": {"code": 504, "status": "DEADLINE_EXCEEDED"}}, ServerFault, True, None),
    (
        GEMINI,
        400,
        {"error": {"code": 400, "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}},
        Credentials,
        False,
        None,
    ),
    (GEMINI, 400, {"error": {"code": 400, "status": "FAILED_PRECONDITION"}}, Rejected, False, None),
    (GEMINI, 403, {"error": {"code": 403, "status": "PERMISSION_DENIED"}}, Credentials, False, None),
    (GEMINI, 200, {"error": {"status": "UNAVAILABLE"}}, ServerFault, True, None),
    (OPENROUTER, 429, router(429, retry_after_seconds=9), Throttled, True, 9.0),
    (OPENROUTER, 200, router(429, headers={"Retry-After": "3"}), Throttled, True, 3.0),
    (OPENROUTER, 200, router(502), ServerFault, True, None),
    (OPENROUTER, 200, router(524), ServerFault, True, None),
    (OPENROUTER, 402, router(402, limit_source="openrouter_credits"), QuotaExhausted, False, None),
    (OPENROUTER, 403, router(403, reasons=["x"], flagged_input="Halley"), Rejected, False, None),
    (OPENROUTER, 429, {"error": {"code": 429, "message": "Rate limit exceeded: free-models-per-day."}}, QuotaExhausted, False, None),
]


@pytest.mark.parametrize(("dialect", "status", "body", "kind", "retry", "wait"), FAULTS)
def test_every_kind_of_fault(dialect: Dialect, status: int, body: Any, kind: type, retry: bool, wait: float | None) -> None:
    got = read(dialect, body, status=status)
    assert (type(got.outcome), got.retry, got.wait) == (kind, retry, wait)
    assert "Halley" not in repr(got) and "\n" not in got.outcome.detail  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1h2m3.5s"}, 3723.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "12ms"}, 0.012),
        ({"x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": "6m0s"}, None),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s", "retry-after": "2"}, 2.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "soon"}, None),
        ({"anthropic-ratelimit-input-tokens-remaining": "0", "anthropic-ratelimit-input-tokens-reset": "2026-11-01T12:00:20Z"}, 20.0),
        ({"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2026-11-01T11:00:00Z"}, 0.0),
        ({"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "later"}, None),
        ({"anthropic-ratelimit-requests-remaining": "0"}, None),
    ],
)
def test_the_reset_of_an_exhausted_limit_is_a_wait_where_none_is_said(headers: dict[str, str], wait: float | None) -> None:
    got = read(ANTHROPIC, failure("rate_limit_error"), status=429, headers=headers).wait
    assert got == (None if wait is None else pytest.approx(wait))


def total(usage: Usage) -> int:
    meters = astuple(usage)[:6]
    assert all(isinstance(meter, int) and meter >= 0 for meter in meters)
    return sum(meters)


N = st.integers(0, 10**6)


@given(N, N, N, N, N, N)
def test_meters_are_disjoint_and_sum_to_the_provider_s_total(a: int, b: int, c: int, d: int, e: int, f: int) -> None:
    inside = {
        "input_tokens": a + b + c,
        "input_tokens_details": {"cached_tokens": b, "cache_write_tokens": c},
        "output_tokens": d + e,
        "output_tokens_details": {"reasoning_tokens": e},
        "total_tokens": a + b + c + d + e,
    }
    assert read_responses_usage(inside, {"web_search": {"num_requests": f}}, 1) == Usage(a, b, c, 0, d, e, f)
    beside = {
        "input_tokens": a,
        "cache_read_input_tokens": b,
        "cache_creation_input_tokens": c + d,
        "cache_creation": {"ephemeral_5m_input_tokens": c, "ephemeral_1h_input_tokens": d},
        "output_tokens": e + f,
        "output_tokens_details": {"thinking_tokens": f},
    }
    assert read_anthropic_usage(beside) == Usage(a, b, c, d, e, f)
    counts = {
        "promptTokenCount": a + b,
        "cachedContentTokenCount": b,
        "toolUsePromptTokenCount": c,
        "candidatesTokenCount": d,
        "thoughtsTokenCount": e,
        "totalTokenCount": a + b + c + d + e,
    }
    assert read_gemini_usage(counts) == Usage(a + c, b, 0, 0, d, e)
    assert total(read_gemini_usage(counts)) == counts["totalTokenCount"]
    assert total(read_responses_usage(inside, None, 0)) == inside["total_tokens"]


def test_counts_that_a_provider_leaves_out_are_zero_only_where_it_says_so() -> None:
    assert read_gemini_usage({"promptTokenCount": 15, "thoughtsTokenCount": 2, "totalTokenCount": 17}) == Usage(15, 0, 0, 0, 0, 2)
    assert read_gemini_usage({"candidatesTokenCount": 3}) == Usage()
    assert read_gemini_usage({"promptTokenCount": 15, "totalTokenCount": 99}) == Usage()
    assert read_anthropic_usage({"input_tokens": 3, "output_tokens": 4, "cache_creation_input_tokens": 7}) == Usage(3, 0, 7, 0, 4, 0)
    assert read_anthropic_usage({"input_tokens": 3}) == Usage(3, 0, 0, 0, None, None)
    odd = {"input_tokens": 3, "output_tokens": 4, "cache_creation_input_tokens": 7, "cache_creation": {"ephemeral_1h_input_tokens": 5}}
    assert read_anthropic_usage(odd) == Usage(None, None, None, None, 4, 0)
    assert read_responses_usage({"input_tokens": 3, "output_tokens": 4, "total_tokens": 9}, None, 0) == Usage(3, 0, 0, 0, None, None)


def test_reasoning_outside_the_completion_s_count_is_told_by_the_total() -> None:
    usage = {"prompt_tokens": 32, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 110}, "total_tokens": 151}
    assert read_usage(usage) == Usage(32, 0, 0, 0, 9, 110)


@pytest.mark.shows(Feature.UPSTREAM, Dialect.OPENROUTER)
@pytest.mark.shows(Feature.COST, Dialect.OPENROUTER)
def test_openrouter_names_who_served_and_what_it_cost() -> None:
    body = BODIES[OPENROUTER](Said("{}")) | {"provider": "Anthropic", "usage": {"prompt_tokens": 3, "completion_tokens": 1, "cost": 0.001}}
    got = read(OPENROUTER, body)
    assert (got.served_model, got.reported_cost_microusd) == ("served@Anthropic", 1000)
    assert read(OPENROUTER, BODIES[OPENROUTER](Said("{}"))).served_model == "served"


@pytest.mark.shows(Feature.FINGERPRINT, Dialect.OPENAI_CHAT, Dialect.OPENROUTER)
def test_a_server_s_fingerprint_is_recorded() -> None:
    for dialect in (Dialect.OPENAI_CHAT, OPENROUTER):
        assert read(dialect, BODIES[dialect](Said("{}")) | {"system_fingerprint": "fp_1"}).fingerprint == "fp_1"
        assert read(dialect, BODIES[dialect](Said("{}"))).fingerprint is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=6,
)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[Dialect, Any]:
    """A good body of a dialect with one value anywhere in it replaced or taken away."""
    dialect = draw(st.sampled_from(list(Dialect)))
    body: Any = json.loads(
        dumped(draw(st.sampled_from([BODIES[dialect](Said("{}", reasoning="hm")), tooled(dialect), *searched(dialect)])))
    )
    body |= {"usage": {"input_tokens": 1, "output_tokens": 2}, "usageMetadata": {"promptTokenCount": 1}}
    place = body
    while True:
        key = draw(st.sampled_from(range(len(place)) if isinstance(place, list) else sorted(place)))
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or draw(st.booleans()):
            break
        place = inner
    if draw(st.booleans()):
        place[key] = draw(JSON)
    else:
        del place[key]
    return dialect, body


@given(mutated(), st.sampled_from(list(Role)), st.sampled_from([200, 200, 200, 400, 429, 500]), st.sampled_from([None, NativeSearch(1)]))
def test_no_body_makes_reading_raise_and_no_error_completes(
    case: tuple[Dialect, Any], role: Role, status: int, native: NativeSearch | None
) -> None:
    dialect, body = case
    got = DIALECTS[dialect].read(WireReply(status, {}, dumped(body)), role, NOW, native)
    assert isinstance(got.outcome, get_args(Outcome))
    if is_fault(got.outcome):
        assert len(got.outcome.detail) < 200
    else:
        assert not got.retry and status == 200 and not body.get("error")
