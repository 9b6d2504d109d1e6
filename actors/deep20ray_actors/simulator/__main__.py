"""``python -m deep20ray_actors.simulator``: prints {"url": ...} once it listens on loopback; ends on SIGTERM or with its standard input."""

import argparse
import asyncio
import json
import os
import signal
import sys
import time

from aiohttp import web

from deep20ray_actors.simulator.server import Conditions, application


async def serve(port: int, conditions: Conditions, *, exit_with_stdin: bool) -> None:
    """Serves until told to stop. Raises OSError if the port is taken."""
    runner = web.AppRunner(application(conditions, time.monotonic), access_log=None)
    await runner.setup()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, backlog=4096).start()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        if exit_with_stdin:
            loop.add_reader(sys.stdin.fileno(), lambda: None if os.read(sys.stdin.fileno(), 4096) else stop.set())
        print(json.dumps({"url": f"http://127.0.0.1:{runner.addresses[0][1]}"}), flush=True)
        await stop.wait()
    finally:
        await runner.cleanup()


def main() -> int:
    """The command. Exit code 2 if the port can't be had."""
    parser = argparse.ArgumentParser(prog="deep20ray_actors.simulator", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--latency-ms", type=float, default=0, help="of every reply")
    parser.add_argument("--rpm", type=int, default=None, help="requests a minute before 429 with Retry-After")
    parser.add_argument("--fault-rate", type=float, default=0, help="share of requests that fail when first seen, from 0 to 1")
    parser.add_argument("--exit-with-stdin", action="store_true", help="end when standard input does")
    args = parser.parse_args()
    conditions = Conditions(args.latency_ms / 1000, args.rpm, args.fault_rate)
    try:
        asyncio.run(serve(args.port, conditions, exit_with_stdin=args.exit_with_stdin))
    except OSError as error:
        print(f"simulator: port {args.port} can't be listened on ({error.strerror}); choose another with --port", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
