"""Whole sweeps on a real Ray against a server with a real limit: what is told is kept, what isn't is learned, nothing is lost."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deep20ray_cluster import driver
from deep20ray_cluster.journal import read_events
from deep20ray_cluster.sweep import SUPPORT_ROLES, parse_sweep

ROOT = Path(__file__).parents[2]
RATE, BUCKET, QUESTIONS, TRIALS = 20, 20, 4, 8
CALLS = TRIALS * (3 * QUESTIONS + 2)


@contextmanager
def limited(*, tells: bool) -> Iterator[str]:
    """A server that takes 20 calls a second; its address."""
    command = [sys.executable, "-m", "benchmarks.server", "0.05", str(QUESTIONS), str(RATE), str(BUCKET), str(int(tells))]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.kill()
        process.communicate()


def sweep(url: str, settings: str) -> str:
    support = "".join(f'[support.{role.value}]\naccount = "a"\nmodel = "{role.value}"\n' for role in SUPPORT_ROLES)
    return f"""[sweep]
name = "limits"
edition = "1.1"
cohort = "core-1.1"
seed = "s"
rounds = {TRIALS}
subjects = ["T-0001"]
[accounts.a]
kind = "openai-chat"
base_url = "{url}/any/v1"
attempts = 10
{settings}
[search]
kind = "searxng"
base_url = "{url}"
query_target = 0
fetch_pages = 0
{support}
[[models]]
id = "m"
account = "a"
model = "guesser"
"""


@pytest.mark.usefixtures("quiet_ray")
@pytest.mark.parametrize(
    ("settings", "tells", "most"),
    [
        (f"requests_per_minute = {RATE * 60}", False, 2),
        pytest.param("", True, 20, marks=pytest.mark.full),
        ("", False, 40),
        pytest.param(f"requests_per_minute = {RATE * 60}\nmax_share = 0.5", False, 0, marks=pytest.mark.full),
    ],
    ids=["told", "by headers", "felt out", "half of it"],
)
def test_a_limit_is_kept_or_found_and_every_call_is_served_once(tmp_path: Path, settings: str, tells: bool, most: int) -> None:
    with limited(tells=tells) as url:
        text = sweep(url, settings)
        done = driver.start(parse_sweep(text, "sweep.toml"), text, tmp_path, tmp_path / "out", driver.Options(os.environ))
        with urllib.request.urlopen(f"{url}/stats", timeout=30) as reply:
            stats = json.load(reply)
    assert (done.owed, done.failed, done.scored) == (0, 0, TRIALS)
    assert stats["served"] == CALLS
    assert stats["refused"] <= most
    replies = [event.body["audit"] for event in read_events(done.folder.journal) if event.kind == "reply" and event.call != "search"]
    assert sum(audit["wire_tries"] for audit in replies) == stats["served"] + stats["refused"], "every try is in the ledger"
    assert "seen" not in replies[0] and "standing" not in json.dumps(replies)
