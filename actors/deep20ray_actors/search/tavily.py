"""Tavily's search, with a key or without one. Pure: a request out of a query, a reading out of a reply.

Without a key, refusals say which window is used up and when it is whole again; a short one is waited for, a day or more never.
"""

import re
from datetime import datetime
from typing import Any

from deep20ray_actors.config import SearchConfig
from deep20ray_actors.messages import SearchMessage
from deep20ray_actors.outcomes import Found, Malformed, QuotaExhausted, Throttled
from deep20ray_actors.providers.delivery import post
from deep20ray_actors.providers.jsontext import NotJson, json_object
from deep20ray_actors.providers.wire import WAIT_MAX, Reading, WireReply, WireRequest, read_error
from deep20ray_actors.search.results import ONE_SEARCH, Row, kept, shortened

_COUNT_MAX = 20
_EXCLUDED_MAX = 150
_DOMAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*\.[A-Za-z0-9-]+")
_KEYLESS = {"x-tavily-access-mode": "keyless"}


def build(config: SearchConfig, message: SearchMessage) -> WireRequest:
    """The request of one search."""
    # What is excluded by path, or spelled in another way, is dropped from the reply alone; the server would refuse it.
    domains = sorted({domain.lower() for domain in config.excluded_domains if _DOMAIN.fullmatch(domain)})
    body = {
        "query": shortened(message.query),
        "search_depth": "basic",
        "max_results": min(_COUNT_MAX, config.max_results * 2),
        "include_raw_content": False,
        "include_answer": False,
        "exclude_domains": domains[:_EXCLUDED_MAX],
    }
    return post(config.base_url, "/search", body, headers=_KEYLESS if config.credential is None else None, seed_sent=False)


def read(reply: WireReply, config: SearchConfig, now: datetime) -> Reading:
    """What a reply means. No hits is a success."""
    try:
        body = json_object(reply.body)
    except NotJson:
        body = {}
    error = body.get("error")
    if reply.status != 200 or error:
        return _refused(reply, error, now)
    rows = body.get("results")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return Reading(Malformed("the search reply is not Tavily's; check search.base_url", reply.status), retry=True)
    found = kept((Row(row.get("url"), row.get("title"), row.get("content")) for row in rows), config)
    return Reading(Found(found), usage=ONE_SEARCH)


def _refused(reply: WireReply, error: object, now: datetime) -> Reading:
    if not isinstance(error, dict) or "window" not in error:
        return read_error(reply.status, reply.headers, error, now)
    status = reply.status if reply.status >= 300 else 429
    told: dict[str, Any] = {"metadata": {"retry_after_seconds": error.get("retry_after_seconds")}}
    reading = read_error(429, reply.headers, told, now)
    window = str(error.get("window")).lower()
    if any(name in window for name in ("day", "dai", "week", "month", "year")) or (reading.wait or 0.0) > WAIT_MAX:
        words = f"no keyless searches of Tavily are left for now (status {status}); set search.api_key or resume later"
        return Reading(QuotaExhausted(words, status))
    return Reading(Throttled(f"too many keyless searches (status {status}); set search.api_key", status, reading.wait), True, reading.wait)
