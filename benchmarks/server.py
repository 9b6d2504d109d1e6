"""A provider with a fixed latency, for measurements: ``python -m benchmarks.server LATENCY_SECONDS QUESTIONS [RATE BUCKET TELLS]``.

Every Guesser asks QUESTIONS distinct questions and then guesses right; everyone answers NO, so that each question costs a search and
three model calls. With RATE it takes that many model calls a second, from a bucket of BUCKET calls that refills evenly; what is too many
gets 429 and a Retry-After in whole seconds, at once. TELLS (0 or 1): replies say the limit in their headers. ``GET /stats`` gives what was
served, what was refused and the seconds of CPU, and ``POST /reset`` begins anew.
"""

import asyncio
import json
import math
import sys
import time

from aiohttp import web


def reply(role: str, body: bytes, questions: int) -> str:
    """What one role says."""
    match role:
        case "guesser":
            asked = body.count(b'"assistant"')
            if asked < questions:
                return json.dumps({"action": "ASK", "description": None, "name": None, "question": f"Is it number {asked}?"})
            return json.dumps({"action": "GUESS", "description": "it", "name": "it", "question": None})
        case "validator":
            return json.dumps({"statement": "", "verdict": "YES"})
        case "oracle":
            return json.dumps(
                {"answer": "NO", "basis": "evidence", "evidence": [{"excerpt": "Nothing much.", "result": 1}], "statement": ""}
            )
        case _:
            return json.dumps({"answer": "NO", "basis": "evidence", "statement": ""})


class Bucket:
    """A limit of requests; ``rate`` a second."""

    def __init__(self, rate: float, size: float, *, tells: bool) -> None:
        self.rate, self.size, self.tells = rate, size, tells
        self.reset()

    def reset(self) -> None:
        """Full, and nothing counted."""
        self.level, self.at = self.size, time.monotonic()
        self.served = self.refused = 0

    def take(self) -> float:
        """Takes one. Seconds until there is one; 0 if there was."""
        now = time.monotonic()
        self.level, self.at = min(self.size, self.level + (now - self.at) * self.rate), now
        if self.level >= 1:
            self.level -= 1
            self.served += 1
            return 0.0
        self.refused += 1
        return (1 - self.level) / self.rate

    @property
    def headers(self) -> dict[str, str]:
        """As a reply says it."""
        if not self.tells:
            return {}
        limit, left = round(self.rate * 60), int(self.level)
        return {"x-ratelimit-limit-requests": f"{limit}", "x-ratelimit-remaining-requests": f"{left}", "x-ratelimit-reset-requests": "1s"}


async def serve(latency: float, questions: int, bucket: Bucket) -> None:
    """Serves until standard input ends."""

    async def chat(request: web.Request) -> web.Response:
        body = await request.read()
        if wait := bucket.take():
            error = {"error": {"message": "too many", "code": "rate_limit_exceeded"}}
            return web.json_response(error, status=429, headers={"retry-after": str(math.ceil(wait))})
        headers = bucket.headers
        await asyncio.sleep(latency)
        role = request.match_info["role"]
        text = reply(json.loads(body)["model"] if role == "any" else role, body, questions)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        return web.json_response({"model": "fixed", "choices": [choice], "usage": usage}, headers=headers)

    async def search(_: web.Request) -> web.Response:
        await asyncio.sleep(latency)
        return web.json_response({"results": [{"url": "https://example.org/", "title": "Page", "content": "Nothing much."}]})

    async def stats(_: web.Request) -> web.Response:
        return web.json_response({"served": bucket.served, "refused": bucket.refused, "cpu": time.process_time()})

    async def reset(_: web.Request) -> web.Response:
        bucket.reset()
        return web.json_response({})

    app = web.Application()
    app.router.add_get("/stats", stats)
    app.router.add_post("/reset", reset)
    app.router.add_post("/{role}/v1/chat/completions", chat)
    app.router.add_get("/search", search)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
    host, port = runner.addresses[0][:2]
    print(json.dumps({"url": f"http://{host}:{port}"}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    given = sys.argv[3:6] or ["inf", "inf", "0"]
    asyncio.run(serve(float(sys.argv[1]), int(sys.argv[2]), Bucket(float(given[0]), float(given[1]), tells=given[2] == "1")))
