"""OpenAI-compatible chat completions. Pure: a request out of a typed message, a reading out of a reply.

The body holds what the route configures and nothing else: no tools, no user, metadata, store or conversation handle. Nothing that
tells trials apart is in it but the message itself and the sampling seed. The protocol has no search of its own and no cost; a relative may.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from deep20ray.answers import Role
from deep20ray_actors.config import NativeSearch, RouteConfig
from deep20ray_actors.messages import ChatMessage
from deep20ray_actors.outcomes import Browsed, Malformed, Outcome, Refused
from deep20ray_actors.providers.browsing import Gathered
from deep20ray_actors.providers.delivery import Stop, broken, delivered, opened, overreach, post
from deep20ray_actors.providers.jsontext import label, storable
from deep20ray_actors.providers.usage import pages_of, read_usage, searches_of
from deep20ray_actors.providers.wire import Reading, WireReply, WireRequest, read_error
from deep20ray_actors.render import answer_schema, chat_messages

STOPS = {"stop": Stop.NORMAL, "length": Stop.LENGTH, "content_filter": Stop.CUT}
"""Finish reasons; any other is Stop.OTHER, but for tools and ``error``, which are faults."""


def build(route: RouteConfig, message: ChatMessage, seed: int | None) -> WireRequest:
    """The request of one call. Equal arguments give equal bytes.

    Raises:
        RouteRefused: the route's prompt can't render the message.
    """
    effort = {} if route.effort is None else {"reasoning_effort": route.effort}
    return request_of(route, message, seed, effort)


def request_of(route: RouteConfig, message: ChatMessage, seed: int | None, more: dict[str, Any]) -> WireRequest:
    """The request, with what a relative of this protocol says in its own way."""
    name, schema = answer_schema(message, route.tokens)
    sent = seed if route.send_seed else None
    body = {
        "model": route.model,
        "messages": chat_messages(message, route.prompt),
        "response_format": {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}},
        "seed": sent,
        "temperature": route.sampling.temperature,
        "top_p": route.sampling.top_p,
        **more,
        route.output_limit_field: route.max_output_tokens,
    }
    return post(route.base_url, "/chat/completions", body, seed_sent=sent is not None)


def read(reply: WireReply, role: Role, now: datetime, native: NativeSearch | None = None) -> Reading:
    """What a reply means for a role, and whether it was given its provider's search."""
    return reading_of(reply, role, now, native, lambda _: None)


def reading_of(
    reply: WireReply, role: Role, now: datetime, native: NativeSearch | None, cost_of: Callable[[object], int | None]
) -> Reading:
    """What a reply means, with what a relative of this protocol reads out of its usage: the cost in micro-dollars.

    Other servers' word on it is not taken: a gateway that knows no prices says 0, and prices that the sweep set would count no more.
    """
    body = opened(reply, now, "chat completions")
    if isinstance(body, Reading):
        return body
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return broken(reply, "the reply holds no choice")
    if choice.get("error") or choice.get("finish_reason") == "error":
        return read_error(reply.status, reply.headers, choice.get("error"), now)
    message = choice.get("message")
    if not isinstance(message, dict):
        return broken(reply, "the reply's choice holds no message")
    outcome = _outcome(reply.status, body, choice.get("finish_reason"), message, role, native)
    reading = _delivered(outcome, body, choice, message)
    return replace(reading, reported_cost_microusd=cost_of(body.get("usage")))


def _delivered(outcome: Outcome, body: dict[str, Any], choice: dict[str, Any], message: dict[str, Any]) -> Reading:
    return Reading(
        outcome,
        usage=read_usage(body.get("usage")),
        served_model=label(body.get("model")),
        fingerprint=label(body.get("system_fingerprint")),
        finish_reason=label(choice.get("finish_reason")),
        reasoning=_reasoning(message),
    )


def _outcome(
    status: int, body: dict[str, Any], finish: object, message: dict[str, Any], role: Role, native: NativeSearch | None
) -> Outcome:
    text = _visible(message.get("content"))
    if isinstance(text, _Unreadable):
        return Malformed("the reply's content is not text", status)
    called = finish in ("tool_calls", "function_call") or bool(message.get("tool_calls") or message.get("function_call"))
    called |= pages_of(body.get("usage")) > 0
    cited = any(holder.get(key) for holder in (body, message) for key in ("annotations", "citations", "search_results"))
    fault = overreach(role, native, status, tools=called, searched=cited or searches_of(body.get("usage")) > 0)
    if fault is not None:
        return fault
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        return Refused(text if text and text.strip() else storable(refusal))
    browsed = None if native is None else _browsed(body, message, native)
    return delivered(STOPS.get(finish, Stop.OTHER) if isinstance(finish, str) else Stop.OTHER, text, browsed)


def _browsed(body: dict[str, Any], message: dict[str, Any], native: NativeSearch) -> Browsed:
    """What the citations say; a search without any, which happens, is known by the usage alone."""
    gathered, citations = Gathered(native), 0
    annotations = message.get("annotations")
    for annotation in annotations if isinstance(annotations, list) else []:
        cited = annotation.get("url_citation") if isinstance(annotation, dict) else None
        if isinstance(cited, dict):
            citations += 1
            # A provider's own search says where in the answer it is cited and gives a passage; a search beside it gives pages.
            gathered.add(cited.get("url"), cited.get("title"), cited.get("content"), whole=not cited.get("end_index"))
    return gathered.browsed(max(searches_of(body.get("usage")), min(citations, 1)))


class _Unreadable:
    """Content that is neither text, nor parts with text, nor absent."""


def _visible(content: object) -> str | _Unreadable | None:
    if content is None or isinstance(content, str):
        return None if content is None else storable(content)
    if isinstance(content, list) and all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in content):
        texts = [part.get("text") for part in content if part["type"] in ("text", "output_text")]
        return storable("".join(text for text in texts if isinstance(text, str)))
    return _Unreadable()


def _reasoning(message: dict[str, Any]) -> str | None:
    texts = [message.get(key) for key in ("reasoning", "reasoning_content")]
    return next((storable(text) for text in texts if isinstance(text, str) and text), None)
