"""Anthropic's Messages. Pure: a request out of a typed message, a reading out of a reply.

The body holds no tools, metadata or container. This protocol has no seed; its schemas have neither name nor strictness; its speakers
take turns, so neighbouring messages of one speaker become blocks of one message.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from deep20ray.answers import Role
from deep20ray_actors.config import RouteConfig
from deep20ray_actors.messages import ChatMessage
from deep20ray_actors.outcomes import Malformed, Outcome
from deep20ray_actors.providers.delivery import Stop, broken, delivered, opened, overreach, post
from deep20ray_actors.providers.jsontext import label, storable
from deep20ray_actors.providers.transport import bearer
from deep20ray_actors.providers.usage import read_anthropic_usage
from deep20ray_actors.providers.wire import Reading, WireReply, WireRequest
from deep20ray_actors.render import alternating, answer_schema, chat_messages

STOPS = {
    "end_turn": Stop.NORMAL,
    "stop_sequence": Stop.NORMAL,
    "max_tokens": Stop.LENGTH,
    "model_context_window_exceeded": Stop.LENGTH,
    "refusal": Stop.CUT,
    "content_filter": Stop.CUT,
    "pause_turn": Stop.OTHER,
}
"""Stop reasons; any other is Stop.OTHER, but for ``tool_use``, which is a fault."""


def authorize(route: RouteConfig, key: str) -> tuple[str, str]:
    """The header of a key."""
    return ("x-api-key", key) if route.anthropic.auth == "x-api-key" else bearer(key)


def build(route: RouteConfig, message: ChatMessage, seed: int | None) -> WireRequest:  # noqa: ARG001  no seed in this protocol
    """The request of one call. Equal arguments give equal bytes.

    Raises:
        RouteRefused: the route's prompt can't render the message.
    """
    _, schema = answer_schema(message, route.tokens)
    system, *turns = chat_messages(message, route.prompt)
    effort = {} if route.effort is None else {"effort": route.effort}
    body = {
        "model": route.model,
        "max_tokens": route.max_output_tokens,
        "system": system["content"],
        "messages": [
            {"role": speaker, "content": [{"type": "text", "text": text} for text in texts]} for speaker, texts in alternating(turns)
        ],
        "output_config": {"format": {"type": "json_schema", "schema": schema}, **effort},
        "thinking": None if route.anthropic.thinking is None else {"type": route.anthropic.thinking},
        "temperature": route.sampling.temperature,
        "top_p": route.sampling.top_p,
    }
    return post(route.base_url, "/messages", body, headers={"anthropic-version": route.anthropic.version}, seed_sent=False)


def read(reply: WireReply, role: Role, now: datetime) -> Reading:
    """What a reply means for a role."""
    body = opened(reply, now, "Messages")
    if isinstance(body, Reading):
        return body
    content = body.get("content")
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        return broken(reply, "the reply holds no list of content blocks")
    seen, finish = _seen(content), body.get("stop_reason")
    usage = read_anthropic_usage(body.get("usage"))
    return Reading(
        _outcome(seen, finish, usage.searches > 0, role, reply.status),
        usage=usage,
        served_model=label(body.get("model")),
        finish_reason=label(finish),
        reasoning="\n".join(seen.reasoning) or None,
    )


@dataclass(slots=True)
class _Seen:
    """What the content blocks held."""

    texts: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    searched: bool = False
    tools: bool = False
    unreadable: bool = False


def _seen(content: list[dict[str, Any]]) -> _Seen:
    seen = _Seen()
    for block in content:
        match block.get("type"):
            case "text" if isinstance(block.get("text"), str):
                seen.texts.append(storable(block["text"]))
                seen.searched |= bool(block.get("citations"))
            case "thinking" if isinstance(block.get("thinking"), str):
                seen.reasoning.append(storable(block["thinking"]))
            case "thinking" | "redacted_thinking":
                pass
            case "server_tool_use" if block.get("name") == "web_search":
                seen.searched = True
            case "web_search_tool_result":
                seen.searched = True
            case str() as kind if "tool" in kind:
                seen.tools = True
            case _:
                seen.unreadable = True
    return seen


def _outcome(seen: _Seen, finish: object, searched: bool, role: Role, status: int) -> Outcome:
    fault = overreach(role, status, tools=seen.tools or finish == "tool_use", searched=seen.searched or searched)
    if fault is not None:
        return fault
    if seen.unreadable:
        return Malformed("the reply's content is not text", status)
    return delivered(STOPS.get(finish, Stop.OTHER) if isinstance(finish, str) else Stop.OTHER, "".join(seen.texts))
