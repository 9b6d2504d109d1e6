"""A provider and a search engine that play whole worlds, over real HTTP, in the test's own process.

A world says all that can happen in one trial. Several trials may share a provider: a Guesser's request is known by its category,
any other by its subject. Every request is kept as the bytes that came, but for Host and Authorization, which are kept apart.
"""

import asyncio
import json
import socket
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from aiohttp import web

from deep20ray.subjects import TrustedSubject

APART = (b"host", b"authorization", b"x-subscription-token")


@dataclass(frozen=True)
class World:
    """What happens in one trial. ``call`` stands for a role's name, "queries" or "search"."""

    category: str
    subject: TrustedSubject
    guesser: tuple[str, ...]
    """Its replies, by turn."""
    tokens: Mapping[str, tuple[str, ...]]
    """By question: what Oracle, Reviewer and Judge answer."""
    verdicts: Mapping[str, str]
    """By the guess's name."""
    pages: tuple[tuple[str, str, str], ...]
    """What a search finds: address, title, text."""
    cited: tuple[tuple[int, str], ...] = ()
    """What the Oracle cites: result, excerpt."""
    basis: Mapping[str, str] = field(default_factory=dict)
    statement: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By call: what its first wire tries get instead of a reply, for each request: "429", "500", "close" or "garbage"."""
    unread: Mapping[str, int] = field(default_factory=dict)
    """By call: how many delivered replies to each request can't be read before one can."""
    latency: Mapping[str, float] = field(default_factory=dict)
    usage: Mapping[str, Any] | None = None
    reuse: str = "off"
    """The sweep's reuse policy."""
    rounds: int = 1
    """How often the game is played, one trial after the other."""
    mark: str = "1"
    """In the reply's id, fingerprint, cookie and headers, and in the served model's name."""


@dataclass(frozen=True)
class Seen:
    """One request. ``turn`` is the one that its trial was at; ``wire`` is method, target, headers in order and body."""

    category: str
    call: str
    turn: int
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def wire(self) -> tuple[Any, ...]:
        return self.method, self.target, self.headers, self.body


@cache
def pages_port() -> int:
    """The port of the pages, the same in all worlds of a process, as their addresses are part of what an Oracle sees."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def page_address(path: str) -> str:
    """A page's address. The name leads to this machine only for who is told so."""
    return f"http://example.org:{pages_port()}/{path}"


class Provider:
    """Plays the worlds. ``wait`` lets a number of seconds pass."""

    def __init__(self, worlds: Sequence[World], wait: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self.worlds = worlds
        self.seen: list[Seen] = []
        self.authorizations: list[tuple[str, str | None]] = []
        """Each request's call and the header that its key is in."""
        self._wait = wait
        self._turns: Counter[str] = Counter()
        self._tries: Counter[tuple[Any, ...]] = Counter()

    @contextmanager
    def in_a_thread(self) -> Iterator[str]:
        """Serves from a thread of its own; the address."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        runner, url = asyncio.run_coroutine_threadsafe(self.start(), loop).result()
        try:
            yield url
        finally:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def start(self, *, pages: bool = False) -> tuple[web.AppRunner, str]:
        """Serves in the running loop until the runner is cleaned up; with ``pages`` the worlds' pages too, at their own port."""
        app = web.Application()
        app.router.add_post("/{role}/v1/chat/completions", self._chat)
        app.router.add_get("/search", self._search)
        app.router.add_get("/web/search", self._search)
        app.router.add_get("/page/{page}", self._page)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        if pages:
            await web.TCPSite(runner, "127.0.0.1", pages_port()).start()
        return runner, "http://{}:{}".format(*runner.addresses[0][:2])

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        messages = json.loads(body)["messages"]
        role = request.match_info["role"]
        queries = role == "oracle" and "target" in json.loads(messages[1]["content"])
        return await self._reply(request, "queries" if queries else role, body, messages)

    async def _search(self, request: web.Request) -> web.StreamResponse:
        return await self._reply(request, "search", b"", [{"content": request.query["q"]}])

    async def _page(self, request: web.Request) -> web.StreamResponse:
        world = self.worlds[0]
        self.seen.append(_seen(request, world.category, "pages", self._turns[world.category], b""))
        self._keep_key("pages", request)
        text = next(text for url, _, text in world.pages if url.endswith(request.path))
        headers = {"set-cookie": f"session={world.mark}", "etag": f'"{world.mark}"'}
        return web.Response(text=f"{text}\n\nAnd there is more on the page itself.", content_type="text/plain", headers=headers)

    async def _reply(self, request: web.Request, call: str, body: bytes, messages: list[dict[str, str]]) -> web.StreamResponse:
        world = self._world(call, messages)
        if call == "guesser":
            self._turns[world.category] = sum(message["role"] == "user" for message in messages[1:])
        seen = _seen(request, world.category, call, self._turns[world.category], body)
        self.seen.append(seen)
        self._keep_key(call, request)
        # Not the headers: the reply must not depend on a boundary that a test has opened there.
        asked = (call, seen.turn, seen.target, body)
        self._tries[asked] += 1
        await self._wait(world.latency.get(call, 0.0))
        faults, number = world.faults.get(call, ()), self._tries[asked]
        if number <= len(faults):
            return _fault(request, faults[number - 1])
        headers = {"set-cookie": f"session={world.mark}", "x-request-id": world.mark}
        if call == "search":
            results = [{"url": url, "title": title, "content": text, "description": text} for url, title, text in world.pages]
            return web.json_response({"results": results, "type": "search", "web": {"results": results}}, headers=headers)
        readable = number - len(faults) > world.unread.get(call, 0)
        content = _say(world, call, messages) if readable else "I can't put it so."
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
        reply = {"id": world.mark, "model": f"{call}-{world.mark}", "system_fingerprint": world.mark, "choices": [choice]}
        return web.json_response({**reply, **({"usage": world.usage} if world.usage else {})}, headers=headers)

    def _keep_key(self, call: str, request: web.Request) -> None:
        self.authorizations.append((call, request.headers.get("Authorization") or request.headers.get("X-Subscription-Token")))

    def _world(self, call: str, messages: list[dict[str, str]]) -> World:
        if len(self.worlds) == 1:
            return self.worlds[0]
        if call == "guesser":
            return next(world for world in self.worlds if messages[1]["content"].startswith(f"Category: {world.category}\n"))
        if call == "search":
            return next(world for world in self.worlds if messages[0]["content"].startswith(world.subject.canonical_name + " "))
        name = json.loads(messages[1]["content"])["subject"]["canonical_name"]
        return next(world for world in self.worlds if world.subject.canonical_name == name)


def _seen(request: web.Request, category: str, call: str, turn: int, body: bytes) -> Seen:
    headers = tuple((name.decode(), value.decode()) for name, value in request.raw_headers if name.lower() not in APART)
    return Seen(category, call, turn, request.method, request.raw_path, headers, body)


def _fault(request: web.Request, kind: str) -> web.StreamResponse:
    if kind == "close":
        assert request.transport is not None
        request.transport.abort()
    if kind == "garbage":
        return web.Response(text="<html>Welcome</html>", content_type="text/html")
    return web.json_response({"error": {"message": "scripted"}}, status=500 if kind == "close" else int(kind))


def _say(world: World, call: str, messages: list[dict[str, str]]) -> str:
    if call == "guesser":
        return world.guesser[sum(message["role"] == "user" for message in messages[1:]) - 1]
    data = json.loads(messages[1]["content"])
    if call == "queries":
        name = data["subject"]["canonical_name"]
        return json.dumps({"queries": [f"{name} facts", f"{name} {data['question']}"[:100]]})
    said: dict[str, Any] = {"statement": world.statement.get(call, "")}
    if call == "validator":
        return json.dumps(said | {"verdict": world.verdicts.get(data["guess"]["name"], "NO")})
    question = next(known for known in world.tokens if data["question"].startswith(known))
    said |= {"answer": world.tokens[question][("oracle", "reviewer", "judge").index(call)], "basis": world.basis.get(call, "evidence")}
    if call == "oracle":
        said["evidence"] = [{"excerpt": excerpt, "result": result} for result, excerpt in world.cited]
    return json.dumps(said)
