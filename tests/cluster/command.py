"""The command line as its users meet it: a process of its own, against a scripted provider."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from deep20ray_cluster import cli
from deep20ray_cluster.journal import Event, read_events

from .worlds import requests

PATIENCE = 120.0
"""Seconds after which a test gives up on a process."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line that says what is wrong and what to do."""
        assert "Traceback" not in self.err, self.err
        lines = [line for line in self.err.splitlines() if line.startswith("deep20ray: ")]
        assert lines, (self.code, self.out, self.err)
        return lines[-1].removeprefix("deep20ray: ")


def command(*words: object) -> list[str]:
    """The command's argument vector."""
    return [sys.executable, "-m", "deep20ray_cluster.cli", *map(str, words)]


def run(*words: object, env: dict[str, str] | None = None) -> Ended:
    """Runs a command to its end."""
    done = subprocess.run(command(*words), capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, **(env or {})}, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def inside(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: object) -> Ended:
    """Runs a command within this process, and so within its Ray if it has one."""
    capfd.readouterr()
    monkeypatch.setattr(sys, "argv", ["deep20ray", *map(str, words)])
    try:
        code = cli.main()
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capfd.readouterr()
    return Ended(code, out, err)


class Running:
    """A command at work, in a session of its own."""

    def __init__(self, *words: object, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command(*words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, **(env or {})},
        )

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.descendants():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.kill()
        self.process.communicate()

    def descendants(self) -> list[psutil.Process]:
        """Every process below it."""
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def until(self, happened: Callable[[], bool]) -> None:
        """Waits for something that the command does."""
        end = time.monotonic() + PATIENCE
        while not happened():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.05)

    def interrupt(self) -> None:
        """Ctrl-C: the signal goes to the whole foreground group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> Ended:
        """Waits for its end."""
        out, err = self.process.communicate(timeout=PATIENCE)
        return Ended(self.process.returncode, out, err)


def sent(log: Path) -> int:
    """Requests that the provider has seen."""
    return len(requests(log))


def by_role(log: Path) -> Counter[str]:
    """Requests by role; searches apart."""
    return Counter(request["role"] for request in requests(log))


def events(folder: Path) -> list[Event]:
    """The journal of a sweep."""
    return list(read_events(folder / "journal.sqlite"))


def calls(journal: list[Event], kind: str) -> Counter[tuple[str, int, str]]:
    """How many events of that kind each (trial, turn, call) has."""
    return Counter((event.trial, event.turn, event.call) for event in journal if event.kind == kind)


def sealed(folder: Path) -> Path:
    """The one sealed run of a sweep."""
    (run_folder,) = [path for path in (folder / "runs").iterdir() if not path.name.startswith(".")]
    return run_folder


def table(folder: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a public table of the one sealed run."""
    with pa.memory_map(str(sealed(folder) / f"{name}.arrow")) as source:
        rows: list[dict[str, Any]] = pa.ipc.open_file(source).read_all().to_pylist()
        return rows
