"""A provider with a fixed latency, for measurements: ``python -m benchmarks.server LATENCY_SECONDS QUESTIONS``.

Every Guesser asks QUESTIONS distinct questions and then guesses right; everyone answers NO, so that each question costs a search and
three model calls.
"""

import asyncio
import json
import sys

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


async def serve(latency: float, questions: int) -> None:
    """Serves until standard input ends."""

    async def chat(request: web.Request) -> web.Response:
        body = await request.read()
        await asyncio.sleep(latency)
        text = reply(request.match_info["role"], body, questions)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        return web.json_response({"model": "fixed", "choices": [choice], "usage": usage})

    async def search(_: web.Request) -> web.Response:
        await asyncio.sleep(latency)
        return web.json_response({"results": [{"url": "https://example.org/", "title": "Page", "content": "Nothing much."}]})

    app = web.Application()
    app.router.add_post("/{role}/v1/chat/completions", chat)
    app.router.add_get("/search", search)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
    host, port = runner.addresses[0][:2]
    print(json.dumps({"url": f"http://{host}:{port}"}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]), int(sys.argv[2])))
