"""Real and scripted replies with something wrong in them: always an outcome, never a completion or a finding out of an error.

A few hundred bodies a test in every run, thousands in ``make test-full``.
"""

import copy
import json
import math
from collections.abc import Callable
from functools import cache
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deep20ray.answers import Role
from deep20ray_actors.config import Backend, Dialect, NativeSearch, SearchConfig
from deep20ray_actors.outcomes import Completed, Found, Outcome, is_fault
from deep20ray_actors.providers.dialects import DIALECTS
from deep20ray_actors.providers.wire import Reading, WireReply
from deep20ray_actors.search.backends import BACKENDS
from tests.actors import recorded
from tests.actors.dialects import BODIES, Said
from tests.actors.support import NOW, dumped
from tests.actors.test_dialects import FAULTS, searched, tooled

EXAMPLES = [pytest.param(150, id="few"), pytest.param(5000, id="many", marks=pytest.mark.full)]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
WORDS = st.sampled_from(
    ["error", "stop", "completed", "end_turn", "STOP", "search", "failed", "tool_use", "refusal", "\ud800", "", "0", "-1"]
)
ERRORS = st.sampled_from(
    [{"code": 429}, {"code": 500, "details": [None]}, {"type": "server_error"}, {"code": None}, {"x": 1}, "broke", True, [1]]
)
NATIVE = st.sampled_from([None, NativeSearch(3, ("bad.example",))])
HEADERS = st.dictionaries(
    st.sampled_from(
        [
            "retry-after",
            "retry-after-ms",
            "x-should-retry",
            *(f"x-ratelimit-{word}" for word in ("remaining-requests", "reset-requests", "remaining", "reset", "policy")),
            *(f"anthropic-ratelimit-tokens-{word}" for word in ("remaining", "reset")),
        ]
    ),
    st.sampled_from(["0", "1", "-1", "nan", "inf", "1e400", "6m0s", "1ms", "0, 12", "1, 1419704", "1;w=1, 15000;w=2592000", "soon"])
    | st.sampled_from(["Sun, 01 Nov 2026 12:00:30 GMT", "2026-11-01T12:00:20Z", "9999-12-31T23:59:59-23:59", "Mon, 99 Foo 0000"])
    | st.text(max_size=12),
)


def fuzz(examples: int, check: Callable[[st.DataObject], None]) -> None:
    """Runs a check on that many drawings."""
    settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))(given(st.data())(check))()


@cache
def real() -> list[tuple[Dialect, int, Any]]:
    """Every recorded reply. Opaque texts of many kilobytes are cut; nobody reads them."""
    everything = [exchange for name in recorded.FILES for exchange in recorded.exchanges(name)]
    return [(exchange.dialect, exchange.status, shortened(exchange.body)) for exchange in everything]


@cache
def scripted() -> list[tuple[Dialect, int, Any]]:
    """Good replies of every dialect, replies with tools and searches, and every kind of fault."""
    good = [
        (dialect, 200, body)
        for dialect in Dialect
        for body in (BODIES[dialect](Said("{}", reasoning="hm")), tooled(dialect), *searched(dialect))
    ]
    return [(dialect, status, json.loads(dumped(body))) for dialect, status, body in [*good, *(fault[:3] for fault in FAULTS)]]


SEARCHES: dict[Backend, list[tuple[int, Any]]] = {
    Backend.SEARXNG: [
        (200, {"query": "q", "results": [{"url": "https://a.example/", "title": "A", "content": "text"}], "unresponsive_engines": []}),
        (200, {"query": "q", "results": [], "unresponsive_engines": [["brave", "timeout"]]}),
        (429, {"error": "Too many requests"}),
    ],
    Backend.BRAVE: [
        (
            200,
            {
                "type": "search",
                "web": {"results": [{"url": "https://a.example/", "title": "A", "description": "d", "extra_snippets": ["s"]}]},
            },
        ),
        (429, {"type": "ErrorResponse", "error": {"code": "RATE_LIMITED", "status": 429, "meta": {"component": "rate_limiter"}}}),
        (422, {"type": "ErrorResponse", "error": {"code": "SUBSCRIPTION_TOKEN_INVALID", "status": 422}}),
    ],
    Backend.TAVILY: [
        (
            200,
            {
                "query": "q",
                "results": [{"url": "https://a.example/", "title": "A", "content": "text", "score": 0.5}],
                "usage": {"credits": 1},
            },
        ),
        (429, {"error": {"code": "keyless_limit", "window": "day", "retry_after_seconds": 60, "next_actions": []}}),
        (432, {"detail": {"error": "plan limit"}}),
    ],
}


def shortened(value: Any) -> Any:
    if isinstance(value, str):
        return value[:200]
    if isinstance(value, list):
        return [shortened(inner) for inner in value[:8]]
    return {key: shortened(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def mutate(body: Any, data: st.DataObject) -> None:
    """Replaces or removes one value somewhere inside."""
    place = body
    while True:
        key = data.draw(st.sampled_from(range(len(place)) if isinstance(place, list) else sorted(place)))
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            break
        place = inner
    if data.draw(st.booleans()):
        place[key] = data.draw(JSON | WORDS)
    else:
        del place[key]


def wrong(body: Any, data: st.DataObject) -> Any:
    """The body with one to three things wrong."""
    body = copy.deepcopy(body)
    for _ in range(data.draw(st.integers(1, 3))):
        if body:
            mutate(body, data)
    return body


def spoil(body: bytes, data: st.DataObject) -> bytes:
    """The bytes cut off, or with some replaced."""
    place = data.draw(st.integers(0, max(0, len(body) - 1)))
    return body[:place] + (data.draw(st.binary(max_size=4)) + body[place + 4 :] if data.draw(st.booleans()) else b"")


def held(got: Reading) -> None:
    """What holds of every reading."""
    assert isinstance(got.outcome, get_args(Outcome))
    assert got.wait is None or (math.isfinite(got.wait) and got.wait >= 0)
    if is_fault(got.outcome):
        assert len(got.outcome.detail) < 200 and "\n" not in got.outcome.detail
    else:
        assert not got.retry


def said(dialect: Dialect, status: int, body: bytes, data: st.DataObject) -> Reading:
    role, native = data.draw(st.sampled_from(list(Role))), data.draw(NATIVE)
    got = DIALECTS[dialect].read(WireReply(status, data.draw(HEADERS), body), role, NOW, native)
    held(got)
    return got


def check_replies(kinds: Callable[[], list[tuple[Dialect, int, Any]]]) -> Callable[[st.DataObject], None]:
    def check(data: st.DataObject) -> None:
        dialect, status, original = data.draw(st.sampled_from(kinds()))
        body = wrong(original, data)
        got = said(dialect, status, dumped(body), data)
        assert status == 200 or is_fault(got.outcome)
        if isinstance(body, dict):
            for failed, code in (
                (body | {"error": data.draw(ERRORS)}, 200),
                (body, data.draw(st.sampled_from([400, 401, 402, 429, 500, 529]))),
            ):
                assert is_fault(said(dialect, code, dumped(failed), data).outcome)

    return check


@recorded.needed
@pytest.mark.parametrize("examples", EXAMPLES)
def test_a_real_reply_with_something_wrong_is_an_outcome_and_no_error_completes(examples: int) -> None:
    fuzz(examples, check_replies(real))


@pytest.mark.parametrize("examples", EXAMPLES)
def test_a_scripted_reply_with_something_wrong_is_an_outcome_and_no_error_completes(examples: int) -> None:
    fuzz(examples, check_replies(scripted))


@pytest.mark.parametrize("examples", EXAMPLES)
def test_spoilt_bytes_are_an_outcome_and_bytes_cut_off_no_completion(examples: int) -> None:
    def check(data: st.DataObject) -> None:
        dialect, status, body = data.draw(st.sampled_from(scripted()))
        whole = dumped(body)
        part = spoil(whole, data)
        got = said(dialect, status, part, data)
        if whole.startswith(part) and part != whole:
            assert is_fault(got.outcome)

    fuzz(examples, check)


@pytest.mark.parametrize("backend", Backend)
@pytest.mark.parametrize("examples", EXAMPLES)
def test_a_search_with_something_wrong_is_an_outcome_and_no_error_is_a_finding(examples: int, backend: Backend) -> None:
    config = SearchConfig("http://127.0.0.1:9", backend, max_results=3, max_text=50)

    def check(data: st.DataObject) -> None:
        status, original = data.draw(st.sampled_from(SEARCHES[backend]))
        whole = dumped(wrong(original, data))
        for code, body in ((status, whole), (data.draw(st.sampled_from([400, 403, 429, 500])), whole), (200, spoil(whole, data))):
            got = BACKENDS[backend].read(WireReply(code, data.draw(HEADERS), body), config, NOW)
            held(got)
            assert not isinstance(got.outcome, Completed)
            if isinstance(got.outcome, Found):
                assert code == 200 and got.usage.searches == 1
                assert all(item.url.startswith("http") and len(item.text) <= 50 for item in got.outcome.results[:3])
                assert len(got.outcome.results) <= 3

    fuzz(examples, check)
