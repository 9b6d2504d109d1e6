"""Replies of every dialect, as bodies: what the dialects' tests share."""

from dataclasses import dataclass
from typing import Any

from deep20ray_actors.config import Dialect
from tests.actors.support import completion

BASES = dict.fromkeys(Dialect, "/v1") | {Dialect.OPENROUTER: "/api/v1", Dialect.GEMINI: "/v1beta"}
PATHS = {
    Dialect.OPENAI_CHAT: "/v1/chat/completions",
    Dialect.OPENAI_RESPONSES: "/v1/responses",
    Dialect.ANTHROPIC: "/v1/messages",
    Dialect.GEMINI: "/v1beta/models/model-1:generateContent",
    Dialect.OPENROUTER: "/api/v1/chat/completions",
}


@dataclass(frozen=True)
class Said:
    """What a model said, whatever the dialect."""

    text: str | None = "{}"
    finish: str | None = None
    """The dialect's own word; None for its normal one."""
    reasoning: str | None = None


def responses(said: Said) -> dict[str, Any]:
    finish = said.finish or "completed"
    status = finish if finish in ("completed", "failed", "queued", "in_progress", "cancelled") else "incomplete"
    output: list[dict[str, Any]] = [{"type": "reasoning", "id": "r", "summary": []}]
    if said.reasoning:
        output[0]["summary"] = [{"type": "summary_text", "text": said.reasoning}]
    if said.text is not None:
        part = {"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}
        output.append({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]})
    details = {"reason": finish} if status == "incomplete" else None
    always = {"id": "resp_1", "object": "response", "created_at": 1, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {**always, "model": "served", "status": status, "error": None, "incomplete_details": details, "output": output}


def anthropic(said: Said) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": said.text}] if said.text is not None else []
    if said.reasoning:
        content.insert(0, {"type": "thinking", "thinking": said.reasoning, "signature": "s"})
    always = {"id": "msg_1", "type": "message", "role": "assistant", "usage": {"input_tokens": 3, "output_tokens": 2}}
    return {**always, "model": "served", "stop_reason": said.finish or "end_turn", "content": content}


def gemini(said: Said) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": said.text, "thoughtSignature": "cw=="}] if said.text is not None else []
    if said.reasoning:
        parts.insert(0, {"text": said.reasoning, "thought": True})
    content = {"role": "model", **({"parts": parts} if parts else {})}
    return {"modelVersion": "served", "candidates": [{"content": content, "finishReason": said.finish or "STOP", "index": 0}]}


def chat(said: Said) -> dict[str, Any]:
    return completion(said.text, said.finish or "stop", message={"reasoning": said.reasoning} if said.reasoning else {}, model="served")


BODIES = {
    Dialect.OPENAI_CHAT: chat,
    Dialect.OPENAI_RESPONSES: responses,
    Dialect.ANTHROPIC: anthropic,
    Dialect.GEMINI: gemini,
    Dialect.OPENROUTER: chat,
}
