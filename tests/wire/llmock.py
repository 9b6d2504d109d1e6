"""llmock, a server by others that grades its clients' manners, as a process of a test's."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / ".tools/llmock/bin/llmock"
STARTS_WITHIN = 600
"""Tries, a tenth of a second apart."""


@dataclass(frozen=True)
class Llmock:
    """A running server."""

    url: str

    def queue(self, *behaviours: dict[str, Any]) -> None:
        """What it does with the next requests, before it answers as usual."""
        self._json("scenario", {"behaviors": list(behaviours)})

    def reset(self) -> None:
        """Forgets every request and what was queued."""
        self._json("reset", {})

    def verdict(self) -> Any:
        """What it thinks of its client."""
        return self._json("verdict")

    def requests(self) -> list[dict[str, Any]]:
        """Every request that it saw."""
        seen: Any = self._json("requests")
        return list(seen["requests"] if isinstance(seen, dict) else seen)

    def _json(self, name: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/_llmock/{name}", data, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)


@contextmanager
def llmock(*options: str) -> Iterator[Llmock]:
    """Starts it on a free loopback port. Skips where it isn't installed."""
    if not PROGRAM.exists():
        pytest.skip("llmock is not installed; `make tools` installs it")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(PROGRAM), "serve", "--port", str(port), "--log-level", "warning", *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = Llmock(f"http://127.0.0.1:{port}")
    try:
        for _ in range(STARTS_WITHIN):
            assert process.poll() is None, "llmock ended before it listened"
            try:
                server.verdict()
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        else:
            raise AssertionError("llmock doesn't listen")
        yield server
    finally:
        process.kill()
        process.wait()
