"""Answers as the recorded roles did: ``python -m tests.replay.server DATA [SALT]``. Its own process, loopback only.

Each role of each run has a base URL; within it the sampling seed in the request body alone tells trial and turn apart. Searches are
answered by their query. It refuses to start where two turns of one base URL share a seed.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiohttp import web

import deep20ray_cohorts
from deep20ray.answers import Role
from deep20ray.editions import EDITION_1_0
from deep20ray.seeds import sampling_seed, trial_id
from deep20ray.subjects import protocol_version
from tests.replay.recording import RecordingError, Run, Step, read

COHORT = "core-1.0"
PAGE = "Page {} about {}. There is something to judge on page {}."
QUOTE = "something to judge on page {}"
PAGES = 3

Replies = dict[tuple[str, str], dict[int, tuple[str, str]]]
"""(run, role) -> seed -> (text, finish reason)"""


def replies_of(runs: dict[str, Run]) -> Replies:
    """Every recorded reply by the seed that will ask for it.

    Raises:
        RecordingError: two turns of one base URL share a seed.
    """
    protocol = protocol_version(EDITION_1_0, deep20ray_cohorts.load(COHORT))
    replies: Replies = {}
    for run in runs.values():
        for (subject, round_), game in run.games.items():
            trial = trial_id(protocol, run.seed, subject, round_)
            for step in game.steps:
                for role, text, finish in _said(step):
                    seed = sampling_seed(run.seed, trial, Role(role), step.turn)
                    known = replies.setdefault((run.id, role), {})
                    if seed in known:
                        raise RecordingError(f"run {run.id}, {role}: two turns share the seed {seed}; give another --salt")
                    known[seed] = (text, finish)
    return replies


def _said(step: Step) -> Iterator[tuple[str, str, str]]:
    """(role, text, finish reason) of everyone who speaks in a step."""
    yield "guesser", step.text, step.finish
    for role, (token, basis) in step.roles.items():
        said: dict[str, Any] = {"statement": "as recorded"}
        if role == "validator":
            said |= {"verdict": token}
        else:
            said |= {"answer": token, "basis": basis}
        if role == "oracle":
            said |= {"evidence": [{"excerpt": QUOTE.format(page), "result": page} for page in range(1, min(step.evidence, PAGES) + 1)]}
        yield role, json.dumps(said), "stop"


def application(replies: Replies) -> web.Application:
    """The server's application."""

    async def chat(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        key = (request.match_info["run"], request.match_info["role"])
        found = replies.get(key, {}).get(body.get("seed"))
        if found is None:
            return web.json_response(
                {"error": {"message": f"nothing was recorded for {key} at this seed", "code": "not_recorded"}}, status=400
            )
        text, finish = found
        choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return web.json_response({"object": "chat.completion", "model": f"{key[1]}-recorded", "choices": [choice], "usage": usage})

    async def search(request: web.Request) -> web.StreamResponse:
        query = request.query["q"]
        pages = [
            {"url": f"https://example.org/recorded/{page}", "title": f"Recorded {page}", "content": PAGE.format(page, query, page)}
            for page in range(1, PAGES + 1)
        ]
        return web.json_response({"query": query, "results": pages})

    app = web.Application(client_max_size=4 * 1024 * 1024)
    app.router.add_post("/{run}/{role}/v1/chat/completions", chat)
    app.router.add_get("/{run}/search", search)
    return app


async def serve(folder: Path, salt: str) -> None:
    """Serves until standard input ends."""
    runner = web.AppRunner(application(replies_of(read(folder, salt))), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
    print(json.dumps({"url": f"http://127.0.0.1:{runner.addresses[0][1]}"}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    try:
        asyncio.run(serve(Path(sys.argv[1]), *(sys.argv[2:] or ["replay"])))
    except RecordingError as error:
        print(f"replay server: {error}", file=sys.stderr)
        sys.exit(2)
