"""Brave and Tavily: what is asked, with which key; what their results, limits and refusals mean."""

import json
from typing import Any
from urllib.parse import parse_qs

import pytest

from deep20ray_actors.config import Backend, LiteralCredential, SearchConfig
from deep20ray_actors.messages import ResultItem, SearchMessage
from deep20ray_actors.outcomes import Credentials, Found, Malformed, QuotaExhausted, Rejected, ServerFault, Throttled
from deep20ray_actors.providers.wire import WAIT_MAX, Reading, WireReply
from deep20ray_actors.search.backends import BACKENDS
from tests.actors.support import NOW, dumped

KEY = "a-secret-key"
BRAVE = SearchConfig(
    "http://127.0.0.1:9/res/v1/", Backend.BRAVE, LiteralCredential(KEY), excluded_domains=("bad.example", "wiki.example/a")
)
TAVILY = SearchConfig("http://127.0.0.1:9", Backend.TAVILY, LiteralCredential(KEY), excluded_domains=("Bad.example", "wiki.example/a"))
KEYLESS = SearchConfig("http://127.0.0.1:9", Backend.TAVILY)
QUERY = SearchMessage(query="Halley's Comet Is it alive?")


def reading(config: SearchConfig, body: Any, status: int = 200, **headers: str) -> Reading:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return BACKENDS[config.backend].read(WireReply(status, fields, body if isinstance(body, bytes) else dumped(body)), config, NOW)


def brave(*rows: Any) -> dict[str, Any]:
    return {"type": "search", "query": {}, "web": {"type": "search", "results": list(rows)}}


def items(got: Reading) -> tuple[ResultItem, ...]:
    assert isinstance(got.outcome, Found) and got.usage.searches == 1 and not got.retry
    return got.outcome.results


def test_every_backend_is_spoken_and_builds_the_same_bytes_again() -> None:
    assert set(BACKENDS) == set(Backend)
    for config in (BRAVE, TAVILY, KEYLESS, SearchConfig("http://127.0.0.1:9")):
        one, other = (BACKENDS[config.backend].build(config, QUERY) for _ in range(2))
        assert one == other and one.body == other.body and one.digest == other.digest
        assert KEY not in repr(one) + repr(config) + str(one.body) + str(one.headers)
        assert set(one.headers) <= {"accept", "accept-encoding", "user-agent", "content-type", "x-tavily-access-mode"}


# ---- Brave


def test_braves_request() -> None:
    request = BACKENDS[Backend.BRAVE].build(BRAVE, QUERY)
    path, _, query = request.path.partition("?")
    assert (request.method, request.base_url, path) == ("GET", "http://127.0.0.1:9/res/v1", "/web/search")
    assert parse_qs(query) == {"q": [QUERY.query], "count": ["10"], "extra_snippets": ["true"]}
    assert BACKENDS[Backend.BRAVE].authorize(KEY) == ("x-subscription-token", KEY)


@pytest.mark.parametrize("config", [BRAVE, TAVILY])
def test_a_long_query_is_cut_to_what_the_backend_takes(config: SearchConfig) -> None:
    for text in ("w " * 300, "word " * 90 + "x" * 300, "y" * 700):
        request = BACKENDS[config.backend].build(config, SearchMessage(query=text))
        sent = parse_qs(request.path.partition("?")[2])["q"][0] if request.method == "GET" else json.loads(request.body)["query"]
        assert text.startswith(sent) and 0 < len(sent) <= 400 and len(sent.split()) <= 50


def test_braves_text_is_description_and_passages_without_marks() -> None:
    row = {
        "url": "https://a.example/",
        "title": "Halley&#x27;s <strong>Comet</strong>",
        "description": "A <strong>comet</strong> &amp; more, 1 &lt; 2 and 1 < 2.",
        "extra_snippets": ["It returns.", None, "A <strong>comet</strong> &amp; more, 1 &lt; 2 and 1 < 2.", "  "],
    }
    (item,) = items(reading(BRAVE, brave(row)))
    assert (item.title, item.text) == ("Halley's Comet", "A comet & more, 1 < 2 and 1 < 2.\nIt returns.")


def test_braves_results_go_through_the_common_checks() -> None:
    rows: list[dict[str, Any]] = [
        {"url": url, "description": "x" * 5000} for url in ("https://bad.example/", "https://wiki.example/a/1", "file:///etc/passwd")
    ]
    rows += [{"url": "https://a.example/", "description": 7, "extra_snippets": "no"}, {"url": "https://a.example/"}, {}]
    rows += [{"url": f"https://s{number}.example/", "description": "x" * 5000} for number in range(9)]
    got = items(reading(BRAVE, brave(*rows)))
    assert [item.number for item in got] == [1, 2, 3, 4, 5] and got[0].url == "https://a.example/" and got[0].text == ""
    assert {len(item.text) for item in got[1:]} == {BRAVE.max_text}


def test_no_hits_is_a_success() -> None:
    assert items(reading(BRAVE, {"type": "search", "query": {}})) == items(reading(BRAVE, brave())) == ()
    assert items(reading(TAVILY, {"results": []})) == ()


@pytest.mark.parametrize("config", [BRAVE, TAVILY])
@pytest.mark.parametrize("body", [b"<html>", b"", {}, {"results": None}, {"web": {}}, {"type": "search", "web": {"results": ["x"]}}])
def test_other_bodies_are_malformed(config: SearchConfig, body: Any) -> None:
    got = reading(config, body)
    assert isinstance(got.outcome, Malformed) and got.retry and got.usage.searches == 0


LIMITS = {"x_ratelimit_limit": "1, 15000", "x_ratelimit_policy": "1;w=1, 15000;w=2592000", "x_ratelimit_reset": "1, 1419704"}


def test_braves_exhausted_second_is_waited_for() -> None:
    got = reading(BRAVE, {"error": {"code": "RATE_LIMITED"}}, 429, x_ratelimit_remaining="0, 1000", **LIMITS)
    assert isinstance(got.outcome, Throttled) and got.retry and got.wait == 1.0 and got.outcome.retry_after == 1.0


@pytest.mark.parametrize("remaining", ["0, 0", "1, 0"])
@pytest.mark.parametrize("reset", ["1, 1419704", "1, 30"])
def test_braves_exhausted_month_is_never_waited_for(remaining: str, reset: str) -> None:
    got = reading(BRAVE, b"", 429, x_ratelimit_remaining=remaining, **(LIMITS | {"x_ratelimit_reset": reset}))
    assert isinstance(got.outcome, QuotaExhausted) and not got.retry


def test_a_window_without_a_policy_is_judged_by_its_reset() -> None:
    month = reading(BRAVE, b"", 429, x_ratelimit_remaining="1, 0", x_ratelimit_reset="1, 1419704")
    second = reading(BRAVE, b"", 429, x_ratelimit_remaining="0, 7", x_ratelimit_reset="1, 1419704")
    assert isinstance(month.outcome, QuotaExhausted) and isinstance(second.outcome, Throttled) and second.wait == 1.0


UNTRACKED = [{"x_ratelimit_policy": "50;w=1, 0;w=2592000"}, {"x_ratelimit_limit": "50, 0"}]


@pytest.mark.parametrize("limits", UNTRACKED)
@pytest.mark.parametrize("body", [b"", {"error": {"code": "RATE_LIMITED", "status": 429}}])
def test_a_window_of_braves_that_grants_nothing_is_none(limits: dict[str, str], body: Any) -> None:
    got = reading(BRAVE, body, 429, x_ratelimit_remaining="0, 0", x_ratelimit_reset="1, 1419704", **limits)
    assert isinstance(got.outcome, Throttled) and got.retry and got.wait == 1.0


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        ({"x_ratelimit_policy": "1;w=1, 15000;w=2592000"}, QuotaExhausted),
        ({"x_ratelimit_limit": "1, 15000"}, QuotaExhausted),
        ({"x_ratelimit_policy": "1;w=1, 15000;w=3600"}, Throttled),
        ({"x_ratelimit_limit": "1"}, Throttled),
        ({}, Throttled),
    ],
)
def test_braves_code_for_haste_is_a_quota_only_where_a_granted_day_is_spent(limits: dict[str, str], kind: type) -> None:
    body = {"error": {"code": "RATE_LIMITED"}}
    assert type(reading(BRAVE, body, 429, x_ratelimit_remaining="0, 0", x_ratelimit_reset="1, 1419704", **limits).outcome) is kind


@pytest.mark.parametrize("remaining", ["", "0", "x, 0", "0, 0, 0", "-1, -1", "1, 1", "0, " + "9" * 400])
def test_limits_that_make_no_sense_leave_a_plain_throttle(remaining: str) -> None:
    got = reading(BRAVE, b"", 429, x_ratelimit_remaining=remaining, **LIMITS)
    assert isinstance(got.outcome, Throttled) and got.retry


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (422, "SUBSCRIPTION_TOKEN_INVALID", Credentials),
        (401, None, Credentials),
        (403, "RESOURCE_NOT_ALLOWED", Credentials),
        (422, "VALIDATION", Rejected),
        (404, None, Rejected),
        (429, "QUOTA_LIMITED", QuotaExhausted),
        (402, None, QuotaExhausted),
        (500, None, ServerFault),
        (502, "x", ServerFault),
    ],
)
def test_braves_refusals(status: int, code: str | None, kind: type) -> None:
    got = reading(BRAVE, {"type": "ErrorResponse", "error": {"code": code, "detail": KEY, "meta": {"token": KEY}}}, status)
    assert type(got.outcome) is kind and got.retry is (kind is ServerFault) and KEY not in repr(got)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "SUBSCRIPTION_TOKEN_INVALID", "status": 422}, Credentials),
        ({"code": "RATE_LIMITED", "status": 429}, Throttled),
        ({"code": "QUOTA_LIMITED"}, QuotaExhausted),
        ({"code": 403}, Credentials),
        ({"code": "x", "status": True}, ServerFault),
        ("boom", ServerFault),
    ],
)
def test_an_error_inside_a_search_of_braves_is_no_success(error: Any, kind: type) -> None:
    got = reading(BRAVE, brave({"url": "https://a.example/"}) | {"error": error})
    assert type(got.outcome) is kind and got.usage.searches == 0


@pytest.mark.parametrize("error", [None, {}, ""])
def test_an_empty_error_is_none(error: Any) -> None:
    assert items(reading(BRAVE, brave() | {"error": error})) == items(reading(TAVILY, {"results": [], "error": error})) == ()


# ---- Tavily


def test_tavilys_request() -> None:
    request = BACKENDS[Backend.TAVILY].build(TAVILY, QUERY)
    assert (request.method, request.path) == ("POST", "/search") and "x-tavily-access-mode" not in request.headers
    assert json.loads(request.body) == {
        "query": QUERY.query,
        "search_depth": "basic",
        "max_results": 10,
        "include_raw_content": False,
        "include_answer": False,
        "exclude_domains": ["bad.example"],
    }
    assert BACKENDS[Backend.TAVILY].authorize(KEY) == ("authorization", f"Bearer {KEY}")


def test_without_a_key_the_request_says_so() -> None:
    assert BACKENDS[Backend.TAVILY].build(KEYLESS, QUERY).headers["x-tavily-access-mode"] == "keyless"


def test_tavilys_results() -> None:
    rows = [{"url": "https://bad.example/", "content": "x"}, {"url": "https://a.example/", "title": "T", "content": "C" * 9000, "score": 1}]
    (item,) = items(reading(TAVILY, {"results": rows, "usage": {"credits": 1}}))
    assert (item.number, item.url, item.title, item.text) == (1, "https://a.example/", "T", "C" * 2000)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((429, Throttled), (432, QuotaExhausted), (433, QuotaExhausted), (401, Credentials), (403, Credentials), (400, Rejected)),
        (500, ServerFault),
    ],
)
def test_tavilys_refusals(status: int, kind: type) -> None:
    got = reading(TAVILY, {"detail": {"error": f"no: {KEY}"}}, status)
    assert type(got.outcome) is kind and got.retry is (kind in (Throttled, ServerFault)) and KEY not in repr(got)


def refusal(window: Any, wait: Any) -> dict[str, Any]:
    return {"error": {"code": "keyless_limit", "message": "m", "window": window, "retry_after_seconds": wait, "next_actions": []}}


@pytest.mark.parametrize("status", [200, 403, 429])
@pytest.mark.parametrize(("window", "wait"), [("minute", 30), ("second", 0), ("hour", WAIT_MAX), (None, 5.5)])
def test_a_short_keyless_window_is_waited_for(status: int, window: Any, wait: float) -> None:
    got = reading(KEYLESS, refusal(window, wait), status)
    assert isinstance(got.outcome, Throttled) and got.retry and got.wait == got.outcome.retry_after == wait


@pytest.mark.parametrize(
    ("window", "wait"), [("minute", WAIT_MAX + 1), ("hour", 3000), ("day", 5), ("daily", None), ("MONTH", 1), ("month", "x")]
)
def test_a_long_keyless_window_is_not(window: str, wait: Any) -> None:
    got = reading(KEYLESS, refusal(window, wait), 429)
    assert isinstance(got.outcome, QuotaExhausted) and not got.retry


@pytest.mark.parametrize("wait", ["x", -1, None, True, [], 1e400])
def test_a_wait_that_makes_no_sense_is_none(wait: Any) -> None:
    got = reading(KEYLESS, refusal("minute", wait), 429)
    assert isinstance(got.outcome, Throttled) and got.wait is None
