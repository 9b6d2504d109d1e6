"""Whole sweeps against an account with a real quota, by a server that others wrote and that grades its clients' manners.

A quota in a minute takes more than a minute to bind, so these are long; the same against a quota in a second is in tests/cluster.
"""

import os
from collections import Counter
from pathlib import Path

import pytest

from deep20ray_cluster import driver
from deep20ray_cluster.journal import read_events
from deep20ray_cluster.sweep import SUPPORT_ROLES, parse_sweep
from tests.ray_fixture import quiet_ray
from tests.wire.llmock import llmock

__all__ = ["quiet_ray"]

PATHS = {"openai-chat": "/v1", "anthropic": "/anthropic/v1"}
QUOTAS = {
    "requests": (("--rpm", "30"), "requests_per_minute = 30", 8),
    "tokens": (("--tpm", "20000"), "tokens_per_minute = 20000", 4),
}


def sweep(url: str, kind: str, settings: str, rounds: int) -> str:
    support = "".join(f'[support.{role.value}]\naccount = "a"\nmodel = "m"\nmax_output_tokens = 512\n' for role in SUPPORT_ROLES)
    return f"""[sweep]
name = "quota"
edition = "1.1"
cohort = "core-1.1"
seed = "s"
rounds = {rounds}
subjects = ["T-0001"]
[accounts.a]
kind = "{kind}"
base_url = "{url}{PATHS[kind]}"
{settings}
[search]
kind = "simulator"
{support}
[[models]]
id = "m"
account = "a"
model = "m"
max_output_tokens = 512
"""


@pytest.mark.full
@pytest.mark.usefixtures("quiet_ray")
@pytest.mark.parametrize("kind", PATHS)
@pytest.mark.parametrize("told", [True, False], ids=["told", "not told"])
@pytest.mark.parametrize("quota", QUOTAS)
def test_a_sweep_keeps_within_a_quota_that_it_is_told_or_learns(tmp_path: Path, kind: str, told: bool, quota: str) -> None:
    """The server answers every Guesser with five violations in a row, which is a game too."""
    options, setting, rounds = QUOTAS[quota]
    with llmock(*options) as server:
        text = sweep(server.url, kind, setting if told else "", rounds)
        done = driver.start(parse_sweep(text, "sweep.toml"), text, tmp_path, tmp_path / "out", driver.Options(os.environ))
        requests, verdict = server.requests(), server.verdict()
    assert (done.owed, done.failed, done.scored) == (0, 0, rounds)
    replies = [event for event in read_events(done.folder.journal) if event.kind == "reply"]
    assert Counter(request["status"] for request in requests) == {200: len(replies)}, "not one was refused"
    assert verdict["findings"] == []
    learned = done.folder.gates.read_text() if done.folder.gates.exists() else ""
    assert '"learned"' in learned
