"""How near a sweep comes to its provider's limit: ``python -m benchmarks.gates [--rate R] [--seconds S] [--bucket B] [--ways W ...]``.

One server with a real limit (a bucket of B seconds' worth that refills evenly; 429 and Retry-After beyond it), one run, side by side: the
bare calls of the same games by a client that is told the rate, and the whole system told the rate, told twice the rate, told nothing but
what replies' headers say, and told nothing at all. Ratio = wall time of play / ideal, ideal = calls / rate + latency. The last lines are
``NAME: ratio R, goal G``; the exit code is 1 if a goal is missed.
"""

import argparse
import asyncio
import json
import os
import sys
import time
import urllib.request
from itertools import count

import aiohttp

from benchmarks.overhead import server, whole
from deep20ray_cluster.ray_local import ray_session

QUESTIONS = 10
CALLS = 3 * QUESTIONS + 2
"""To models, of one trial."""
LATENCY = 0.5
WAYS = ("bare", "told", "headers", "unknown", "twice")
GOALS = {"told": (1.02, 0.001), "headers": (1.15, 0.02), "unknown": (1.15, 0.02), "twice": (1.15, 0.02)}
"""Of the ratio, and of the part of calls that are refused. At 500 a second, told: 1.05."""


async def bare(url: str, trials: int, rate: float) -> float:
    """Seconds for the same model calls, paced evenly at the rate by nothing but a clock."""
    starts, begun = count(), time.monotonic()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def trial() -> None:
            for turn in range(QUESTIONS + 1):
                for role in ("guesser", "oracle", "reviewer") if turn < QUESTIONS else ("guesser", "validator"):
                    await asyncio.sleep(begun + next(starts) / (0.995 * rate) - time.monotonic())
                    async with session.post(
                        f"{url}/{role}/v1/chat/completions", json={"messages": [{"role": "assistant"}] * turn}
                    ) as response:
                        await response.json()
                        assert response.status == 200, "the floor itself went over the limit"

        await asyncio.gather(*(trial() for _ in range(trials)))
    return time.monotonic() - begun


def _settings(way: str, rate: float) -> str:
    told = {"told": rate, "twice": 2 * rate}.get(way)
    return "" if told is None else f"requests_per_minute = {round(told * 60)}\n"


def _stats(url: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{url}/stats", timeout=10) as reply:
        stats: dict[str, float] = json.load(reply)
    return stats


def measured(way: str, args: argparse.Namespace) -> tuple[float, float, dict[str, float]]:
    """One way: ratio, the part of calls that was refused, and the server's own count."""
    trials = max(1, round(args.rate * args.seconds / CALLS))
    limit = (str(args.rate), str(max(1.0, args.rate * args.bucket)), "1" if way == "headers" else "0")
    with server(LATENCY, QUESTIONS, *limit) as url:
        if way == "bare":
            wall, calls = asyncio.run(bare(url, trials, args.rate)), trials * CALLS
        else:
            wall, _, calls = whole(url, trials, _settings(way, args.rate))
        stats = _stats(url)
    assert calls == trials * CALLS == stats["served"]
    return wall / (calls / args.rate + LATENCY), stats["refused"] / calls, stats | {"wall": wall}


def main() -> None:
    """Prints one row a way, then the goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=50, help="calls a second")
    parser.add_argument("--seconds", type=float, default=65, help="how long the ideal is")
    parser.add_argument("--bucket", type=float, default=0.2, help="seconds' worth")
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    args = parser.parse_args()
    print(f"limit {args.rate:g}/s, bucket {args.bucket:g} s, latency {LATENCY:g} s, ideal about {args.seconds:g} s", flush=True)
    got = {}
    with ray_session(os.environ):
        for way in args.ways:
            ratio, refused, stats = got[way] = measured(way, args)
            print(
                f"{way:8} wall/ideal {ratio:.3f}; {stats['refused']:.0f} of {stats['served']:.0f} calls refused ({refused:.2%}); "
                f"server's CPU {stats['cpu'] / stats['wall']:.0%} of a core",
                flush=True,
            )
    missed = False
    for way, (ratio, refused, _) in got.items():
        if way == "bare":
            continue
        goal, most = GOALS[way]
        goal = 1.05 if way == "told" and args.rate > 200 else goal
        missed |= ratio > goal or refused > most
        print(f"gates-{way}: ratio {ratio:.3f}, goal {goal:g}; refused {refused:.2%}, goal {most:.1%}")
    sys.exit(missed)


if __name__ == "__main__":
    main()
