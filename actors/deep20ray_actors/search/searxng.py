"""SearXNG's JSON search. Pure: a request out of a query, a reading out of a reply.

The benchmark's own publications, the original's included, never come back: a subject's answers stand in them.
"""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from deep20ray_actors.addresses import BENCHMARK_MARKS, excluded, usable_address
from deep20ray_actors.config import SearchConfig
from deep20ray_actors.messages import ResultItem, SearchMessage
from deep20ray_actors.outcomes import Found, Malformed, Rejected, ServerFault, Usage
from deep20ray_actors.providers.jsontext import NotJson, json_object, storable
from deep20ray_actors.providers.wire import USER_AGENT, Reading, WireReply, WireRequest, read_error

__all__ = ["BENCHMARK_MARKS", "build", "excluded", "read"]
_HEADERS = {"accept": "application/json", "accept-encoding": "identity", "user-agent": USER_AGENT}
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


def _results(rows: list[dict[str, Any]], config: SearchConfig) -> tuple[ResultItem, ...]:
    kept: dict[str, ResultItem] = {}
    for row in rows:
        url = usable_address(row.get("url"))
        if url is None or url in kept or excluded(url, config.excluded_domains):
            continue
        title, text = _text(row.get("title"), _TITLE_MAX), _text(row.get("content"), config.max_text)
        kept[url] = ResultItem(number=len(kept) + 1, url=url, title=title, text=text)
        if len(kept) == config.max_results:
            break
    return tuple(kept.values())


def _text(value: object, limit: int) -> str:
    return storable(value)[:limit] if isinstance(value, str) else ""
