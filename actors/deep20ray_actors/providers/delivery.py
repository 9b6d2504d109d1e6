"""What every dialect decides alike: is a reply an error, how did it stop, did it use what it wasn't given. Pure.

A provider's own search is given to an Oracle that was asked to research, and to nobody else; any other search is a fault.

A dialect maps its own words for the end of a reply to a Stop; what a Stop and the visible text amount to is decided here, once.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from enum import Enum, auto
from typing import Any, assert_never

from deep20ray.answers import Role
from deep20ray_actors.config import NativeSearch, RouteConfig
from deep20ray_actors.messages import ChatMessage, ResearchMessage
from deep20ray_actors.outcomes import Browsed, Completed, Delivered, Empty, Malformed, Refused, Truncated
from deep20ray_actors.providers.jsontext import NotJson, json_object, json_value
from deep20ray_actors.providers.wire import USER_AGENT, Reading, WireReply, WireRequest, read_error

HEADERS = {"accept": "application/json", "accept-encoding": "identity", "content-type": "application/json", "user-agent": USER_AGENT}


class Stop(Enum):
    """How a reply ended."""

    NORMAL = auto()
    LENGTH = auto()
    """At its output limit, or at the end of the model's context."""
    CUT = auto()
    """The model refused, or a filter cut it."""
    OTHER = auto()
    """In any other way, an unknown one included."""


def post(base_url: str, path: str, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None, seed_sent: bool) -> WireRequest:
    """A JSON request. Equal arguments give equal bytes; members that are None are left out."""
    given = {key: value for key, value in body.items() if value is not None}
    return WireRequest("POST", base_url.rstrip("/"), path, {**HEADERS, **(headers or {})}, encoded(given), seed_sent)


def encoded(value: object, *, escaped: bool = False) -> bytes:
    """A JSON value as bytes. ``escaped``: in ASCII, which can hold a lone surrogate that a provider sent.

    Raises:
        ValueError: a number that JSON can't hold, or, if not ``escaped``, a lone surrogate.
    """
    return json.dumps(value, ensure_ascii=escaped, separators=(",", ":"), allow_nan=False).encode()


def search_given(route: RouteConfig, message: ChatMessage) -> NativeSearch | None:
    """The provider's own search, where this call is given it."""
    return route.native if isinstance(message, ResearchMessage) else None


def opened(reply: WireReply, now: datetime, protocol: str) -> dict[str, Any] | Reading:
    """A reply's body, or what it means if it is no reply of a model: another status, no JSON, or an error inside."""
    try:
        body = json_object(_unwrapped(reply.body))
    except NotJson:
        if reply.status != 200:
            return read_error(reply.status, reply.headers, None, now)
        return Reading(Malformed(f"the reply is not JSON; check that base_url is a {protocol} API", reply.status), retry=True)
    error = body.get("error")
    if reply.status != 200 or error or body.get("status") == "failed" or body.get("type") == "error":
        return read_error(reply.status, reply.headers, error, now)
    return body


def broken(reply: WireReply, what: str) -> Reading:
    """A reply that isn't what the protocol says; another try may help."""
    return Reading(Malformed(what, reply.status), retry=True)


def delivered(stop: Stop, text: str | None, browsed: Browsed | None = None) -> Delivered:
    """What a reply amounts to. Nothing is ever taken for the text but the visible text."""
    shown = text if text and text.strip() else None
    match stop:
        case Stop.NORMAL:
            return Empty() if shown is None else Completed(shown, browsed)
        case Stop.LENGTH:
            return Truncated(shown, "length", reasoning_only=shown is None)
        case Stop.CUT:
            return Refused(shown)
        case Stop.OTHER:
            return Truncated(shown, "other", reasoning_only=False)
        case _:
            assert_never(stop)


def overreach(role: Role, native: NativeSearch | None, status: int, *, tools: bool, searched: bool) -> Malformed | None:
    """The fault of a reply that used tools, or searched without having been given a search; only an Oracle can be."""
    given = native is not None and role is Role.ORACLE
    used = "tools" if tools else "web search" if searched and not given else None
    return None if used is None else Malformed(f"the model used {used}, which it was not given; switch its tools and search off", status)


def _unwrapped(body: bytes) -> bytes:
    """Without the one-element list that some gateways put around an error."""
    if not body.lstrip().startswith(b"["):
        return body
    value = json_value(body)
    wrapped = isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and "error" in value[0]
    return json.dumps(value[0]).encode() if wrapped else body
