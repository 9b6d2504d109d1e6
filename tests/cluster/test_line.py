"""The line between tables and roles: which gate a call goes through, what a throttled reply does, and how it is stopped."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from deep20ray.answers import Role
from deep20ray.subjects import TrustedSubject
from deep20ray_actors.messages import Message, QueriesMessage, SearchMessage
from deep20ray_actors.outcomes import Call, Completed, Found, Outcome, Throttled
from deep20ray_actors.providers.standing import seen_of
from deep20ray_cluster.gates import Gate
from deep20ray_cluster.limits import Limits
from deep20ray_cluster.line import GRACE, Line
from deep20ray_cluster.table import Draining
from deep20ray_cluster.turnstile import ASKED_MAX

from .fakes import delivered

MESSAGE = QueriesMessage.of(TrustedSubject("kite", (), "A toy."), "Does it fly?", 2)
ROUTES = {(Role.ORACLE, "oracle"): "paid", (Role.ORACLE, "search"): "search:"}


class Pool:
    """Answers at once, or when told."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.calls: list[tuple[Call, float | None]] = []
        self.go = asyncio.Event()
        self.go.set()

    async def ready(self) -> None: ...

    async def ask(self, call: Call, seconds: float | None = None, lease: Any = None) -> Any:
        self.calls.append((call, seconds))
        await self.go.wait()
        return replace(delivered(self.outcome), seen=seen_of(self.outcome, None, None, datetime.now(UTC)))


class Clock:
    now = 0.0


def line(pool: Pool, clock: Clock, width: int = 1) -> tuple[Line, dict[str, Gate]]:
    async def sleep(seconds: float) -> None:
        clock.now += seconds
        await asyncio.sleep(0)

    gates = {name: Gate(name, Limits(width, adaptive=False), clock=lambda: clock.now, sleep=sleep) for name in ("paid", "search:")}
    return Line({Role.ORACLE: pool}, gates, ROUTES, {"paid": 900.0, "search:": 60.0}), gates  # type: ignore[dict-item]


async def nothing() -> None: ...


def ask(a_line: Line, message: Message = MESSAGE, before: Any = nothing) -> Any:
    return a_line.call(Role.ORACLE, "oracle", message, 1, before)


async def test_each_call_has_the_lease_and_the_deadline_of_its_own_gate() -> None:
    pool = Pool(Completed("x"))
    a_line, _ = line(pool, Clock())
    await ask(a_line)
    await ask(a_line, SearchMessage(query="q"))
    assert [(call.lease.account, seconds) for call, seconds in pool.calls] == [("paid", 900 + GRACE), ("search:", 60 + GRACE)]
    assert (a_line.calls, a_line.in_flight) == (2, 0)


@pytest.mark.parametrize(("asked", "waited"), [(30.0, 30.0), (10_000.0, ASKED_MAX), (None, 0.0)])
async def test_a_throttled_reply_pauses_its_account_and_no_other(asked: float | None, waited: float) -> None:
    pool, clock = Pool(Throttled("429", 429, asked)), Clock()
    a_line, _ = line(pool, clock)
    await ask(a_line)
    pool.outcome = Found(())
    await ask(a_line, SearchMessage(query="q"))
    assert clock.now == 0
    await ask(a_line)
    assert clock.now + pool.calls[-1][0].lease.after == pytest.approx(waited)


async def test_nothing_is_sent_before_it_is_journalled() -> None:
    pool = Pool(Completed("x"))
    a_line, gates = line(pool, Clock())

    async def fails() -> None:
        assert gates["paid"].in_flight == 1, "the lease comes first"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await ask(a_line, before=fails)
    assert pool.calls == []
    assert a_line.in_flight == 0


async def test_stopping_ends_those_who_wait_and_lets_calls_in_flight_finish() -> None:
    pool = Pool(Completed("x"))
    pool.go.clear()
    a_line, _ = line(pool, Clock())
    first, second = asyncio.create_task(ask(a_line)), asyncio.create_task(ask(a_line))
    await asyncio.sleep(0.01)
    a_line.stop("interrupted")
    a_line.stop("again")
    with pytest.raises(Draining):
        await second
    with pytest.raises(Draining):
        await ask(a_line)
    pool.go.set()
    assert (await first).outcome == Completed("x")
    assert (a_line.stopping, len(pool.calls)) == ("interrupted", 1)
