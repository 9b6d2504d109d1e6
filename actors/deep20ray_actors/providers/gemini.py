"""Gemini's generateContent, v1 and v1beta by ``base_url``. Pure: a request out of a typed message, a reading out of a reply.

The body holds no tools and no cached content. Its speakers take turns, so neighbouring turns of one speaker become parts of one.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote

from deep20ray.answers import Role
from deep20ray_actors.config import RouteConfig
from deep20ray_actors.messages import ChatMessage
from deep20ray_actors.outcomes import Malformed, Outcome, Refused
from deep20ray_actors.providers.delivery import Stop, broken, delivered, opened, overreach, post
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
    optional = {
        "seed": sent,
        "temperature": route.sampling.temperature,
        "topP": route.sampling.top_p,
        "thinkingConfig": _thinking(route.effort),
    }
    body = {
        "systemInstruction": {"parts": [{"text": system["content"]}]},
        "contents": [{"role": _SPEAKERS[speaker], "parts": [{"text": text} for text in texts]} for speaker, texts in alternating(turns)],
        "generationConfig": {
            "responseMimeType": "application/json",
            "responseJsonSchema": schema,
            "maxOutputTokens": route.max_output_tokens,
            **{key: value for key, value in optional.items() if value is not None},
        },
    }
    model = route.model if "/" in route.model else f"models/{route.model}"
    return post(route.base_url, f"/{quote(model, safe='/')}:generateContent", body, seed_sent=sent is not None)


def _thinking(effort: str | None) -> dict[str, Any] | None:
    if effort is None:
        return None
    return {"thinkingBudget": 0} if effort == "none" else {"thinkingLevel": effort.upper()}


def read(reply: WireReply, role: Role, now: datetime) -> Reading:
    """What a reply means for a role."""
    body = opened(reply, now, "generateContent")
    if isinstance(body, Reading):
        return body
    candidates, feedback = body.get("candidates"), body.get("promptFeedback")
    usage, model = read_gemini_usage(body.get("usageMetadata")), label(body.get("modelVersion"))
    blocked = label(feedback.get("blockReason")) if isinstance(feedback, dict) else None
    if not candidates and blocked:
        return Reading(Refused(None), usage=usage, served_model=model, finish_reason=blocked)
    candidate = candidates[0] if isinstance(candidates, list) and candidates else None
    if not isinstance(candidate, dict):
        return broken(reply, "the reply holds no candidate")
    finish, seen = candidate.get("finishReason"), _seen(candidate)
    return Reading(
        _outcome(seen, finish, role, reply.status),
        usage=usage,
        served_model=model,
        finish_reason=label(finish),
        reasoning="".join(seen.reasoning) or None,
    )


@dataclass(slots=True)
class _Seen:
    """What a candidate held."""

    texts: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    searched: bool = False
    tools: bool = False
    unreadable: bool = False


def _seen(candidate: dict[str, Any]) -> _Seen:
    # citationMetadata is no search: it names what the model recites from memory.
    grounding = candidate.get("groundingMetadata")
    seen = _Seen(searched=isinstance(grounding, dict) and any(grounding.get(key) for key in ("webSearchQueries", "groundingChunks")))
    seen.tools = bool(candidate.get("urlContextMetadata"))
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    # A reply that thought until its limit has content without parts, and a filtered one may have no content at all.
    seen.unreadable = not (content is None or isinstance(content, dict)) or not (parts is None or isinstance(parts, list))
    for part in parts if isinstance(parts, list) else []:
        _part(part, seen)
    return seen


def _part(part: object, seen: _Seen) -> None:
    if not isinstance(part, dict):
        seen.unreadable = True
    elif any(key in part for key in _TOOL_PARTS):
        seen.tools = True
    elif isinstance(part.get("text"), str):
        (seen.reasoning if part.get("thought") is True else seen.texts).append(storable(part["text"]))
    elif not part.keys() <= {"thought", "thoughtSignature"}:
        seen.unreadable = True


def _outcome(seen: _Seen, finish: object, role: Role, status: int) -> Outcome:
    fault = overreach(role, status, tools=seen.tools or finish in TOOL_STOPS, searched=seen.searched)
    if fault is not None:
        return fault
    if seen.unreadable:
        return Malformed("the reply's content is not text", status)
    return delivered(STOPS.get(finish, Stop.OTHER) if isinstance(finish, str) else Stop.OTHER, "".join(seen.texts))
