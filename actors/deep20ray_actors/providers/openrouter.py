"""OpenRouter: chat completions with pinned routing. Pure.

No fallback to another provider ever happens, a provider that can't honour every parameter is never taken, and the one that served is
part of the served model's name ("model@provider"), so that a change of provider shows as drift.

A request with its web search asks for no schema: the search behind it may be a provider's that refuses the two together.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any

from deep20ray.answers import Role
from deep20ray_actors.config import NativeSearch, RouteConfig
from deep20ray_actors.messages import ChatMessage
from deep20ray_actors.providers import chat
from deep20ray_actors.providers.delivery import search_given
from deep20ray_actors.providers.jsontext import NotJson, json_object, label
from deep20ray_actors.providers.usage import cost_microusd
from deep20ray_actors.providers.wire import Reading, WireReply, WireRequest


def build(route: RouteConfig, message: ChatMessage, seed: int | None) -> WireRequest:
    """The request of one call. Equal arguments give equal bytes.

    Raises:
        RouteRefused: the route's prompt can't render the message.
    """
    pinned = {"only": list(route.upstreams)} if route.upstreams else {}
    effort = {} if route.effort is None else {"reasoning": {"effort": route.effort}}
    provider = {**pinned, "allow_fallbacks": False, "require_parameters": True}
    native = search_given(route, message)
    search = {} if native is None else {"response_format": None, "tools": [_tool(native)]}
    return chat.request_of(route, message, seed, {**effort, "provider": provider, **search})


def _tool(native: NativeSearch) -> dict[str, Any]:
    excluded = {"excluded_domains": list(native.excluded_domains)} if native.excluded_domains else {}
    return {"type": "openrouter:web_search", "parameters": {"max_uses": native.max_searches, **excluded}}


def read(reply: WireReply, role: Role, now: datetime, native: NativeSearch | None = None) -> Reading:
    """What a reply means for a role, and whether it was given its provider's search."""
    reading = chat.reading_of(reply, role, now, native, cost_microusd)
    try:
        provider = label(json_object(reply.body).get("provider"))
    except NotJson:
        return reading
    if provider is None or reading.served_model is None:
        return reading
    return replace(reading, served_model=f"{reading.served_model}@{provider}")
