"""How much longer a sweep takes than its providers make it: ``python -m benchmarks.overhead [--trials N] [--questions Q] [--latency L]``.

Side by side against one server of fixed latency: the bare calls of the same games (plain asyncio and aiohttp, no isolation, no journal),
and the whole system (Ray actors, leases, journal). Ratio = wall time of play / ideal, ideal = calls in a row x latency. Ray's and the
actors' start is left out of the wall time and printed apart: it is paid once a sweep.
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import aiohttp

from deep20ray_cluster import driver
from deep20ray_cluster.journal import read_events
from deep20ray_cluster.sweep import parse_sweep

ROLES = ("guesser", "oracle", "reviewer", "judge", "validator")


@contextmanager
def server(latency: float, questions: int, *limit: str) -> Iterator[str]:
    """The fixed-latency server's address; for ``limit`` see there."""
    command = [sys.executable, "-m", "benchmarks.server", str(latency), str(questions), *limit]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.kill()
        process.communicate()


async def bare(url: str, trials: int, questions: int) -> float:
    """Seconds for the same calls without any of the system."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def trial() -> None:
            for turn in range(questions + 1):
                roles = ("guesser", "oracle", "reviewer") if turn < questions else ("guesser", "validator")
                for role in roles:
                    if role == "oracle":
                        async with session.get(f"{url}/search", params={"q": "x", "format": "json"}) as response:
                            await response.json()
                    messages = [{"role": "assistant"}] * turn
                    async with session.post(f"{url}/{role}/v1/chat/completions", json={"messages": messages}) as response:
                        await response.json()

        start = time.monotonic()
        await asyncio.gather(*(trial() for _ in range(trials)))
        return time.monotonic() - start


def sweep_text(
    url: str, rounds: int, at_once: int, *, subjects: Sequence[str] = ("T-0001",), models: int = 1, shared: str | None = None
) -> str:
    """A sweep of the fixed-latency server's. ``shared``: the settings of one account that all roles use; else each has its own, and is
    known to have no limit."""
    if shared is None:
        kept = dict.fromkeys(ROLES, "adaptive = false\n")
        names = {role: role for role in ROLES}
    else:
        kept, names = {"any": shared}, dict.fromkeys(ROLES, "any")
    accounts = "".join(
        f'[accounts.{name}]\nkind = "openai-chat"\nbase_url = "{url}/{name}/v1"\nmax_concurrency = 10000\n{settings}'
        for name, settings in kept.items()
    )
    support = "".join(f'[support.{role}]\naccount = "{names[role]}"\nmodel = "{role}"\n' for role in ROLES[1:])
    contestants = "".join(
        f'[[models]]\nid = "bench-{index}"\naccount = "{names["guesser"]}"\nmodel = "guesser"\n' for index in range(models)
    )
    return f"""[sweep]
name = "bench"
edition = "1.1"
cohort = "core-1.1"
seed = "bench"
rounds = {rounds}
subjects = {json.dumps(subjects)}
max_trials = {at_once}
{accounts}
[search]
kind = "searxng"
query_target = 0
fetch_pages = 0
base_url = "{url}"
max_concurrency = 10000
{support}
{contestants}"""


def whole(url: str, trials: int, shared: str | None = None) -> tuple[float, float, int]:
    """Seconds of play, seconds of everything around it, and calls to models, for the whole system.

    ``shared``: see ``sweep_text``.
    """
    text = sweep_text(url, trials, trials, shared=shared)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "sweep"
        start = time.monotonic()
        done = driver.start(parse_sweep(text, "bench"), text, Path(folder), out, driver.Options(os.environ))
        total = time.monotonic() - start
        events = list(read_events(done.folder.journal))
    assert done.owed == 0, done.stopped
    replies = [event for event in events if event.kind == "reply" and (shared is None or event.call != "search")]
    # From the first reply, less its own latency: until then the actors were starting.
    first = min(event.at - event.body["audit"]["latency_ms"] for event in replies)
    play = (max(event.at for event in replies) - first) / 1000
    return play, total - play, len(replies)


def main() -> None:
    """Prints one row a way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--latency", type=float, default=0.5)
    args = parser.parse_args()
    in_row = args.questions * 4 + 2
    ideal = in_row * args.latency
    print(f"{args.trials} trials at once, {in_row} calls in a row each, latency {args.latency:g} s: ideal {ideal:.1f} s")
    with server(args.latency, args.questions) as url:
        floor = asyncio.run(bare(url, args.trials, args.questions))
        before = resource.getrusage(resource.RUSAGE_SELF)
        play, around, calls = whole(url, args.trials)
        after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / calls * 1000
    print(f"bare calls    wall/ideal {floor / ideal:.3f}" if ideal else f"bare calls    {args.trials * in_row / floor:,.0f} calls/s")
    print(f"whole system  wall/ideal {play / ideal:.3f}" if ideal else f"whole system  {calls / play:,.0f} calls/s")
    print(
        f"whole system / bare calls {play / floor:.3f}; {calls} calls at {calls / play:,.0f}/s; driver CPU {cpu:.2f} ms a call; "
        f"start and sealing {around:.1f} s"
    )


if __name__ == "__main__":
    main()
