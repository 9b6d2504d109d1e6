"""A provider and a search engine that follow a script, as a process of their own: ``python -m tests.cluster.scripted WORLD.json LOG.jsonl [PORT]``.

Each role has its own base URL (``/ROLE/v1``). Every request is logged as it came. The world says what each role answers; a reply
is a function of the request alone, faults of how often that request was seen. The world's file is read anew for each request, so
that a test may mend what it broke.
"""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from aiohttp import web

GAME: list[dict[str, Any]] = [
    {"action": "ASK", "description": None, "name": None, "question": "Is it alive?"},
    {"action": "ASK", "description": None, "name": None, "question": "Is it man-made?"},
    {"action": "GUESS", "description": "a toy", "name": "kite", "question": None},
]


class Script:
    """One world's answers."""

    def __init__(self, world: Path, log: Path) -> None:
        self._world = world
        self.log = log.open("a", encoding="utf-8")
        self.seen: Counter[str] = Counter()

    @property
    def world(self) -> dict[str, Any]:
        world: dict[str, Any] = json.loads(self._world.read_text())
        return world

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """A chat completion for one role."""
        role, body = request.match_info["role"], await request.read()
        self._write(role, request, body)
        self.seen[role + body.decode()] += 1
        fault = self.world.get("faults", {}).get(role)
        if fault and self.seen[role + body.decode()] <= fault.get("times", 1_000_000):
            return _fault(request, fault)
        await asyncio.sleep(self.world.get("latency", {}).get(role, 0))
        content = self._say(role, json.loads(body)["messages"])
        text = content if isinstance(content, str) else json.dumps(content)
        usage = {"prompt_tokens": len(body) // 4, "completion_tokens": len(text) // 4, "total_tokens": (len(body) // 4) + (len(text) // 4)}
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return web.json_response({"id": "x", "object": "chat.completion", "model": f"{role}-1", "choices": [choice], "usage": usage})

    async def search(self, request: web.Request) -> web.StreamResponse:
        """A SearXNG answer."""
        self._write("search", request, b"")
        page = {"url": "https://example.org/page", "title": "Page", "content": self.world.get("page", "It is known for many things.")}
        return web.json_response({"query": request.query["q"], "results": [page]})

    def _say(self, role: str, messages: list[dict[str, str]]) -> Any:
        said = self.world.get("say", {})
        if role == "guesser":
            turn = sum(message["role"] == "user" for message in messages[1:]) - 1
            return said.get("guesser", GAME)[turn]
        data = json.loads(messages[1]["content"])
        if role == "validator":
            return {"statement": said.get("statement", ""), "verdict": said.get("validator", "YES")}
        token = said.get(role, "NO")
        if isinstance(token, dict):
            token = token.get(data["question"], "NO")
        answer = {"answer": token, "basis": said.get("basis", "evidence"), "statement": said.get("statement", "")}
        if role == "oracle":
            answer["evidence"] = said.get("evidence", [{"excerpt": "It is known for many things.", "result": 1}])
        return answer

    def _write(self, role: str, request: web.Request, body: bytes) -> None:
        # Host and credentials are what two worlds may differ in.
        headers = sorted((name, value) for name, value in request.headers.items() if name.lower() not in ("host", "authorization"))
        line = {"role": role, "method": request.method, "url": str(request.rel_url), "headers": headers, "body": body.decode()}
        self.log.write(json.dumps(line) + "\n")
        self.log.flush()


def _fault(request: web.Request, fault: dict[str, Any]) -> web.StreamResponse:
    if fault.get("close"):
        assert request.transport is not None
        request.transport.abort()
    if "html" in fault:
        return web.Response(text=fault["html"], content_type="text/html", status=fault.get("status", 200))
    error = fault.get("error", {"message": "scripted"})
    return web.json_response({"error": error}, status=fault.get("status", 500), headers=fault.get("headers", {}))


async def serve(world: Path, log: Path, port: int = 0) -> None:
    """Serves until standard input ends."""
    script = Script(world, log)
    app = web.Application()
    app.router.add_post("/{role}/v1/chat/completions", script.chat)
    app.router.add_get("/search", script.search)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    host, port = runner.addresses[0][:2]
    print(json.dumps({"url": f"http://{host}:{port}"}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] else 0))
