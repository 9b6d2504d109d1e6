"""Search: what is asked, what comes back, what never does."""

from typing import Any

import pytest

from deep20ray_actors.addresses import excluded
from deep20ray_actors.config import SearchConfig
from deep20ray_actors.messages import SearchMessage
from deep20ray_actors.outcomes import Found, Malformed, Rejected, ServerFault, Throttled
from deep20ray_actors.providers.wire import Reading, WireReply
from deep20ray_actors.search.searxng import build, read
from tests.actors.support import NOW, dumped

CONFIG = SearchConfig("http://127.0.0.1:9", excluded_domains=("bad.example", "wiki.example/answers"))


def reading(body: Any, status: int = 200) -> Reading:
    return read(WireReply(status, {}, body if isinstance(body, bytes) else dumped(body)), CONFIG, NOW)


def row(url: Any, content: Any = "text", title: Any = "title") -> dict[str, Any]:
    return {"url": url, "content": content, "title": title, "engine": "e", "score": 1.0}


def test_the_request() -> None:
    request = build(SearchConfig("http://127.0.0.1:9/"), SearchMessage(query="Halley's Comet Is it alive?"))
    assert (request.method, request.path) == ("GET", "/search?q=Halley%27s+Comet+Is+it+alive%3F&format=json")
    assert set(request.headers) == {"accept", "accept-encoding", "user-agent"} and request.body == b""


def test_results_are_numbered_cut_and_five_at_most() -> None:
    rows = [row(f"https://s{n}.example/", "x" * 5000) for n in range(9)]
    found = reading({"results": rows}).outcome
    assert isinstance(found, Found) and [item.number for item in found.results] == [1, 2, 3, 4, 5]
    assert all(len(item.text) == 2000 for item in found.results)


def test_no_hits_is_a_success_with_one_search_counted() -> None:
    got = reading({"results": []})
    assert got.outcome == Found(()) and got.usage.searches == 1 and got.usage.output_visible == 0


def test_no_hits_because_the_engines_failed_is_not() -> None:
    got = reading({"results": [], "unresponsive_engines": [["e", "timeout"]]})
    assert isinstance(got.outcome, ServerFault) and got.retry


@pytest.mark.parametrize(
    "url",
    [
        "https://bad.example/x",
        "https://www.bad.example./x",
        "https://bad.example:8443/x",
        "https://user@BAD.example/",
        "https://wiki.example/answers/1",
        "https://github.com/mindalyze-com/anything",
        "https://raw.githubusercontent.com/mindalyze%2Dcom/x",
        "https://deep20ray.example/run",
        "https://mirror.example/deep-20-bench/raw",
        "ftp://x.example/",
        "javascript:alert(1)",
        "https://[bad",
        "https://x.example/a b",
        "",
        None,
        7,
        "https://x.example/" + "y" * 3000,
    ],
)
def test_these_addresses_never_come_back(url: Any) -> None:
    found = reading({"results": [row(url), row("https://fine.example/")]}).outcome
    assert isinstance(found, Found) and [(item.number, item.url) for item in found.results] == [(1, "https://fine.example/")]


@pytest.mark.parametrize(
    "url", ["https://notbad.example/", "https://bad.example.org/", "https://wiki.example/answersheet", "https://wiki.example/"]
)
def test_neighbours_of_excluded_domains_stay(url: str) -> None:
    assert not excluded(url, CONFIG.excluded_domains)


def test_the_same_address_twice_is_one_result_and_absent_text_is_empty() -> None:
    found = reading({"results": [row("https://a.example/", None, None), row("https://a.example/", "second")]}).outcome
    assert isinstance(found, Found) and [(item.title, item.text) for item in found.results] == [("", "")]


@pytest.mark.parametrize("body", [b"<html>", b"", {"results": None}, {}, {"results": ["x"]}, {"results": {}}])
def test_other_bodies_are_malformed(body: Any) -> None:
    got = reading(body)
    assert isinstance(got.outcome, Malformed) and got.retry


@pytest.mark.parametrize(
    ("error", "kind"), [("boom", ServerFault), ({"code": 429}, Throttled), ({"code": 400}, Rejected), (True, ServerFault)]
)
def test_an_error_beside_results_is_no_success(error: Any, kind: type) -> None:
    got = reading({"results": [row("https://a.example/")], "error": error})
    assert type(got.outcome) is kind and got.usage.searches == 0
    assert isinstance(reading({"results": [], "error": None}).outcome, Found)


def test_statuses() -> None:
    forbidden = reading(b"", 403).outcome
    assert isinstance(forbidden, Rejected) and "search.formats" in forbidden.detail
    assert isinstance(reading(b"", 429).outcome, Throttled) and isinstance(reading(b"", 502).outcome, ServerFault)
