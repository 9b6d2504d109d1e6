"""The turnstile on a fake clock, against a server that really limits: limits kept, learned and come back to; three clocks; retuning."""

import heapq
import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep20ray_actors.leases import Seen, Stand, Standing
from deep20ray_cluster.controller import COOLDOWN
from deep20ray_cluster.limits import Change, Limits, Used, Weight
from deep20ray_cluster.turnstile import AHEAD, Ticket, Turnstile


class World:
    """A turnstile, a clock that jumps from event to event, and a server with a bucket of requests."""

    def __init__(self, limits: Limits, *, rate: float = math.inf, bucket: float = 1.0, latency: float = 0.5, tells: bool = False) -> None:
        self.now = 0.0
        self.told: list[Change] = []
        self.turnstile = Turnstile("account", limits, lambda: self.now, self.told.append)
        self.starts: list[float] = []
        self.served: list[float] = []
        self.throttled = 0
        self.widest = 0
        self._rate, self._bucket, self._latency, self._tells = rate, bucket, latency, tells
        self._level, self._filled = bucket, 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._rings = math.inf
        self._chance = random.Random(7)
        self._ends: dict[Ticket, Callable[[], None]] = {}

    def at(self, when: float, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (when, self._count, what))

    def trial(self, calls: int, weight: Weight = Weight(), used: Used = Used(10, 5)) -> None:  # noqa: B008
        """So many calls in a row."""
        ticket = Ticket(lambda: weight)

        def ended() -> None:
            self.turnstile.leave(ticket, Seen("served", standing=self._standing()), used)
            self.served.append(self.now)
            if calls > 1:
                self.trial(calls - 1, weight, used)

        self._ends[ticket] = ended
        self.turnstile.enter(ticket)

    def run(self, until: float = math.inf) -> None:
        self._pump()
        while self._events and self._events[0][0] <= until:
            when, _, what = heapq.heappop(self._events)
            self.now = max(self.now, when)
            what()
            self._pump()
            self.widest = max(self.widest, self.turnstile.in_flight)
        if until < math.inf:
            self.now = until

    def _pump(self) -> None:
        for ticket, after in self.turnstile.grants():
            assert 0 <= after <= AHEAD + 1e-9, "only short relative waits leave it"
            start = self.now + after
            self.starts.append(start)
            self.at(start + self._chance.random() * 0.003, lambda ticket=ticket: self._arrives(ticket))  # type: ignore[misc]
        wait = self.turnstile.wait()
        if wait is not None and self.now + wait < self._rings - 1e-9:
            self._rings = rings = self.now + wait
            self.at(rings, lambda: self._rang(rings))

    def _rang(self, rings: float) -> None:
        if self._rings == rings:
            self._rings = math.inf

    def _arrives(self, ticket: Ticket) -> None:
        self._fill()
        if self._level >= 1:
            self._level -= 1
            self.at(self.now + self._latency, self._ends.pop(ticket))
            return
        self.throttled += 1
        wait = float(math.ceil((1 - self._level) / self._rate))
        self.at(self.now + 0.002, lambda: self.turnstile.again(ticket, Seen("throttled", wait), wait))

    def _fill(self) -> None:
        grown = self._level + (self.now - self._filled) * self._rate if self.now > self._filled else self._level
        self._level, self._filled = min(self._bucket, grown), self.now

    def _standing(self) -> Standing | None:
        self._fill()
        return Standing(Stand(round(self._rate * 60), int(self._level), 1.0)) if self._tells else None


def test_told_the_rate_it_comes_near_it_without_one_refusal() -> None:
    for rate in (5, 50, 500):
        world = World(Limits(10_000, rate * 60), rate=rate, bucket=max(2.0, rate / 10))
        for _ in range(rate):
            world.trial(40)
        world.run()
        assert world.throttled == 0
        assert len(world.served) == rate * 40
        assert world.served[-1] <= 1.02 * (40 + 0.5)


@pytest.mark.parametrize("latency", [0.5, 5.0])
@pytest.mark.parametrize("bucket", [5.0, 50.0])
@pytest.mark.parametrize(
    ("limits", "tells", "goal"),
    [(Limits(10_000), False, 1.15), (Limits(10_000, 6000), False, 1.15), (Limits(10_000), True, 1.05)],
    ids=["unknown", "twice too high", "headers"],
)
def test_a_limit_that_nobody_told_or_told_wrong_is_found(limits: Limits, tells: bool, goal: float, bucket: float, latency: float) -> None:
    world = World(limits, rate=50, bucket=bucket, latency=latency, tells=tells)
    for _ in range(600):
        world.trial(5)
    world.run()
    assert world.served[-1] <= goal * (60 + latency)
    assert world.throttled <= 0.025 * 3000
    assert {change.what for change in world.told} <= {"slowed", "learned"}


def test_a_slow_limit_is_found_too() -> None:
    world = World(Limits(1000), rate=0.5, bucket=30, latency=2.0)
    for _ in range(20):
        world.trial(5)
    world.run()
    assert world.served[-1] <= 1.2 * (100 - 30) / 0.5
    assert world.throttled <= 45, "found by halves, from far above"


@settings(max_examples=60, deadline=None)
@given(
    limits=st.builds(
        Limits,
        concurrency=st.integers(1, 50),
        requests=st.none() | st.integers(1, 600),
        tokens=st.none() | st.integers(500, 50_000),
        input_tokens=st.none() | st.integers(500, 50_000),
        output_tokens=st.none() | st.integers(500, 50_000),
        share=st.sampled_from([1.0, 0.5]),
        adaptive=st.booleans(),
    ),
    trials=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4000), st.integers(1, 1000)), min_size=1, max_size=12),
    latency=st.floats(0.01, 30),
)
def test_no_limit_is_ever_passed_and_everyone_is_served(limits: Limits, trials: list[tuple[int, int, int]], latency: float) -> None:
    world = World(limits, latency=latency, bucket=math.inf)
    for calls, size, most in trials:
        world.trial(calls, Weight(size, most), Used(size // 4, most))
    world.run()
    assert len(world.served) == sum(calls for calls, _, _ in trials), "nobody starves"
    assert world.widest <= limits.concurrency
    allowed = math.inf if limits.requests is None else max(1, limits.requests * limits.share)
    for index, start in enumerate(world.starts):
        assert sum(start <= each <= start + 60 for each in world.starts[index:]) <= allowed
    assert world.starts == sorted(world.starts)


def test_new_calls_are_served_in_order() -> None:
    world = World(Limits(1, adaptive=False))
    tickets = [Ticket() for _ in range(5)]
    for ticket in tickets:
        world.turnstile.enter(ticket)
    for ticket in tickets:
        ((given, _),) = world.turnstile.grants()
        assert given is ticket
        world.turnstile.leave(ticket, Seen("served"))


def flying(limits: Limits, count: int = 1) -> tuple[World, list[Ticket]]:
    """Calls in flight, long after everything began."""
    world = World(limits)
    world.now = 1000.0
    tickets = [Ticket() for _ in range(count)]
    for ticket in tickets:
        world.turnstile.enter(ticket)
        world.now += 0.1
        assert [each for each, _ in world.turnstile.grants()] == [ticket]
    world.now += 1.0
    return world, tickets


def next_start(world: World) -> float:
    """Seconds until a new call would start."""
    ticket = Ticket()
    world.turnstile.enter(ticket)
    given = world.turnstile.grants()
    wait = given[0][1] if given else (world.turnstile.wait() or 0.0) + AHEAD / 2
    world.turnstile.leave(ticket)
    return wait


def test_three_clocks_that_move_no_other() -> None:
    """What a reply asked, the controller's cooldown and the account's pause, each alone."""
    wide = Limits(100, adaptive=False)
    world, (ticket,) = flying(wide)
    world.turnstile.again(ticket, Seen("throttled", 20.0), 20.0)
    assert next_start(world) == pytest.approx(20), "asked: everyone waits"
    world.turnstile.unpause()
    assert next_start(world) == pytest.approx(20), "the end of a pause doesn't end it"

    world, _ = flying(wide)
    world.turnstile.pause(30)
    world.turnstile.pause(10)
    assert next_start(world) == pytest.approx(30), "paused: the longest counts"
    world.turnstile.unpause()
    assert next_start(world) == 0

    world, (ticket,) = flying(wide)
    world.turnstile.again(ticket, Seen("overloaded", None), 0.5)
    assert next_start(world) == 0, "a decrease holds nobody back"

    world, (ticket,) = flying(wide)
    world.turnstile.pause(5)
    world.turnstile.again(ticket, Seen("throttled", 20.0), 20.0)
    world.turnstile.unpause()
    assert next_start(world) == pytest.approx(20)


def slowed(world: World) -> int:
    return sum(change.what == "slowed" for change in world.told)


def test_one_event_makes_one_decrease() -> None:
    world, tickets = flying(Limits(100), 12)
    for ticket in tickets[:6]:
        world.turnstile.again(ticket, Seen("overloaded"), 1.0)
    assert slowed(world) == 1 and world.turnstile.width == 8
    world.now += COOLDOWN + 0.01
    for ticket in tickets[6:]:
        world.turnstile.again(ticket, Seen("overloaded"), 1.0)
    assert slowed(world) == 1, "they started before it"
    world.now += 5
    given = [ticket for ticket, _ in world.turnstile.grants()]
    assert len(given) == 8
    world.now += 0.1
    world.turnstile.again(given[0], Seen("overloaded"), 1.0)
    assert slowed(world) == 2 and world.turnstile.width == 5


def test_concurrency_grows_back_by_one_a_round() -> None:
    world, tickets = flying(Limits(100), 10)
    world.turnstile.again(tickets[0], Seen("overloaded"), 0.0)
    assert world.turnstile.width == 7
    for ticket in tickets[1:]:
        world.turnstile.leave(ticket, Seen("served"))
    for _ in range(3):
        world.now += 1
        ring = [Ticket() for _ in range(30)]
        for ticket in ring:
            world.turnstile.enter(ticket)
        given = [ticket for ticket, _ in world.turnstile.grants()]
        for ticket in given:
            world.turnstile.leave(ticket, Seen("served"))
            for each, _ in world.turnstile.grants():
                given.append(each)
        for ticket in ring:
            world.turnstile.leave(ticket, Seen("served"))
    assert 8 <= world.turnstile.width <= 100


def test_another_try_goes_before_new_calls_and_keeps_its_own_wait() -> None:
    world, (ticket,) = flying(Limits(1, adaptive=False))
    waits = [Ticket() for _ in range(3)]
    for each in waits:
        world.turnstile.enter(each)
    world.turnstile.again(ticket, Seen("failed"), 2.0)
    assert [each for each, _ in world.turnstile.grants()] == [waits[0]], "until then others may"
    world.now += 2
    world.turnstile.leave(waits[0], Seen("served"))
    assert [each for each, _ in world.turnstile.grants()] == [ticket]


def test_retuned_while_calls_wait() -> None:
    world = World(Limits(1000, 60), bucket=math.inf)
    for _ in range(200):
        world.trial(1)
    world.run(30.0)
    before = len(world.starts)
    assert 29 <= before <= 31
    world.turnstile.retune(Limits(1000, 1200))
    world.run(35.0)
    assert 90 <= len(world.starts) - before <= 105
    world.turnstile.retune(Limits(1000, 1200, share=0.1))
    now = len(world.starts)
    world.run(60.0)
    assert len(world.starts) - now <= 1, "the last minute is full already"
    assert [change.facts for change in world.told if change.what == "retuned"] == [{"requests": 1200}, {"share": 0.1}]
    world.run()
    assert len(world.served) == 200


def test_a_learned_limit_is_told_once() -> None:
    world = World(Limits(1000), rate=10, bucket=10, tells=True)
    for _ in range(30):
        world.trial(2)
    world.run()
    assert [change.facts for change in world.told if change.what == "learned"] == [{"requests": 600}]
    assert world.turnstile.rates()["requests"] == pytest.approx(600 * 0.99)


def test_tokens_are_reserved_until_the_reply_says_what_was_used() -> None:
    world = World(Limits(100, tokens=10_000, adaptive=False), bucket=math.inf, latency=1.0)
    for _ in range(100):
        world.trial(1, Weight(400, 900), Used(100, 100))
    world.run(0.9)
    assert len(world.starts) == 1, "the first call's reservation is all that is known"
    world.run()
    assert world.served[-1] <= 100 * 200 / (9000 / 60) + 15


def test_a_throttled_try_weighs_nothing() -> None:
    world = World(Limits(100, tokens=6000, adaptive=False), bucket=math.inf)
    ticket = Ticket(lambda: Weight(0, 6000))
    world.turnstile.enter(ticket)
    assert world.turnstile.grants()
    world.turnstile.again(ticket, Seen("throttled", 1.0), 1.0)
    world.now = 61.0
    assert [each for each, _ in world.turnstile.grants()] == [ticket]


def test_bytes_of_a_token_are_learned() -> None:
    world = World(Limits(1, input_tokens=1_000_000))
    for _ in range(200):
        world.trial(1, Weight(8000, 10), Used(1000, 5))
    world.run()
    assert 7 <= world.turnstile._bytes_a_token <= 8
