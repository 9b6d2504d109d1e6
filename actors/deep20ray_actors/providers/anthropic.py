"""Anthropic's Messages. Pure: a request out of a typed message, a reading out of a reply.

The body holds no metadata or container, and no tools but a researching Oracle's web search. This protocol has no seed; its schemas
have neither name nor strictness; its speakers take turns, so neighbouring messages of one speaker become blocks of one message.

A request with the search asks for no schema: its results are cited, and citations and schemas exclude each other. A turn with many
searches may be paused by the provider. It is gone on with by sending all its blocks back, exactly as they came, as one message of the
assistant's; what comes then begins where the pause was.
"""

import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from deep20ray.answers import Role
from deep20ray_actors.config import NativeSearch, RouteConfig
from deep20ray_actors.messages import ChatMessage
from deep20ray_actors.outcomes import Malformed, Outcome, is_fault
from deep20ray_actors.providers.browsing import Gathered
from deep20ray_actors.providers.delivery import Stop, broken, delivered, encoded, opened, overreach, post, search_given
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
    native = search_given(route, message)
    form = {"format": {"type": "json_schema", "schema": schema}} if native is None else {}
    effort = {} if route.effort is None else {"effort": route.effort}
    body = {
        "model": route.model,
        "max_tokens": route.max_output_tokens,
        "system": system["content"],
        "messages": [
            {"role": speaker, "content": [{"type": "text", "text": text} for text in texts]} for speaker, texts in alternating(turns)
        ],
        "output_config": {**form, **effort} or None,
        "thinking": None if route.anthropic.thinking is None else {"type": route.anthropic.thinking},
        "temperature": route.sampling.temperature,
        "top_p": route.sampling.top_p,
        "tools": None if native is None else [_tool(native, route.anthropic.search_version)],
    }
    return post(route.base_url, "/messages", body, headers={"anthropic-version": route.anthropic.version}, seed_sent=False)


def _tool(native: NativeSearch, version: str) -> dict[str, Any]:
    blocked = {"blocked_domains": list(native.excluded_domains)} if native.excluded_domains else {}
    # The first version knows no other caller than the model itself; later ones would have it write code around its searches.
    callers = {} if version == "web_search_20250305" else {"allowed_callers": ["direct"]}
    return {"type": version, "name": "web_search", "max_uses": native.max_searches, **blocked, **callers}


def go_on(request: WireRequest, blocks: tuple[Any, ...]) -> WireRequest:
    """The request that goes on with a paused turn.

    Args:
        request: the turn's first.
        blocks: a reading's ``paused``, which is the turn from its beginning. They go back with equal JSON values.
    """
    body = json.loads(request.body)
    body["messages"].append({"role": "assistant", "content": list(blocks)})
    return replace(request, body=encoded(body, escaped=True))


def read(reply: WireReply, role: Role, now: datetime, native: NativeSearch | None = None, earlier: tuple[Any, ...] = ()) -> Reading:
    """What a reply means for a role, and whether it was given its provider's search; ``earlier`` is a paused turn that it goes on with."""
    body = opened(reply, now, "Messages")
    if isinstance(body, Reading):
        return body
    content = body.get("content")
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        return broken(reply, "the reply holds no list of content blocks")
    content = [*earlier, *content]
    seen, finish = _seen(content, native), body.get("stop_reason")
    usage = read_anthropic_usage(body.get("usage"))
    seen.searched |= usage.searches > 0
    seen.tools |= usage.pages > 0
    outcome = _outcome(seen, finish, role, native, reply.status)
    resumable = finish == "pause_turn" and native is not None and not is_fault(outcome)
    if resumable and not _returnable(content):
        return broken(reply, "the reply holds a number that JSON can't, so that its paused turn can't be gone on with")
    return Reading(
        outcome,
        usage=usage,
        served_model=label(body.get("model")),
        finish_reason=label(finish),
        reasoning="\n".join(seen.reasoning) or None,
        paused=tuple(content) if resumable else None,
    )


def _returnable(content: list[dict[str, Any]]) -> bool:
    try:
        encoded(content, escaped=True)
    except (ValueError, RecursionError):
        return False
    return True


@dataclass(slots=True)
class _Seen:
    """What the content blocks held."""

    texts: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    gathered: Gathered | None = None
    worked: int = 0
    """Searches that returned a list of results, empty or not."""
    searched: bool = False
    tools: bool = False
    unreadable: bool = False


def _seen(content: list[dict[str, Any]], native: NativeSearch | None) -> _Seen:
    seen = _Seen(gathered=None if native is None else Gathered(native))
    for block in content:
        match block.get("type"):
            case "text" if isinstance(block.get("text"), str):
                seen.texts.append(storable(block["text"]))
                seen.searched |= bool(block.get("citations"))
                _gather(block.get("citations"), seen)
            case "thinking" if isinstance(block.get("thinking"), str):
                seen.reasoning.append(storable(block["thinking"]))
            case "thinking" | "redacted_thinking":
                pass
            case "server_tool_use" if block.get("name") == "web_search":
                _searched(seen)
            case "web_search_tool_result":
                _searched(seen)
                seen.worked += isinstance(block.get("content"), list)
                _gather(block.get("content"), seen)
            case str() as kind if "tool" in kind:
                seen.tools = True
            case str() as kind if native is not None and kind not in ("text", "thinking"):
                # What a searching turn holds besides is sent back with it, and says nothing.
                pass
            case _:
                seen.unreadable = True
    return seen


def _searched(seen: _Seen) -> None:
    seen.searched = True
    if seen.gathered is not None:
        # What was said before a search is a commentary.
        seen.texts.clear()


def _gather(items: object, seen: _Seen) -> None:
    """Results of a search, or citations of them: only these hold words of the page, ``cited_text``."""
    for item in items if isinstance(items, list) else []:
        if seen.gathered is not None and isinstance(item, dict):
            seen.gathered.add(item.get("url"), item.get("title"), item.get("cited_text"))


def _outcome(seen: _Seen, finish: object, role: Role, native: NativeSearch | None, status: int) -> Outcome:
    fault = overreach(role, native, status, tools=seen.tools or finish == "tool_use", searched=seen.searched)
    if fault is not None:
        return fault
    if seen.unreadable:
        return Malformed("the reply's content is not text", status)
    browsed = None if seen.gathered is None else seen.gathered.browsed(seen.worked)
    return delivered(STOPS.get(finish, Stop.OTHER) if isinstance(finish, str) else Stop.OTHER, "".join(seen.texts), browsed)
