"""The hosted back-ends over real sockets: where the key goes and where it never shows, what is waited for, what is asked once."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from deep20ray.answers import Role
from deep20ray_actors.config import Backend, CredentialRef, FileCredential, LiteralCredential, SearchConfig
from deep20ray_actors.messages import SearchMessage
from deep20ray_actors.outcomes import CallResult, Credentials, Found, QuotaExhausted, Throttled
from deep20ray_actors.providers.wire import WireReply
from deep20ray_actors.search.backends import BACKENDS
from tests.actors.support import NOW, FakeTime, call, dumped, host, results_of, route

KEY = "a-secret-key"
PATHS = {Backend.SEARXNG: "/search", Backend.BRAVE: "/web/search", Backend.TAVILY: "/search"}
ROW = {"url": "https://a.example/", "title": "T", "description": "text", "content": "text"}
FOUND = {"type": "search", "web": {"results": [ROW]}, "results": [ROW]}
LIMITS = {"X-RateLimit-Policy": "1;w=1, 15000;w=2592000", "X-RateLimit-Reset": "2, 1419704"}


@pytest.fixture
def ask(httpserver: HTTPServer) -> Callable[..., Any]:
    """Asks twice and gives the results, the requests and the time that passed."""

    async def asked(
        backend: Backend, credential: CredentialRef, *replies: Response, messages: int = 1
    ) -> tuple[list[CallResult], list[Request], FakeTime]:
        queue = list(replies)
        httpserver.expect_request(PATHS[backend]).respond_with_handler(
            lambda _: queue.pop(0) if queue else Response(dumped(FOUND), content_type="application/json")
        )
        config = SearchConfig(httpserver.url_for("").rstrip("/"), backend, credential)
        time = FakeTime()
        calls = [call(SearchMessage(query="Is it alive?"), slot) for slot in range(messages)]
        results = await results_of(host(Role.ORACLE, route(Role.ORACLE, search=config), time), calls)
        return results, [request for request, _ in httpserver.log], time

    return asked


@pytest.mark.parametrize("backend", Backend)
async def test_a_search_is_delivered_and_equal_searches_are_equal_bytes(ask: Callable[..., Any], backend: Backend) -> None:
    results, requests, _ = await ask(backend, LiteralCredential(KEY) if backend is not Backend.SEARXNG else None, messages=2)
    for result in results:
        assert isinstance(result.outcome, Found) and result.outcome.results[0].text == "text"
        assert result.audit.usage.searches == result.audit.wire_tries == 1 and KEY not in repr(result)
    one, other = ((request.method, request.full_path, sorted(request.headers.items()), request.get_data()) for request in requests)
    assert one == other and results[0].audit.request_digest == results[1].audit.request_digest
    fixed = {"host", "accept", "accept-encoding", "user-agent", "content-type", "content-length"}
    assert {name.lower() for name, _ in requests[0].headers.items()} - fixed <= {"authorization", "x-subscription-token"}


async def test_where_the_keys_go(ask: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY + "\n")
    file.chmod(0o600)
    _, requests, _ = await ask(Backend.BRAVE, FileCredential(str(file)))
    assert requests[-1].headers["X-Subscription-Token"] == KEY and KEY not in requests[-1].url
    _, requests, _ = await ask(Backend.TAVILY, LiteralCredential(KEY))
    assert requests[-1].headers["Authorization"] == f"Bearer {KEY}" and KEY not in requests[-1].get_data(as_text=True)
    _, requests, _ = await ask(Backend.TAVILY, None)
    assert requests[-1].headers["X-Tavily-Access-Mode"] == "keyless" and "Authorization" not in requests[-1].headers


async def test_a_key_that_cannot_be_read_is_a_fault_without_a_request(ask: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    file.chmod(0o644)
    (result,), requests, _ = await ask(Backend.BRAVE, FileCredential(str(file)))
    assert isinstance(result.outcome, Credentials) and requests == [] and KEY not in repr(result) and str(file) not in result.outcome.detail


async def test_an_exhausted_second_of_braves_is_waited_for(ask: Callable[..., Any]) -> None:
    refused = Response(status=429, headers={"X-RateLimit-Remaining": "0, 7", **LIMITS})
    (result,), requests, time = await ask(Backend.BRAVE, LiteralCredential(KEY), refused)
    assert isinstance(result.outcome, Found) and len(requests) == 2 and time.sleeps == [2.0] and result.audit.throttles == 1


async def test_an_exhausted_month_of_braves_is_asked_once(ask: Callable[..., Any]) -> None:
    refused = Response(status=429, headers={"X-RateLimit-Remaining": "1, 0", **LIMITS})
    (result,), requests, time = await ask(Backend.BRAVE, LiteralCredential(KEY), refused)
    assert isinstance(result.outcome, QuotaExhausted) and len(requests) == 1 and time.sleeps == []


@pytest.mark.parametrize(("window", "seconds", "kind"), [("minute", 30, Found), ("day", 5, QuotaExhausted), ("hour", 3000, QuotaExhausted)])
async def test_keyless_windows(ask: Callable[..., Any], window: str, seconds: int, kind: type) -> None:
    body = {"error": {"code": "limit", "message": "m", "window": window, "retry_after_seconds": seconds, "next_actions": []}}
    (result,), requests, time = await ask(Backend.TAVILY, None, Response(json.dumps(body), 429))
    assert type(result.outcome) is kind and (len(requests), time.sleeps) == ((2, [float(seconds)]) if kind is Found else (1, []))


async def test_throttled_to_the_last_is_throttled(ask: Callable[..., Any]) -> None:
    refused = [Response(status=429, headers={"X-RateLimit-Remaining": "0, 7", **LIMITS}) for _ in range(9)]
    (result,), requests, _ = await ask(Backend.BRAVE, LiteralCredential(KEY), *refused)
    assert isinstance(result.outcome, Throttled) and len(requests) == 4 and result.audit.throttles == 4


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["https://a.example/", "search", "day"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["web", "results", "url", "title", "content", "type", "error", "code", "window", "retry_after_seconds", "detail"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(Backend), st.sampled_from([200, 204, 301, 400, 401, 403, 422, 429, 432, 500]), VALUES, st.text(max_size=12))
def test_any_reply_is_read(backend: Backend, status: int, body: Any, limits: str) -> None:
    config = replace(SearchConfig("http://127.0.0.1:9"), backend=backend)
    headers = {f"x-ratelimit-{name}": limits for name in ("remaining", "reset", "policy")}
    got = BACKENDS[backend].read(WireReply(status, headers, dumped(body)), config, NOW)
    assert isinstance(got.outcome, Found) is (got.usage.searches == 1) and (status == 200 or not isinstance(got.outcome, Found))
