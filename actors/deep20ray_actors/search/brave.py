"""Brave's web search. Pure: a request out of a query, a reading out of a reply.

Its limits are lists with one entry a window: ``X-RateLimit-Policy: 1;w=1, 15000;w=2592000``, ``-Remaining: 0, 12``, ``-Reset: 1, 1419704``
(seconds). An exhausted second is waited for, an exhausted month never. A window whose limit is 0 is none: nothing remains of it ever.
"""

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from deep20ray_actors.config import SearchConfig
from deep20ray_actors.messages import SearchMessage
from deep20ray_actors.outcomes import Credentials, Found, Malformed, QuotaExhausted
from deep20ray_actors.providers.jsontext import NotJson, json_object
from deep20ray_actors.providers.wire import WAIT_MAX, Reading, WireReply, WireRequest, read_error
from deep20ray_actors.search.results import HEADERS, ONE_SEARCH, Row, kept, shortened

_COUNT_MAX = 20
_DAY = 86_400.0
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_TOKEN_CODES = frozenset({"SUBSCRIPTION_TOKEN_INVALID", "SUBSCRIPTION_NOT_FOUND"})
_QUOTA_CODES = frozenset({"QUOTA_LIMITED", "QUOTA_EXCEEDED"})
_HASTE_CODE = "RATE_LIMITED"


def build(config: SearchConfig, message: SearchMessage) -> WireRequest:
    """The request of one search."""
    # Some results may fall out as excluded or doubled; asking for more of them costs nothing.
    asked = {"q": shortened(message.query), "count": min(_COUNT_MAX, config.max_results * 2), "extra_snippets": "true"}
    return WireRequest("GET", config.base_url.rstrip("/"), "/web/search?" + urlencode(asked), HEADERS)


def authorize(key: str) -> tuple[str, str]:
    """The header that its key goes in."""
    return "x-subscription-token", key


def read(reply: WireReply, config: SearchConfig, now: datetime) -> Reading:
    """What a reply means. No hits is a success, and only successes are billed."""
    try:
        body = json_object(reply.body)
    except NotJson:
        body = {}
    if reply.status != 200 or body.get("error"):
        return _refused(reply, body.get("error"), now)
    web = body.get("web", {"results": []})
    rows = web.get("results") if isinstance(web, dict) else None
    if body.get("type") != "search" or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return Reading(Malformed("the search reply is not Brave's; check search.base_url", reply.status), retry=True)
    found = kept((Row(row.get("url"), _plain(row.get("title")), _passages(row)) for row in rows), config)
    return Reading(Found(found), usage=ONE_SEARCH)


def _refused(reply: WireReply, error: object, now: datetime) -> Reading:
    said, stated = (error.get("code"), error.get("status")) if isinstance(error, dict) else (None, None)
    code = said if isinstance(said, str) else None
    if reply.status == 200 and type(stated) is int and 400 <= stated <= 599:
        reply = replace(reply, status=stated)
    if code in _TOKEN_CODES:
        return Reading(Credentials(f"Brave did not accept the key ({code}); check search.api_key", reply.status))
    spent = _exhausted(reply.headers) if reply.status == 429 else []
    if code in _QUOTA_CODES or any(_quota(window, code) for window in spent):
        words = f"no searches are left on Brave's plan (status {reply.status}); top it up or wait for its next month, then resume"
        return Reading(QuotaExhausted(words, reply.status))
    headers = dict(reply.headers)
    waits = [window.reset for window in spent if window.length < _DAY]
    if waits and "retry-after" not in headers:
        headers["retry-after"] = str(max(waits))
    return read_error(reply.status, headers, error, now)


@dataclass(frozen=True, slots=True)
class _Window:
    """One of which nothing remains: length and reset in seconds, and how many searches it grants, if that is said."""

    length: float
    reset: float
    limit: float | None


def _quota(spent: _Window, code: str | None) -> bool:
    """Whether a spent window is a plan's quota. Brave has a code of its own for that, so the code for haste needs good grounds."""
    if code == _HASTE_CODE:
        return spent.limit is not None and spent.length >= _DAY
    return spent.length >= _DAY or spent.reset > WAIT_MAX


def _exhausted(headers: Mapping[str, str]) -> list[_Window]:
    """The windows that grant something and of which nothing remains. A length that isn't said is taken for the reset."""
    remaining, resets = _numbers(headers.get("x-ratelimit-remaining")), _numbers(headers.get("x-ratelimit-reset"))
    if len(remaining) != len(resets) or None in remaining or None in resets:
        return []
    policy = [part.partition(";") for part in headers.get("x-ratelimit-policy", "").split(",")]
    lengths = _fitting([_number(rest.rpartition("w=")[2]) for _, _, rest in policy], resets) or resets
    limits = _fitting([_number(limit) for limit, _, _ in policy], resets) or _fitting(_numbers(headers.get("x-ratelimit-limit")), resets)
    windows = zip(remaining, lengths, resets, limits or [None] * len(resets), strict=True)
    return [_Window(length or 0.0, reset or 0.0, limit) for left, length, reset, limit in windows if left == 0 and limit != 0]


def _fitting(numbers: list[float | None], windows: list[float | None]) -> list[float | None] | None:
    """The numbers if there is one for each window."""
    return numbers if len(numbers) == len(windows) and None not in numbers else None


def _numbers(value: str | None) -> list[float | None]:
    return [] if value is None else [_number(part) for part in value.split(",")]


def _number(text: str) -> float | None:
    text = text.strip()
    return float(text) if re.fullmatch(r"[0-9]{1,12}", text) else None


def _passages(row: Mapping[str, Any]) -> str:
    extra = row.get("extra_snippets")
    parts = [row.get("description"), *(extra if isinstance(extra, list) else [])]
    texts = [_plain(part).strip() for part in parts]
    # The description often stands among the passages again.
    return "\n".join(dict.fromkeys(text for text in texts if text))


def _plain(value: object) -> str:
    """Without the tags that mark the query's words, and with entities as what they stand for."""
    return html.unescape(_TAG.sub("", value)) if isinstance(value, str) else ""
