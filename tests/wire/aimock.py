"""aimock, a scripted server by others, as a process of a test's."""

import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CLI = Path(__file__).parents[2] / ".tools/node_modules/@copilotkit/aimock/dist/cli.js"
_LISTENS = re.compile(r"listening on (http://127\.0\.0\.1:\d+)")


@dataclass(frozen=True)
class Aimock:
    """A running server."""

    url: str

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def journal(self) -> list[dict[str, Any]]:
        """Every completion request that it saw, in order: {"model", "body", "status", ...}."""
        return [entry for entry in self.requests() if entry["path"] == "/v1/chat/completions"]

    def requests(self) -> list[dict[str, Any]]:
        """Every request for a model that it saw, whatever the protocol, as in ``journal``."""
        with urllib.request.urlopen(f"{self.url}/__aimock/journal", timeout=30) as reply:
            return [entry for entry in json.load(reply) if entry.get("body")]


@contextmanager
def aimock(fixtures: list[dict[str, Any]], folder: Path) -> Iterator[Aimock]:
    """Starts it on a free loopback port; an unscripted request is an error. Skips where it isn't installed."""
    node = shutil.which("node")
    if node is None or not CLI.exists():
        pytest.skip("aimock is not installed; `make tools` installs it (needs npm)")
    file = folder / "fixtures.json"
    file.write_text(json.dumps({"fixtures": fixtures}))
    command = [node, str(CLI), "-p", "0", "-h", "127.0.0.1", "-f", str(file), "--strict", "--log-level", "info"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        said = ""
        while (found := _LISTENS.search(said)) is None:
            line = process.stdout.readline()
            assert line, f"aimock ended before it listened: {said}"
            said += line
        yield Aimock(found[1])
    finally:
        process.kill()
        process.communicate()
