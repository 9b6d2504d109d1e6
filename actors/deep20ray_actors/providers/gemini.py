"""Gemini's generateContent, v1 and v1beta by ``base_url``. Pure: a request out of a typed message, a reading out of a reply.

The body holds no cached content and no tools but a researching Oracle's search. Its speakers take turns, so neighbouring turns of one
speaker become parts of one. A request with the search asks for no schema and no JSON: models before the third generation refuse the
two together, later ones have it as a preview. The search has neither a ceiling nor exclusions here.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote

from deep20ray.answers import Role
from deep20ray_actors.config import NativeSearch, RouteConfig
from deep20ray_actors.messages import ChatMessage
from deep20ray_actors.outcomes import Malformed, Outcome, Refused
from deep20ray_actors.providers.browsing import Gathered
from deep20ray_actors.providers.delivery import Stop, broken, delivered, opened, overreach, post, search_given
from deep20ray_actors.providers.jsontext import label, storable
from deep20ray_actors.providers.usage import read_gemini_usage
from deep20ray_actors.providers.wire import Reading, WireReply, WireRequest
from deep20ray_actors.render import alternating, answer_schema, chat_messages

_FILTERS = ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR")
STOPS = {"STOP": Stop.NORMAL, "MAX_TOKENS": Stop.LENGTH, **dict.fromkeys(_FILTERS, Stop.CUT)}
"""Finish reasons; any other is Stop.OTHER, but for tools, which are faults."""
TOOL_STOPS = ("UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_FUNCTION_CALL")
_SPEAKERS = {"user": "user", "assistant": "model"}
_TOOL_PARTS = ("functionCall", "functionResponse", "executableCode", "codeExecutionResult", "toolCall", "toolResponse")


def authorize(_route: RouteConfig, key: str) -> tuple[str, str]:
    """The header of a key."""
    return "x-goog-api-key", key


def build(route: RouteConfig, message: ChatMessage, seed: int | None) -> WireRequest:
    """The request of one call. Equal arguments give equal bytes.

    Raises:
        RouteRefused: the route's prompt can't render the message.
    """
    _, schema = answer_schema(message, route.tokens)
    system, *turns = chat_messages(message, route.prompt)
    sent = seed if route.send_seed else None
    native = search_given(route, message)
    form = {"responseMimeType": "application/json", "responseJsonSchema": schema} if native is None else {}
    optional = {
        "seed": sent,
        "temperature": route.sampling.temperature,
        "topP": route.sampling.top_p,
        "thinkingConfig": _thinking(route.effort),
    }
    body: dict[str, Any] = {
        "systemInstruction": {"parts": [{"text": system["content"]}]},
        "contents": [{"role": _SPEAKERS[speaker], "parts": [{"text": text} for text in texts]} for speaker, texts in alternating(turns)],
        "generationConfig": {
            **form,
            "maxOutputTokens": route.max_output_tokens,
            **{key: value for key, value in optional.items() if value is not None},
        },
        "tools": None if native is None else [{"googleSearch": {}}],
    }
    model = route.model if "/" in route.model else f"models/{route.model}"
    return post(route.base_url, f"/{quote(model, safe='/')}:generateContent", body, seed_sent=sent is not None)


def _thinking(effort: str | None) -> dict[str, Any] | None:
    if effort is None:
        return None
    return {"thinkingBudget": 0} if effort == "none" else {"thinkingLevel": effort.upper()}


def read(reply: WireReply, role: Role, now: datetime, native: NativeSearch | None = None) -> Reading:
    """What a reply means for a role, and whether it was given its provider's search."""
    body = opened(reply, now, "generateContent")
    if isinstance(body, Reading):
        return body
    candidates, feedback = body.get("candidates"), body.get("promptFeedback")
    model = label(body.get("modelVersion"))
    blocked = label(feedback.get("blockReason")) if isinstance(feedback, dict) else None
    if not candidates and blocked:
        return Reading(Refused(None), usage=read_gemini_usage(body.get("usageMetadata")), served_model=model, finish_reason=blocked)
    candidate = candidates[0] if isinstance(candidates, list) and candidates else None
    if not isinstance(candidate, dict):
        return broken(reply, "the reply holds no candidate")
    finish, seen = candidate.get("finishReason"), _seen(candidate, native)
    return Reading(
        _outcome(seen, finish, role, native, reply.status),
        usage=read_gemini_usage(body.get("usageMetadata"), seen.searches),
        served_model=model,
        finish_reason=label(finish),
        reasoning="".join(seen.reasoning) or None,
    )


@dataclass(slots=True)
class _Seen:
    """What a candidate held."""

    texts: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    gathered: Gathered | None = None
    searches: int = 0
    searched: bool = False
    tools: bool = False
    unreadable: bool = False


def _seen(candidate: dict[str, Any], native: NativeSearch | None) -> _Seen:
    seen = _Seen(gathered=None if native is None else Gathered(native))
    # citationMetadata is no search: it names what the model recites from memory.
    grounding = candidate.get("groundingMetadata")
    if isinstance(grounding, dict):
        _grounding(grounding, seen)
    seen.tools = bool(candidate.get("urlContextMetadata"))
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    # A reply that thought until its limit has content without parts, and a filtered one may have no content at all.
    seen.unreadable = not (content is None or isinstance(content, dict)) or not (parts is None or isinstance(parts, list))
    for part in parts if isinstance(parts, list) else []:
        _part(part, seen)
    return seen


def _grounding(grounding: dict[str, Any], seen: _Seen) -> None:
    queries, chunks = (value if isinstance(value, list) else [] for value in map(grounding.get, ("webSearchQueries", "groundingChunks")))
    seen.searched = any(grounding.get(key) for key in ("webSearchQueries", "groundingChunks"))
    seen.searches = max(len(queries), int(bool(chunks)))
    for chunk in chunks:
        web = chunk.get("web") if isinstance(chunk, dict) else None
        if seen.gathered is None or not isinstance(web, dict):
            continue
        # The address is a redirect, so that only the names beside it can say whose page it is.
        if not seen.gathered.named((web.get("domain"), web.get("title"))):
            seen.gathered.add(web.get("uri"), web.get("title"))


def _part(part: object, seen: _Seen) -> None:
    if not isinstance(part, dict):
        seen.unreadable = True
    elif any(key in part for key in _TOOL_PARTS):
        seen.tools = True
    elif isinstance(part.get("text"), str):
        (seen.reasoning if part.get("thought") is True else seen.texts).append(storable(part["text"]))
    elif not part.keys() <= {"thought", "thoughtSignature"}:
        seen.unreadable = True


def _outcome(seen: _Seen, finish: object, role: Role, native: NativeSearch | None, status: int) -> Outcome:
    stopped = finish in TOOL_STOPS and not (native is not None and finish == "TOO_MANY_TOOL_CALLS")
    fault = overreach(role, native, status, tools=seen.tools or stopped, searched=seen.searched)
    if fault is not None:
        return fault
    if seen.unreadable:
        return Malformed("the reply's content is not text", status)
    browsed = None if seen.gathered is None else seen.gathered.browsed(seen.searches)
    return delivered(STOPS.get(finish, Stop.OTHER) if isinstance(finish, str) else Stop.OTHER, "".join(seen.texts), browsed)
