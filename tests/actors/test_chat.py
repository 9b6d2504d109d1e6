"""Chat completions without a network: what a body holds, and what each kind of reply means."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep20ray.answers import Role
from deep20ray_actors.config import Dialect, Sampling
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
from deep20ray_actors.providers.chat import build, read
from deep20ray_actors.providers.features import Feature
from deep20ray_actors.providers.usage import cost_microusd, read_usage
from deep20ray_actors.providers.wire import Reading, WireReply
from tests.actors.support import MESSAGES, NOW, completion, dumped, route

SECRET = "Halley"


def reading(body: Any, role: Role = Role.GUESSER, status: int = 200, headers: dict[str, str] | None = None) -> Reading:
    data = body if isinstance(body, bytes) else dumped(body)
    return read(WireReply(status, headers or {}, data), role, NOW)


@pytest.mark.parametrize("role", Role)
def test_the_body_holds_the_closed_list_and_equal_calls_give_equal_bytes(role: Role) -> None:
    request = build(route(role), MESSAGES[role], 5)  # type: ignore[arg-type]
    assert set(json.loads(request.body)) == {"model", "messages", "response_format", "seed", "max_completion_tokens"}
    assert request.body == build(route(role), MESSAGES[role], 5).body  # type: ignore[arg-type]
    assert set(request.headers) == {"accept", "accept-encoding", "content-type", "user-agent"}
    assert request.digest == build(route(role), MESSAGES[role], 5).digest  # type: ignore[arg-type]
    assert request.digest != build(route(role), MESSAGES[role], 6).digest  # type: ignore[arg-type]


def test_only_what_is_configured_is_sent() -> None:
    config = route(sampling=Sampling(0.5, 0.9), effort="low", output_limit_field="max_tokens", send_seed=False)
    body = json.loads(build(config, MESSAGES[Role.GUESSER], 5).body)  # type: ignore[arg-type]
    assert (body["temperature"], body["top_p"], body["reasoning_effort"], body["max_tokens"]) == (0.5, 0.9, "low", 512)
    assert "seed" not in body and "max_completion_tokens" not in body
    assert body["response_format"]["json_schema"]["strict"] is True


def test_the_digest_doesn_t_depend_on_host_but_on_the_path() -> None:
    digests = [build(route(base_url=url), MESSAGES[Role.GUESSER], 5).digest for url in ("http://a:1/v1", "https://b/v1/", "http://a:1/v2")]  # type: ignore[arg-type]
    assert digests[0] == digests[1] != digests[2]


DELIVERED: list[tuple[dict[str, Any], Outcome]] = [
    (completion(' {"a":1} '), Completed(' {"a":1} ')),
    (completion([{"type": "thinking", "text": "hm"}, {"type": "text", "text": "x"}, {"type": "text", "text": "y"}]), Completed("xy")),
    (completion(None), Empty()),
    (completion(" \n"), Empty()),
    (completion("par", "length"), Truncated("par", "length", False)),
    (completion(None, "length", message={"reasoning_content": '{"action":"GUESS"}'}), Truncated(None, "length", True)),
    (completion("x", "insufficient_system_resource"), Truncated("x", "other", False)),
    (completion("x", None), Truncated("x", "other", False)),
    (completion(None, "content_filter"), Refused(None)),
    (completion("pa", "content_filter"), Refused("pa")),
    (completion(None, message={"refusal": "I can't."}), Refused("I can't.")),
    (completion("a\ud800b"), Completed("a\ufffdb")),
]


@pytest.mark.shows(Feature.REASONING_ONLY, Dialect.OPENAI_CHAT)
@pytest.mark.parametrize(("body", "outcome"), DELIVERED)
def test_delivered_replies_are_never_sent_again(body: dict[str, Any], outcome: Outcome) -> None:
    for role in Role:
        got = reading(body, role)
        assert got.outcome == outcome and not got.retry and not is_fault(got.outcome)


@pytest.mark.parametrize(
    "body",
    [
        completion("x", message={"tool_calls": [{"id": "1"}]}),
        completion(None, "tool_calls"),
        completion("x", message={"annotations": [{"type": "url_citation"}]}),
        completion("x", citations=["https://x.example"]),
        completion("x", usage={"server_tool_use_details": {"web_search_requests": 1}}),
        completion("x", usage={"server_tool_use": {"web_search_requests": 2}}),
    ],
)
def test_a_guesser_that_used_tools_is_infrastructure_but_not_asked_again_on_the_wire(body: dict[str, Any]) -> None:
    got = reading(body)
    assert isinstance(got.outcome, Malformed) and not got.retry
    assert isinstance(reading(body, Role.REVIEWER).outcome, Malformed)


def test_empty_annotations_are_no_tools() -> None:
    body = completion("x", message={"annotations": [], "tool_calls": []}, usage={"server_tool_use_details": {"web_search_requests": 0}})
    assert reading(body).outcome == Completed("x")


@pytest.mark.parametrize(
    ("error", "kind", "retry"),
    [
        ({"code": 502, "message": f"about {SECRET}"}, ServerFault, True),
        ({"code": 524}, ServerFault, True),
        ({"code": "529"}, ServerFault, True),
        ({"code": 429}, Throttled, True),
        ({"code": 402}, QuotaExhausted, False),
        ({"code": 401}, Credentials, False),
        ({"code": 400}, Rejected, False),
        ({"code": 403, "metadata": {"reasons": ["violence"]}}, Rejected, False),
        ({"code": "server_error"}, ServerFault, True),
        ({"code": "rate_limit_exceeded"}, Throttled, True),
        ({"code": "invalid_prompt"}, Rejected, False),
        ({"type": "insufficient_quota", "code": None}, QuotaExhausted, False),
        ({"code": "never heard of"}, ServerFault, True),
        ("it broke", ServerFault, True),
    ],
)
def test_an_error_inside_200_counts_by_its_own_code(error: Any, kind: type, retry: bool) -> None:
    for body in ({"error": error}, {"error": error, "choices": None}, completion("", "error") | {"error": error}):
        got = reading(body)
        assert isinstance(got.outcome, kind) and got.retry is retry
    inside = completion(None, "error")
    inside["choices"][0]["error"] = error
    assert isinstance(reading(inside).outcome, kind)
    assert SECRET not in repr(reading({"error": error}).outcome)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>Bad gateway</body></html>",
        b"{malformed",
        b"[]",
        b'"x"',
        b"{}",
        dumped({"choices": None}),
        dumped({"choices": []}),
        dumped({"choices": [{"message": None}]}),
        b"[" * 100_000,
    ],
)
def test_a_reply_that_isn_t_the_protocol_s_is_malformed_and_tried_again(body: bytes) -> None:
    got = reading(body)
    assert isinstance(got.outcome, Malformed) and got.retry


@pytest.mark.parametrize(
    ("status", "error", "kind", "retry"),
    [
        (400, {"code": "unsupported_value", "param": "temperature"}, Rejected, False),
        (401, {}, Credentials, False),
        (402, {}, QuotaExhausted, False),
        (403, {}, Credentials, False),
        (403, {"metadata": {"flagged_input": SECRET}}, Rejected, False),
        (404, {}, Rejected, False),
        (408, {}, ServerFault, True),
        (409, {}, ServerFault, True),
        (413, {}, Rejected, False),
        (422, {}, Rejected, False),
        (429, {}, Throttled, True),
        (429, {"code": "insufficient_quota"}, QuotaExhausted, False),
        (429, {"type": "billing_hard_limit_reached"}, QuotaExhausted, False),
        (429, {"message": "Limit reached on requests per day (RPD): Limit 200"}, QuotaExhausted, False),
        (429, {"message": "Rate limit reached for x on tokens per day (TPD): Limit 1"}, QuotaExhausted, False),
        (429, {"message": "Limit reached on Tokens per Day"}, QuotaExhausted, False),
        (429, {"message": "Rate limit exceeded: free-models-per-day"}, QuotaExhausted, False),
        (429, {"message": "quota exceeded, limit: 0"}, QuotaExhausted, False),
        (429, {"message": "quota exceeded, limit: 0. Retry in 22s"}, QuotaExhausted, False),
        (429, {"message": "Current limit: 0.5 a second"}, Throttled, True),
        (429, {"message": "on tokens per min (TPM): Limit 30000"}, Throttled, True),
        (500, {}, ServerFault, True),
        (503, {}, ServerFault, True),
        (529, {}, ServerFault, True),
        (302, {}, Rejected, False),
    ],
)
def test_statuses(status: int, error: dict[str, Any], kind: type, retry: bool) -> None:
    got = reading({"error": error | {"message": error.get("message", f"the key sk-123 and {SECRET}")}}, status=status)
    assert isinstance(got.outcome, kind) and got.retry is retry
    assert SECRET not in repr(got.outcome) and "sk-123" not in repr(got.outcome) and "\n" not in repr(got.outcome)
    assert isinstance(reading(b"<html>", status=status).outcome, kind) or error


def test_x_should_retry_false_ends_it() -> None:
    assert not reading({}, status=500, headers={"x-should-retry": "false"}).retry


@pytest.mark.parametrize(
    ("headers", "error", "wait"),
    [
        ({"retry-after": "7"}, {}, 7.0),
        ({"retry-after": "1.5"}, {}, 1.5),
        ({"retry-after-ms": "2500", "retry-after": "2"}, {}, 2.5),
        ({"retry-after": "Sun, 01 Nov 2026 12:00:30 GMT"}, {}, 30.0),
        ({"retry-after": "Sun, 01 Nov 2026 11:00:00 GMT"}, {}, 0.0),
        ({}, {"metadata": {"retry_after_seconds": 9}}, 9.0),
        ({"retry-after": "2"}, {"metadata": {"headers": {"Retry-After": "11"}}}, 11.0),
        ({"retry-after": "soon"}, {}, None),
        ({"retry-after": "-3"}, {}, None),
        ({"retry-after": "nan"}, {}, None),
        ({"retry-after": "inf"}, {}, None),
        ({}, {}, None),
    ],
)
def test_retry_after_in_all_its_forms(headers: dict[str, str], error: dict[str, Any], wait: float | None) -> None:
    assert reading({"error": error}, status=429, headers=headers).wait == (None if wait is None else pytest.approx(wait))


@pytest.mark.shows(Feature.FINGERPRINT, Dialect.OPENAI_CHAT)
def test_what_is_recorded_of_a_reply() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 20},
        "cost": 0.0076370295,
    }
    got = reading(completion("x", usage=usage, message={"reasoning": "hm"}, system_fingerprint="fp"))
    assert got.usage == Usage(30, 60, 10, 0, 10, 20)
    assert (got.served_model, got.fingerprint, got.finish_reason, got.reasoning) == ("model-1-dated", "fp", "stop", "hm")
    assert got.reported_cost_microusd is None, "what a reply costs is the sweep's to say"


@pytest.mark.parametrize("cost", [0, 0.25])
def test_a_cost_that_any_server_says_does_not_count(cost: float) -> None:
    got = reading(completion("x", usage={"prompt_tokens": 1000, "completion_tokens": 500, "cost": cost}))
    assert got.usage == Usage(1000, 0, 0, 0, 500, 0) and got.reported_cost_microusd is None


@pytest.mark.parametrize(
    "usage", [None, {}, "many", {"prompt_tokens": -1, "completion_tokens": True}, {"prompt_tokens": "3"}, {"prompt_tokens": 2**70}]
)
def test_missing_or_senseless_usage_is_none_not_zero(usage: Any) -> None:
    got = read_usage(usage)
    assert (got.input_fresh, got.input_cache_read, got.output_visible, got.output_reasoning) == (None, None, None, None)


def test_parts_larger_than_their_whole_are_unknown() -> None:
    got = read_usage(
        {
            "prompt_tokens": 5,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 6},
            "completion_tokens_details": {"reasoning_tokens": 9},
        }
    )
    assert (got.input_fresh, got.output_visible) == (None, None)


@pytest.mark.parametrize("cost", [None, True, "1", -0.1, float("inf"), 1e300])
def test_a_cost_that_is_none(cost: Any) -> None:
    assert cost_microusd({"cost": cost}) is None
    assert cost_microusd({"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": cost}}) is None


@pytest.mark.parametrize(
    ("byok", "details", "micro"),
    [
        (True, {"upstream_inference_cost": 0.0123}, 13_300),
        (True, {"upstream_inference_cost": 0}, 1000),
        (True, {}, None),
        (True, None, None),
        (True, [0.0123], None),
        (False, {"upstream_inference_cost": 0.0123}, 1000),
        (None, {"upstream_inference_cost": 0.0123}, 1000),
        (False, None, 1000),
    ],
)
def test_a_key_of_one_s_own_adds_the_provider_s_bill(byok: Any, details: Any, micro: int | None) -> None:
    assert cost_microusd({"cost": 0.001, "is_byok": byok, "cost_details": details}) == micro


COUNTS = st.integers(0, 10**6)


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_meters_are_disjoint_and_sum_up(prompt: int, cached: int, written: int, completion_: int, reasoning: int) -> None:
    got = read_usage(
        {
            "prompt_tokens": prompt,
            "completion_tokens": completion_,
            "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }
    )
    if got.input_fresh is not None:
        parts = (got.input_fresh, got.input_cache_read, got.input_cache_write_5m, got.input_cache_write_1h)
        assert sum(part or 0 for part in parts) == prompt and all(part is not None and part >= 0 for part in parts)
    if got.output_visible is not None:
        assert got.output_visible + (got.output_reasoning or 0) == completion_


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
PART = st.fixed_dictionaries({}, optional=dict.fromkeys(("content", "refusal", "tool_calls", "annotations", "reasoning", "role"), JSON))
CHOICE = st.fixed_dictionaries(
    {}, optional={"message": PART | JSON, "finish_reason": st.sampled_from(["stop", "length", "error", None]) | JSON, "error": JSON}
)


@given(
    st.fixed_dictionaries(
        {}, optional={"choices": st.lists(CHOICE | JSON, max_size=2) | JSON, "error": JSON, "usage": JSON, "model": JSON, "status": JSON}
    ),
    st.sampled_from(list(Role)),
    st.sampled_from([200, 400, 429, 500]),
)
def test_no_body_makes_reading_raise_and_no_fault_quotes_it(body: Any, role: Role, status: int) -> None:
    got = reading(body, role, status)
    if is_fault(got.outcome):
        assert len(got.outcome.detail) < 200
    else:
        assert not got.retry
