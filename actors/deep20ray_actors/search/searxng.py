"""SearXNG's JSON search. Pure: a request out of a query, a reading out of a reply.

The benchmark's own publications, the original's included, never come back: a subject's answers stand in them.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

from deep20ray_actors.config import SearchConfig
from deep20ray_actors.messages import ResultItem, SearchMessage
from deep20ray_actors.outcomes import Found, Malformed, Rejected, ServerFault, Usage
from deep20ray_actors.providers.jsontext import NotJson, json_object, storable
from deep20ray_actors.providers.wire import USER_AGENT, Reading, WireReply, WireRequest, read_error

BENCHMARK_MARKS = ("deep20ray", "deep20bench", "deep-20-bench", "mindalyze-com")
"""An address that holds one of these is one of the benchmark's own publications."""
_HEADERS = {"accept": "application/json", "accept-encoding": "identity", "user-agent": USER_AGENT}
_URL_MAX = 2000
_TITLE_MAX = 300


def build(config: SearchConfig, message: SearchMessage) -> WireRequest:
    """The request of one search."""
    return WireRequest("GET", config.base_url.rstrip("/"), "/search?" + urlencode({"q": message.query, "format": "json"}), _HEADERS)


def read(reply: WireReply, config: SearchConfig, now: datetime) -> Reading:
    """What a reply means. No hits is a success; no hits because the engines behind it failed is not."""
    if reply.status == 403:
        return Reading(Rejected("the search server refuses JSON (status 403); add json to its search.formats", 403))
    if reply.status != 200:
        return read_error(reply.status, reply.headers, None, now)
    try:
        body = json_object(reply.body)
    except NotJson:
        return Reading(Malformed("the search reply is not JSON; check search.base_url", reply.status), retry=True)
    rows = body.get("results")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return Reading(Malformed("the search reply holds no list of results; check search.base_url", reply.status), retry=True)
    if not rows and body.get("unresponsive_engines"):
        return Reading(ServerFault("no search engine behind the search server answered", reply.status), retry=True)
    return Reading(Found(_results(rows, config)), usage=Usage(0, 0, 0, 0, 0, 0, searches=1))


def excluded(url: str, domains: Iterable[str]) -> bool:
    """Whether an address is one of the benchmark's own, or under one of ``domains`` ("host" or "host/path", subdomains included)."""
    lowered = unquote(url).lower()
    if any(mark in lowered for mark in BENCHMARK_MARKS):
        return True
    parts = urlsplit(lowered)
    host = (parts.hostname or "").rstrip(".")
    for domain in domains:
        name, _, path = domain.lower().partition("/")
        under = host == name or host.endswith("." + name)
        if under and (not path or (parts.path.strip("/") + "/").startswith(path.strip("/") + "/")):
            return True
    return False


def _results(rows: list[dict[str, Any]], config: SearchConfig) -> tuple[ResultItem, ...]:
    kept: dict[str, ResultItem] = {}
    for row in rows:
        url = _address(row.get("url"))
        if url is None or url in kept or excluded(url, config.excluded_domains):
            continue
        title, text = _text(row.get("title"), _TITLE_MAX), _text(row.get("content"), config.max_text)
        kept[url] = ResultItem(number=len(kept) + 1, url=url, title=title, text=text)
        if len(kept) == config.max_results:
            break
    return tuple(kept.values())


def _address(value: object) -> str | None:
    if not isinstance(value, str) or not 0 < len(value) <= _URL_MAX or not value.isprintable() or " " in value:
        return None
    try:
        parts = urlsplit(value)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return None
    return value if known else None


def _text(value: object, limit: int) -> str:
    return storable(value)[:limit] if isinstance(value, str) else ""
