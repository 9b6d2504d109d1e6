"""OpenAI's Responses. Pure: a request out of a typed message, a reading out of a reply.

The body holds no tools but a researching Oracle's web search, no earlier response and no conversation, and asks that nothing be
stored. This protocol has no seed, and its web search no exclusions: what it returns of them is only told afterwards.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from deep20ray.answers import Role
from deep20ray_actors.config import NativeSearch, RouteConfig
from deep20ray_actors.messages import ChatMessage
from deep20ray_actors.outcomes import Malformed, Outcome, Refused, ServerFault
from deep20ray_actors.providers.browsing import Gathered
from deep20ray_actors.providers.delivery import Stop, broken, delivered, opened, overreach, post, search_given
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
        # The type may be left out for OpenAI, but not for every server that speaks this protocol.
        "input": [{"type": "message", **turn} for turn in turns],
        "text": {"format": {"type": "json_schema", "name": name, "strict": True, "schema": schema}},
        "temperature": route.sampling.temperature,
        "top_p": route.sampling.top_p,
        "reasoning": None if route.effort is None else {"effort": route.effort},
        "max_output_tokens": route.max_output_tokens,
        "store": False,
        **_search(search_given(route, message)),
    }
    return post(route.base_url, "/responses", body, seed_sent=False)


def _search(native: NativeSearch | None) -> dict[str, Any]:
    if native is None:
        return {}
    return {
        "tools": [{"type": "web_search"}],
        "tool_choice": "required",
        "max_tool_calls": native.max_searches,
        "include": ["web_search_call.action.sources"],
    }


def read(reply: WireReply, role: Role, now: datetime, native: NativeSearch | None = None) -> Reading:
    """What a reply means for a role, and whether it was given its provider's search."""
    body = opened(reply, now, "Responses")
    if isinstance(body, Reading):
        return body
    status, output = body.get("status"), body.get("output")
    if status in _UNFINISHED:
        return Reading(ServerFault("the provider left the response unfinished; resume later", reply.status), retry=True)
    if not isinstance(output, list) or not all(isinstance(item, dict) for item in output):
        return broken(reply, "the reply holds no list of output items")
    seen = _seen(output, native)
    details = body.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) and status == "incomplete" else None
    finish = reason or status
    return Reading(
        _outcome(seen, finish, role, native, reply.status),
        usage=read_responses_usage(body.get("usage"), body.get("tool_usage"), seen.searches, seen.pages),
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
    gathered: Gathered | None = None
    searches: int = 0
    worked: int = 0
    pages: int = 0
    cited: bool = False
    tools: bool = False
    unreadable: bool = False


def _seen(output: list[dict[str, Any]], native: NativeSearch | None) -> _Seen:
    seen = _Seen(gathered=None if native is None else Gathered(native))
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
                _browse(item, seen)
            case _:
                seen.tools = True
    return seen


def _browse(item: dict[str, Any], seen: _Seen) -> None:
    given = item.get("action")
    action = given if isinstance(given, dict) else {}
    kind = action.get("type", "search")
    seen.searches += kind == "search"
    seen.worked += kind == "search" and item.get("status", "completed") == "completed"
    seen.pages += kind == "open_page"
    seen.cited = True
    if seen.gathered is not None:
        # What was said before a search is a commentary, labelled so or not.
        seen.texts.clear()
        for source in [*_parts(action.get("sources")), action]:
            seen.gathered.add(source.get("url"))


def _message(content: object, seen: _Seen) -> None:
    parts = _parts(content)
    seen.unreadable |= not isinstance(content, list) or len(parts) != len(content)
    for part in parts:
        match part.get("type"):
            case "output_text" if isinstance(part.get("text"), str):
                seen.texts.append(storable(part["text"]))
                seen.cited |= bool(part.get("annotations"))
                if seen.gathered is not None:
                    for annotation in _parts(part.get("annotations")):
                        seen.gathered.add(annotation.get("url"), annotation.get("title"))
            case "refusal":
                seen.refusals.append(storable(str(part.get("refusal") or "")))
            case _:
                seen.unreadable = True


def _parts(parts: object) -> list[dict[str, Any]]:
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _outcome(seen: _Seen, finish: object, role: Role, native: NativeSearch | None, status: int) -> Outcome:
    fault = overreach(role, native, status, tools=seen.tools, searched=seen.cited)
    if fault is not None:
        return fault
    if seen.unreadable:
        return Malformed("the reply's content is not text", status)
    text = "".join(seen.texts)
    if seen.refusals:
        refusal = "".join(seen.refusals)
        return Refused(text if text.strip() else refusal if refusal.strip() else None)
    browsed = None if seen.gathered is None else seen.gathered.browsed(seen.worked)
    return delivered(STOPS.get(finish, Stop.OTHER) if isinstance(finish, str) else Stop.OTHER, text, browsed)
