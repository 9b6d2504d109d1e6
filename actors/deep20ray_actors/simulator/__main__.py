"""``python -m deep20ray_actors.simulator``: prints {"url": ...} once it listens on loopback; ends on SIGTERM or with its standard input."""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from aiohttp import web

from deep20ray.errors import UsageError
from deep20ray_actors.simulator.server import Conditions, application

_LAST_REPLIES_SECONDS = 2.0


class PortTaken(UsageError):
    """The port can't be listened on."""


async def serve(port: int, conditions: Conditions, *, exit_with_stdin: bool) -> None:
    """Serves until told to stop, and then for two seconds more at most. Raises PortTaken."""
    runner = web.AppRunner(application(conditions, time.monotonic), access_log=None, shutdown_timeout=_LAST_REPLIES_SECONDS)
    await runner.setup()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    try:
        try:
            await web.TCPSite(runner, "127.0.0.1", port, backlog=4096).start()
        except OSError as error:
            raise PortTaken(f"port {port} can't be listened on ({os.strerror(error.errno or 0)}); choose another with --port") from None
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        if exit_with_stdin:
            _at_end_of_input(loop, stop.set)
        print(json.dumps({"url": f"http://127.0.0.1:{runner.addresses[0][1]}"}), flush=True)
        await stop.wait()
    finally:
        await runner.cleanup()


def _at_end_of_input(loop: asyncio.AbstractEventLoop, then: Callable[[], None]) -> None:
    try:
        loop.add_reader(sys.stdin.fileno(), lambda: None if os.read(sys.stdin.fileno(), 4096) else then())
    except PermissionError:  # a file or the null device, which nobody keeps open for us
        then()


def _number(kind: Callable[[str], float], low: float, high: float) -> Callable[[str], Any]:
    def number(text: str) -> float:
        value = kind(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text} is not from {low:g} to {high:g}")
        return value

    return number


def main() -> int:
    """The command. Exit code 2 if the port can't be had."""
    parser = argparse.ArgumentParser(prog="deep20ray_actors.simulator", description=__doc__)
    parser.add_argument("--port", type=_number(int, 0, 65_535), default=0, help="0 takes a free one")
    parser.add_argument("--latency-ms", type=_number(float, 0, 600_000), default=0, help="of every reply")
    parser.add_argument("--rpm", type=_number(int, 1, 1_000_000_000), default=None, help="requests a minute before 429 with Retry-After")
    parser.add_argument(
        "--fault-rate", type=_number(float, 0, 1), default=0, help="share of requests that fail when first seen, from 0 to 1"
    )
    parser.add_argument("--exit-with-stdin", action="store_true", help="end when standard input does")
    args = parser.parse_args()
    conditions = Conditions(args.latency_ms / 1000, args.rpm, args.fault_rate)
    try:
        asyncio.run(serve(args.port, conditions, exit_with_stdin=args.exit_with_stdin))
    except PortTaken as error:
        print(f"simulator: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
