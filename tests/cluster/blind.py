"""Plays a world with real tables, pools and role hosts over real HTTP, without Ray; and compares what a role was sent in two of them."""

import asyncio
import json
import pickle
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

from deep20ray.answers import Role
from deep20ray.subjects import Subject
from deep20ray_actors.config import LiteralCredential, RouteConfig
from deep20ray_actors.host import RoleHost, Surroundings
from deep20ray_actors.leases import Again, Grant
from deep20ray_actors.outcomes import Call, CallResult
from deep20ray_actors.providers.transport import HttpTransport
from deep20ray_actors.search.pages import PageFetcher
from deep20ray_actors.search.text import page_text
from deep20ray_cluster.drive import Drive
from deep20ray_cluster.journal import Event
from deep20ray_cluster.memory import Memory, Standing
from deep20ray_cluster.owner import Owner
from deep20ray_cluster.plan import Plan, load_cohort, resolve
from deep20ray_cluster.pools import Handle
from deep20ray_cluster.progress import Progress
from deep20ray_cluster.ray_local import Session
from deep20ray_cluster.routes import routes_of
from deep20ray_cluster.sweep import parse_sweep

from .fakes import MemoryJournal
from .provider import Provider, Seen, World
from .worlds import ROLES, sweep_text

CALLS: Mapping[str, tuple[str, ...]] = {role: (("queries", "search", "pages", role) if role == "oracle" else (role,)) for role in ROLES}
"""Each role's calls; the Oracle also writes queries, searches, and has pages fetched."""
HEADERS = {
    "POST": {"accept", "accept-encoding", "content-length", "content-type", "user-agent"},
    "GET": {"accept", "accept-encoding", "connection", "user-agent"},
}
"""All the headers that a request may have, besides Host and Authorization."""
FIELDS = {"max_completion_tokens", "messages", "model", "response_format", "seed"}
"""All that a body may have where nothing more is configured."""


@dataclass(frozen=True)
class Played:
    """One world, played."""

    seen: tuple[Seen, ...]
    authorizations: tuple[tuple[str, str | None], ...]
    journal: tuple[str, ...]
    """Its events without their times."""
    plan: Plan | None = None
    events: tuple[Event, ...] = ()

    def sent(self, role: str, turns: Iterable[int] | None = None) -> dict[tuple[str, int, str], list[tuple[Any, ...]]]:
        """What the role was sent, try by try, by category, turn and call."""
        groups: dict[tuple[str, int, str], list[tuple[Any, ...]]] = {}
        for seen in self.seen:
            if seen.call in CALLS[role] and (turns is None or seen.turn in turns):
                groups.setdefault((seen.category, seen.turn, seen.call), []).append(seen.wire)
        return groups


def differences(one: Played, other: Played, role: str, turns: Iterable[int] | None = None) -> list[str]:
    """Where the role could tell the two apart. Retries collapse: a turn's distinct requests in order count, and its last one."""
    left, right = one.sent(role, turns), other.sent(role, turns)
    found = [f"{at}: sent in one world only" for at in sorted(left.keys() ^ right.keys())]
    for at in sorted(left.keys() & right.keys()):
        if list(dict.fromkeys(left[at])) != list(dict.fromkeys(right[at])):
            found.append(f"{at}: {left[at]} is not {right[at]}")
        elif left[at][-1] != right[at][-1]:
            found.append(f"{at}: another one at last")
    return found


def differ_elsewhere(one: Played, other: Played, role: str) -> bool:
    """Whether the worlds differ on another role's wire or in the journal."""
    return one.journal != other.journal or any(differences(one, other, each) for each in ROLES if each != role)


def oddities(played: Played) -> list[str]:
    """Headers and fields that no request may have: conversation, user, metadata, cache or idempotency keys and the like."""
    found = []
    for seen in played.seen:
        names = [name.lower() for name, _ in seen.headers]
        extra = [*set(names) - HEADERS[seen.method], *(name for name in names if names.count(name) > 1)]
        fields = set(json.loads(seen.body)) - FIELDS if seen.body else set()
        target = {"pages": "/page/", "search": "/search?q="}.get(seen.call, f"/{role_of(seen.call)}/v1/chat/completions")
        if extra or fields or not seen.target.startswith(target) or (seen.method == "POST" and seen.target != target):
            found.append(f"{seen.call}: {extra} {sorted(fields)} {seen.target}")
    return found


def trace(events: Iterable[Event]) -> tuple[str, ...]:
    """Events as comparable lines, without their times and their run, whose name holds a time."""
    lines = (json.dumps([e.trial, e.attempt, e.turn, e.kind, e.call, e.ask, e.body], sort_keys=True) for e in events)
    return tuple(re.sub(r'"retrieved_at": \d+', "", line) for line in lines)


class FakeTime:
    """Seconds that pass at once, and only when someone waits."""

    def __init__(self) -> None:
        self.seconds = 0.0

    async def wait(self, seconds: float) -> None:
        """Moves on."""
        self.seconds += seconds
        await asyncio.sleep(0)


class LocalActor:
    """A role host behind the pools' protocol. What goes in and out is copied, as between processes."""

    def __init__(self, host: RoleHost) -> None:
        self._host = host

    async def ready(self) -> None:
        """See Handle."""

    async def submit(self, calls: list[Call | Grant]) -> None:
        """See Handle."""
        await self._host.submit(pickle.loads(pickle.dumps(calls)))

    async def collect(self, wait_seconds: float) -> list[CallResult | Again]:
        """See Handle."""
        results: list[CallResult | Again] = pickle.loads(pickle.dumps(await self._host.collect(wait_seconds)))
        return results

    async def close(self) -> None:
        """See Handle."""
        await self._host.close()


def role_of(call: str) -> str:
    """Whose call it is."""
    return "oracle" if call in CALLS["oracle"] else call


def key_of(call: str) -> str:
    """The credential of the call's role."""
    return f"key-of-the-{role_of(call)}"


def researching(text: str) -> str:
    """A sweep file whose Oracle writes its queries itself."""
    return text.replace("query_target = 0\n", "query_target = 2\n")


def play(world: World) -> Played:
    """Plays a world to the end of its game. Every world is the same trial of the same run: identity and seeds agree."""
    # Reading all certificate authorities takes longer than the game, and loopback has no TLS.
    with patch.object(ssl.SSLContext, "load_verify_locations"):
        return asyncio.run(_play(world))


async def _play(world: World) -> Played:
    time = FakeTime()
    provider = Provider([world], time.wait)
    runner, url = await provider.start(pages=True)
    journal = MemoryJournal()
    try:
        plan = _plan(world, url)
        trials = list(plan.trials())
        routes = routes_of(plan, {role: LiteralCredential(key_of(role)) for role in ROLES}, None)
        starters = {role: _starter(role, routes[role], time) for role in Role}
        stand = {trial.key: Standing() for trial in trials}
        clock = {"clock": lambda: time.seconds, "sleep": time.wait}
        owner = Owner.of(plan, tuple)
        drive = Drive(plan, journal, stand, lambda _: Memory(), Progress(), starters, lambda: None, owner, **clock)  # type: ignore[arg-type]
        assert await drive.play(trials, Session(own=False)) == (None, False)
    finally:
        await runner.cleanup()
    assert journal.events[-1].kind == "ended", journal.events[-1]
    return Played(tuple(provider.seen), tuple(provider.authorizations), trace(journal.events), plan, tuple(journal.events))


def _plan(world: World, url: str) -> Plan:
    head = f'max_trials = 1\nreuse = "{world.reuse}"'
    text = researching(sweep_text(url, subjects=("T-0008",), rounds=world.rounds, head=head)).replace(
        "fetch_pages = 0\n", "fetch_pages = 2\nallow_loopback = true\n"
    )
    sweep = parse_sweep(text, "sweep.toml")
    plan = resolve(sweep, load_cohort(sweep, Path()), datetime(2026, 12, 1, tzinfo=UTC))
    (run,) = plan.runs
    old = run.trials[0].subject
    subject = Subject(old.id, world.category, old.reference, world.subject)
    return replace(plan, runs=(replace(run, trials=tuple(replace(trial, subject=subject) for trial in run.trials)),))


def _starter(role: Role, routes: Mapping[str, RouteConfig], time: FakeTime) -> Callable[[], Handle]:
    around = Surroundings(lambda: time.seconds, lambda: datetime(2026, 12, 1, tzinfo=UTC), time.wait, lambda: 0.0)
    return lambda: LocalActor(RoleHost(role, routes, around, HttpTransport(sleep=around.sleep, jitter=around.jitter), _fetcher()))


def _fetcher() -> PageFetcher:
    """Every name leads to this machine, and pages are read here: a process of its own for each game would take longer than the game."""

    async def resolve(_host: str) -> list[str]:
        return ["127.0.0.1"]

    fetcher = PageFetcher(resolve=resolve)
    fetcher._readers = _Inline()  # type: ignore[assignment]
    return fetcher


class _Inline:
    @asynccontextmanager
    async def one(self) -> AsyncIterator["_Inline"]:
        yield self

    async def read(self, body: bytes, kind: str, charset: str | None, max_text: int) -> str:
        return page_text(body, kind, charset, max_text)

    def close(self) -> None: ...
