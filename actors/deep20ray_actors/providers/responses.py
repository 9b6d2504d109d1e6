"""OpenAI's Responses. Pure: a request out of a typed message, a reading out of a reply.

The body holds no tools, no earlier response and no conversation, and asks that nothing be stored. This protocol has no seed.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from deep20ray.answers import Role
from deep20ray_actors.config import RouteConfig
from deep20ray_actors.messages import ChatMessage
from deep20ray_actors.outcomes import Malformed, Outcome, Refused, ServerFault
from deep20ray_actors.providers.delivery import Stop, broken, delivered, opened, overreach, post
from deep20ray_actors.providers.jsontext import label, storable
from deep20ray_actors.providers.usage import read_responses_usage
from deep20ray_actors.providers.wire import Reading, WireReply, WireRequest
from deep20ray_actors.render import answer_schema, chat_messages

STOPS = {"completed": Stop.NORMAL, "max_output_tokens": Stop.LENGTH, "content_filter": Stop.CUT}
"""``status``, or the reason of an incomplete response; any other is Stop.OTHER."""
_UNFINISHED = ("queued", "in_progress", "cancelled")
_SEARCH = "web_search_call"


def build(route: RouteConfig, message: ChatMessage, seed: int | None) -> WireRequest:  # noqa: ARG001  no seed in this protocol
    """The request of one call. Equal arguments give equal bytes.

    Raises:
        RouteRefused: the route's prompt can't render the message.
    """
    name, schema = answer_schema(message, route.tokens)
    system, *turns = chat_messages(message, route.prompt)
    body = {
        "model": route.model,
        "instructions": system["content"],
        "input": turns,
        "text": {"format": {"type": "json_schema", "name": name, "strict": True, "schema": schema}},
        "temperature": route.sampling.temperature,
        "top_p": route.sampling.top_p,
        "reasoning": None if route.effort is None else {"effort": route.effort},
        "max_output_tokens": route.max_output_tokens,
        "store": False,
    }
    return post(route.base_url, "/responses", body, seed_sent=False)


def read(reply: WireReply, role: Role, now: datetime) -> Reading:
    """What a reply means for a role."""
    body = opened(reply, now, "Responses")
    if isinstance(body, Reading):
        return body
    status, output = body.get("status"), body.get("output")
    if status in _UNFINISHED:
        return Reading(ServerFault("the provider left the response unfinished; resume later", reply.status), retry=True)
    if not isinstance(output, list) or not all(isinstance(item, dict) for item in output):
        return broken(reply, "the reply holds no list of output items")
    seen = _seen(output)
    details = body.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) and status == "incomplete" else None
    finish = reason or status
    return Reading(
        _outcome(seen, finish, role, reply.status),
        usage=read_responses_usage(body.get("usage"), body.get("tool_usage"), seen.searches),
        served_model=label(body.get("model")),
        fingerprint=label(body.get("system_fingerprint")),
        finish_reason=label(finish),
        reasoning="\n".join(seen.reasoning) or None,
    )


@dataclass(slots=True)
class _Seen:
    """What the output items held."""

    texts: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    searches: int = 0
    cited: bool = False
    tools: bool = False
    unreadable: bool = False


def _seen(output: list[dict[str, Any]]) -> _Seen:
    seen = _Seen()
    for item in output:
        match item.get("type"):
            case "message":
                # A commentary comes before the answer and is none.
                if item.get("phase") != "commentary":
                    _message(item.get("content"), seen)
            case "reasoning":
                for parts in (item.get("summary"), item.get("content")):
                    seen.reasoning += [storable(part["text"]) for part in _parts(parts) if isinstance(part.get("text"), str)]
            case kind if kind == _SEARCH:
                action = item.get("action")
                seen.searches += not isinstance(action, dict) or action.get("type", "search") == "search"
                seen.cited = True
            case _:
                seen.tools = True
    return seen


def _message(content: object, seen: _Seen) -> None:
    parts = _parts(content)
    seen.unreadable |= not isinstance(content, list) or len(parts) != len(content)
    for part in parts:
        match part.get("type"):
            case "output_text" if isinstance(part.get("text"), str):
                seen.texts.append(storable(part["text"]))
                seen.cited |= bool(part.get("annotations"))
            case "refusal":
                seen.refusals.append(storable(str(part.get("refusal") or "")))
            case _:
                seen.unreadable = True


def _parts(parts: object) -> list[dict[str, Any]]:
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _outcome(seen: _Seen, finish: object, role: Role, status: int) -> Outcome:
    fault = overreach(role, status, tools=seen.tools, searched=seen.cited)
    if fault is not None:
        return fault
    if seen.unreadable:
        return Malformed("the reply's content is not text", status)
    text = "".join(seen.texts)
    if seen.refusals:
        refusal = "".join(seen.refusals)
        return Refused(text if text.strip() else refusal if refusal.strip() else None)
    return delivered(STOPS.get(finish, Stop.OTHER) if isinstance(finish, str) else Stop.OTHER, text)
