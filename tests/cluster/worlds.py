"""Sweeps against scripted worlds, for tests of the whole system."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROLES = ("guesser", "oracle", "reviewer", "judge", "validator")


@contextmanager
def scripted(folder: Path, world: dict[str, Any], port: int = 0) -> Iterator[tuple[str, Path]]:
    """A scripted server in its own process: its address and its log."""
    folder.mkdir(parents=True, exist_ok=True)
    become(folder, world)
    log = folder / "requests.jsonl"
    command = [sys.executable, "-m", "tests.cluster.scripted", str(folder / "world.json"), str(log), str(port)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"], log
    finally:
        process.kill()
        process.communicate()


def become(folder: Path, world: dict[str, Any]) -> None:
    """Changes the world of the server in ``folder``, from its next request on."""
    (folder / "world.part").write_text(json.dumps(world))
    (folder / "world.part").replace(folder / "world.json")


def sweep_text(
    url: str, *, cohort: str = "core-1.1", subjects: tuple[str, ...] = ("T-0001",), rounds: int = 1, extra: str = "", head: str = ""
) -> str:
    """A sweep file whose roles each have their own address under ``url``."""
    accounts = "".join(f'[accounts.{role}]\nkind = "openai-chat"\nbase_url = "{url}/{role}/v1"\nattempts = 4\n{extra}\n' for role in ROLES)
    support = "".join(f'[support.{role}]\naccount = "{role}"\nmodel = "{role}"\n\n' for role in ROLES[1:])
    return f"""[sweep]
name = "test"
edition = "1.1"
cohort = "{cohort}"
seed = "test-seed"
rounds = {rounds}
subjects = {json.dumps(subjects)}
{head}

{accounts}
[search]
kind = "searxng"
query_target = 0
fetch_pages = 0
base_url = "{url}"

{support}
[[models]]
id = "scripted"
account = "guesser"
model = "guesser"
"""


def requests(log: Path) -> list[dict[str, Any]]:
    """What the server was sent, in order."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
