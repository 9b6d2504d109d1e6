"""OpenAI-compatible chat completions. Pure: a request out of a typed message, a reading out of a reply.

The body holds what the route configures and nothing else: no tools, no user, metadata, store or conversation handle. Nothing that
tells trials apart is in it but the message itself and the sampling seed.
"""

import json
from datetime import datetime
from typing import Any, assert_never

from deep20ray.answers import Role
from deep20ray_actors.config import RouteConfig
from deep20ray_actors.messages import ChatMessage
from deep20ray_actors.outcomes import Completed, Delivered, Empty, Malformed, Refused, Truncated
from deep20ray_actors.providers.jsontext import NotJson, json_object, label, storable
from deep20ray_actors.providers.usage import cost_microusd, read_usage, searches_of
from deep20ray_actors.providers.wire import USER_AGENT, Reading, WireReply, WireRequest, read_error
from deep20ray_actors.render import answer_schema, chat_messages

_HEADERS = {"accept": "application/json", "accept-encoding": "identity", "content-type": "application/json", "user-agent": USER_AGENT}


def seed_of(route: RouteConfig, seed: int | None) -> int | None:
    """The seed that goes into the body, if one does."""
    return seed if route.send_seed else None


def build(route: RouteConfig, message: ChatMessage, seed: int | None) -> WireRequest:
    """The request of one call. Equal arguments give equal bytes.

    Raises:
        RouteRefused: the route's prompt can't render the message.
    """
    name, schema = answer_schema(message, route.tokens)
    optional = {
        "seed": seed_of(route, seed),
        "temperature": route.sampling.temperature,
        "top_p": route.sampling.top_p,
        "reasoning_effort": route.effort,
    }
    body = {
        "model": route.model,
        "messages": chat_messages(message, route.prompt),
        "response_format": {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}},
        **{key: value for key, value in optional.items() if value is not None},
        route.output_limit_field: route.max_output_tokens,
    }
    data = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    return WireRequest("POST", route.base_url.rstrip("/"), "/chat/completions", _HEADERS, data)


def read(reply: WireReply, role: Role, now: datetime) -> Reading:
    """What a reply means for a role."""
    try:
        body = json_object(reply.body)
    except NotJson:
        if reply.status != 200:
            return read_error(reply.status, reply.headers, None, now)
        return Reading(Malformed("the reply is not JSON; check that base_url is a chat completions API", reply.status), retry=True)
    error = body.get("error")
    if reply.status != 200 or error or body.get("status") == "failed":
        return read_error(reply.status, reply.headers, error, now)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return Reading(Malformed("the reply holds no choice", reply.status), retry=True)
    if choice.get("error") or choice.get("finish_reason") == "error":
        return read_error(reply.status, reply.headers, choice.get("error"), now)
    message = choice.get("message")
    if not isinstance(message, dict):
        return Reading(Malformed("the reply's choice holds no message", reply.status), retry=True)
    return _delivered(reply.status, body, choice, message, role)


def _delivered(status: int, body: dict[str, Any], choice: dict[str, Any], message: dict[str, Any], role: Role) -> Reading:
    text = _visible(message.get("content"))
    finish = choice.get("finish_reason")
    if isinstance(text, _Unreadable):
        outcome: Delivered | Malformed = Malformed("the reply's content is not text", status)
    elif tools := _tools_used(body, message, finish, role):
        outcome = Malformed(f"the model used {tools}, which it was not given; switch its tools and search off", status)
    else:
        outcome = _outcome(text, finish, message)
    usage = body.get("usage")
    return Reading(
        outcome,
        usage=read_usage(usage),
        served_model=label(body.get("model")),
        fingerprint=label(body.get("system_fingerprint")),
        finish_reason=label(finish),
        reasoning=_reasoning(message),
        reported_cost_microusd=cost_microusd(usage),
    )


def _outcome(text: str | None, finish: object, message: dict[str, Any]) -> Delivered:
    shown = text if text and text.strip() else None
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        return Refused(shown or storable(refusal))
    match finish:
        case "content_filter":
            return Refused(shown)
        case "length":
            return Truncated(shown, "length", reasoning_only=shown is None)
        case "stop":
            return Completed(text) if text and shown else Empty()
        case _:
            return Truncated(shown, "other", reasoning_only=False)


def _tools_used(body: dict[str, Any], message: dict[str, Any], finish: object, role: Role) -> str | None:
    """What a reply shows of tools: calls by anyone, and the provider's own search by any role but the Oracle."""
    if finish in ("tool_calls", "function_call") or message.get("tool_calls") or message.get("function_call"):
        return "tools"
    match role:
        case Role.ORACLE:
            return None
        case Role.GUESSER | Role.REVIEWER | Role.JUDGE | Role.VALIDATOR:
            cited = any(holder.get(key) for holder in (body, message) for key in ("annotations", "citations", "search_results"))
            return "web search" if cited or searches_of(body.get("usage")) else None
        case _:
            assert_never(role)


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
