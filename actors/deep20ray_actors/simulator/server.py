"""The simulator over HTTP: chat completions with usage and rate-limit headers, SearXNG search, and faults on demand."""

import asyncio
import hashlib
import json
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from deep20ray_actors.simulator import players, world

_MAX_BODY = 4 * 1024 * 1024
FAULTS = ("429", "500", "503", "no choices", "error in 200", "closed")


@dataclass(frozen=True, slots=True)
class Conditions:
    """How the simulated provider behaves, besides what it says."""

    latency_seconds: float = 0.0
    requests_per_minute: int | None = None
    fault_rate: float = 0.0
    """The share of bodies that fail when they are first seen, and by half as much when seen again; the third time always works."""


class Limiter:
    """A sliding minute of accepted requests. Seconds come from ``clock``."""

    def __init__(self, per_minute: int | None, clock: Callable[[], float]) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._accepted: deque[float] = deque()

    def admit(self) -> float:
        """Zero if a request may pass, and then it is counted; else the seconds until one may."""
        if self.per_minute is None:
            return 0.0
        now = self._clock()
        while self._accepted and self._accepted[0] <= now - 60:
            self._accepted.popleft()
        if len(self._accepted) >= self.per_minute:
            return self._accepted[0] + 60 - now
        self._accepted.append(now)
        return 0.0

    @property
    def headers(self) -> dict[str, str]:
        """Rate-limit headers, where there is a limit."""
        if self.per_minute is None:
            return {}
        left = self.per_minute - len(self._accepted)
        reset = 0.0 if not self._accepted else max(0.0, self._accepted[0] + 60 - self._clock())
        return {
            "x-ratelimit-limit-requests": str(self.per_minute),
            "x-ratelimit-remaining-requests": str(left),
            "x-ratelimit-reset-requests": f"{reset:.3f}s",
        }


def fault_of(body: bytes, seen: int, rate: float) -> str | None:
    """The fault that a body meets when it was seen that often before, or None."""
    if rate <= 0 or seen >= 2:
        return None
    digest = hashlib.sha256(body).hexdigest()
    if world.chance(digest, "fault", seen) >= rate / (1 + seen):
        return None
    return FAULTS[int(world.chance(digest, "kind", seen) * len(FAULTS))]


def completion(body: bytes) -> dict[str, Any]:
    """The chat completion of a request body.

    Raises:
        ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError: a body that is no chat request to one of the models.
    """
    request = json.loads(body)
    model, messages = request["model"], request["messages"]
    said = players.reply(model, messages, _tokens(request), request.get("seed"))
    spent = len(said.reasoning or "") // 4
    written = len(said.text or "") // 4 + 1
    read = sum(len(message["content"]) for message in messages) // 4
    message = {"role": "assistant", "content": said.text}
    if said.reasoning is not None:
        message["reasoning_content"] = said.reasoning
    return {
        "id": f"chatcmpl-{hashlib.sha256(body).hexdigest()[:24]}",
        "object": "chat.completion",
        "created": 0,
        "model": f"{model}-1",
        "system_fingerprint": "simulated",
        "choices": [{"index": 0, "message": message, "finish_reason": said.finish}],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written + spent,
            "total_tokens": read + written + spent,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": spent},
        },
    }


class _Provider:
    """The handlers and what they remember: accepted requests, and how often each body was seen."""

    def __init__(self, conditions: Conditions, clock: Callable[[], float]) -> None:
        self._conditions = conditions
        self._limiter = Limiter(conditions.requests_per_minute, clock)
        self._seen: Counter[bytes] = Counter()

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/chat/completions"""
        body = await request.read()
        if wait := self._limiter.admit():
            headers = {"Retry-After": str(int(wait) + 1), "retry-after-ms": str(int(wait * 1000) + 1), **self._limiter.headers}
            return _error(429, "rate limit reached for requests", headers)
        fault = self._fault(body)
        await self._wait()
        return self._complete(body) if fault is None else _faulty(request, fault)

    async def search(self, request: web.Request) -> web.StreamResponse:
        """GET /search"""
        query = request.query.get("q", "")
        if request.query.get("format") != "json" or not query.strip():
            return _error(400, "give q and format=json", {})
        await self._wait()
        pages = [{"url": page.url, "title": page.title, "content": page.text, "engine": "embedded"} for page in world.search(query)]
        return web.json_response({"query": query, "number_of_results": len(pages), "results": pages, "unresponsive_engines": []})

    def _complete(self, body: bytes) -> web.Response:
        try:
            return web.json_response(completion(body), headers=self._limiter.headers)
        except KeyError as error:
            return _error(404, f"there is no model or field {error}", {})
        except (ValueError, TypeError, IndexError, AttributeError, RecursionError) as error:
            return _error(400, f"not a request that can be played: {error}", {})

    def _fault(self, body: bytes) -> str | None:
        if self._conditions.fault_rate <= 0:
            return None
        key = hashlib.sha256(body).digest()
        self._seen[key] += 1
        return fault_of(body, self._seen[key] - 1, self._conditions.fault_rate)

    async def _wait(self) -> None:
        if self._conditions.latency_seconds:
            await asyncio.sleep(self._conditions.latency_seconds)


async def _models(_: web.Request) -> web.StreamResponse:
    names = (*players.STYLES, *players.ADJUDICATORS)
    return web.json_response({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})


async def _health(_: web.Request) -> web.StreamResponse:
    return web.json_response({"status": "ok"})


def application(conditions: Conditions, clock: Callable[[], float]) -> web.Application:
    """The simulator's application."""
    provider = _Provider(conditions, clock)
    app = web.Application(client_max_size=_MAX_BODY)
    app.router.add_post("/v1/chat/completions", provider.chat)
    app.router.add_get("/search", provider.search)
    app.router.add_get("/v1/models", _models)
    app.router.add_get("/healthz", _health)
    return app


def _tokens(request: dict[str, Any]) -> list[str]:
    """The answers that the schema allows, or every token without one."""
    schema = request.get("response_format", {}).get("json_schema", {}).get("schema", {})
    allowed = schema.get("properties", {}).get("answer", {}).get("enum")
    return list(allowed) if allowed else ["YES", "RATHER_YES", "RATHER_NO", "NO", "UNKNOWN"]


def _error(status: int, message: str, headers: dict[str, str]) -> web.Response:
    return web.json_response({"error": {"message": message, "type": "simulated", "code": status}}, status=status, headers=headers)


def _faulty(request: web.Request, fault: str) -> web.StreamResponse:
    match fault:
        case "429":
            return _error(429, "too many requests", {"Retry-After": "0", "retry-after-ms": "50"})
        case "500" | "503":
            return _error(int(fault), "the simulated provider failed", {})
        case "no choices":
            return web.json_response({"object": "chat.completion", "model": "simulated", "choices": None})
        case "error in 200":
            return web.json_response({"error": {"message": "the simulated upstream failed", "code": 502}})
        case _:
            if request.transport is not None:
                request.transport.close()
            return web.Response()
