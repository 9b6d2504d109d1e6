"""Gates on a fake clock: order, cancellation, pauses, pace, and shutting."""

import asyncio
import heapq

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep20ray_actors.leases import Again, Seen
from deep20ray_actors.outcomes import Usage
from deep20ray_cluster.gates import Gate, Shut, used
from deep20ray_cluster.limits import Change, Limits, Used


class FakeTime:
    """A clock that stands still until ``run_until``; sleepers wake in order, each as late as ``overshoot`` says."""

    def __init__(self, overshoot: float = 0.0) -> None:
        self.now = 100.0
        self.overshoot = overshoot
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self._count += 1
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + max(seconds, 0) + self.overshoot, self._count, wake))
        await wake

    async def run_until(self, end: float) -> None:
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            at, _, wake = heapq.heappop(self._sleepers)
            self.now = max(self.now, at)
            if not wake.done():
                wake.set_result(None)
            await settle()
        self.now = end


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def gate(time: FakeTime, *, width: int = 1, rpm: int | None = None) -> Gate:
    return Gate("account", Limits(width, rpm, adaptive=False), clock=time.clock, sleep=time.sleep)


class Caller:
    """Takes a lease, waits as it says, and holds it until told; then goes on as ``tries`` say."""

    def __init__(self, gate_: Gate, log: list[tuple[int, float]], name: int, time: FakeTime, tries: int = 1) -> None:
        self.leave = asyncio.Event()
        self.task = asyncio.create_task(self._call(gate_, log, name, time, tries))

    async def _call(self, gate_: Gate, log: list[tuple[int, float]], name: int, time: FakeTime, tries: int) -> None:
        async with gate_.enter() as passed:
            lease = passed.lease
            for left in range(tries)[::-1]:
                assert lease.account == "account"
                log.append((name, time.now + lease.after))
                await self.leave.wait()
                if left:
                    lease = await passed.again(Again(0, Seen("throttled", 3.0), 3.0))


async def test_no_more_than_the_width_and_first_come_first_served() -> None:
    time, log = FakeTime(), []
    gate_ = gate(time, width=2)
    callers = [Caller(gate_, log, name, time) for name in range(5)]
    await settle()
    assert [name for name, _ in log] == [0, 1]
    assert (gate_.in_flight, gate_.waiting) == (2, 3)
    for caller in (callers[1], callers[0], callers[3], callers[2], callers[4]):
        caller.leave.set()
        await settle()
    assert [name for name, _ in log] == [0, 1, 2, 3, 4]
    assert (gate_.in_flight, gate_.waiting) == (0, 0)


async def test_a_newcomer_does_not_overtake_who_waits() -> None:
    time, log = FakeTime(), []
    gate_ = gate(time)
    first, _second = Caller(gate_, log, 1, time), Caller(gate_, log, 2, time)
    await settle()
    first.leave.set()
    _third = Caller(gate_, log, 3, time)
    await settle()
    assert [name for name, _ in log] == [1, 2]


@pytest.mark.parametrize("handed_over", [False, True])
async def test_a_cancelled_wait_leaves_no_hole(handed_over: bool) -> None:
    time, log = FakeTime(), []
    gate_ = gate(time)
    callers = [Caller(gate_, log, name, time) for name in range(3)]
    await settle()
    if handed_over:  # its turn has come, but it has not run yet
        callers[0].leave.set()
        await asyncio.sleep(0)
    callers[1].task.cancel()
    callers[0].leave.set()
    await settle()
    assert [name for name, _ in log][-1] == 2
    callers[2].leave.set()
    await settle()
    assert (gate_.in_flight, gate_.waiting) == (0, 0)


async def test_a_failed_call_gives_its_lease_back() -> None:
    gate_ = gate(FakeTime())
    with pytest.raises(ZeroDivisionError):
        async with gate_.enter():
            raise ZeroDivisionError
    assert gate_.in_flight == 0


@pytest.mark.failure_case(26)
async def test_a_pause_holds_everyone_and_a_shorter_one_shortens_nothing() -> None:
    time, log = FakeTime(), []
    gate_ = gate(time, width=10)
    gate_.pause(30)
    gate_.pause(5)
    for name in range(3):
        Caller(gate_, log, name, time)
    await time.run_until(129.9)
    assert log == []
    await time.run_until(130)
    assert [name for name, _ in log] == [0, 1, 2]


async def test_a_pause_in_mid_wait_is_kept() -> None:
    time, log = FakeTime(), []
    gate_ = gate(time, width=10, rpm=60)
    for name in range(3):
        Caller(gate_, log, name, time)
    await time.run_until(100.5)
    assert [name for name, _ in log] == [0]
    gate_.pause(60)
    await time.run_until(160.4)
    assert [name for name, _ in log] == [0]
    await time.run_until(170)
    assert [name for name, _ in log] == [0, 1, 2]
    assert log[2][1] - log[1][1] >= 0.98


@settings(max_examples=60, deadline=None)
@given(
    rpm=st.integers(1, 3000),
    overshoot=st.sampled_from([0.0, 0.001, 0.004, 0.02, 0.5]),
    arrivals=st.lists(st.floats(0, 120), min_size=1, max_size=150),
)
def test_no_minute_ever_holds_more_starts_than_the_rate(rpm: int, overshoot: float, arrivals: list[float]) -> None:
    starts = asyncio.run(_starts(rpm, overshoot, arrivals))
    assert len(starts) == len(arrivals)
    for index in range(len(starts) - rpm):
        assert starts[index + rpm] - starts[index] > 60, (index, starts)


async def _starts(rpm: int, overshoot: float, arrivals: list[float]) -> list[float]:
    time = FakeTime(overshoot)
    gate_, starts = gate(time, width=1000, rpm=rpm), []

    async def call(after: float) -> None:
        if after:
            await time.sleep(after)
        async with gate_.enter() as passed:
            starts.append(time.now + passed.lease.after)

    tasks = [asyncio.create_task(call(after)) for after in arrivals]
    await time.run_until(1e9)
    await asyncio.gather(*tasks)
    return starts


async def test_the_pace_is_nearly_the_rate_even_when_timers_are_late() -> None:
    starts = await _starts(600, 0.004, [0.0] * 301)
    assert 30 <= starts[-1] - starts[0] <= 30.5


async def test_leases_are_given_ahead_in_blocks_and_each_says_how_long_to_wait() -> None:
    time, log = FakeTime(), []
    gate_ = gate(time, width=1000, rpm=60_000)
    for name in range(200):
        Caller(gate_, log, name, time)
    await settle()
    assert 40 <= len(log) <= 75, "as many as the next 50 ms hold, and a little for lateness"
    assert [at for _, at in log] == sorted(at for _, at in log)
    assert 0.045 <= log[-1][1] - time.now <= 0.05
    await time.run_until(100.2)
    assert [name for name, _ in log] == list(range(200))


async def test_another_try_waits_as_it_must_and_goes_before_those_who_wait() -> None:
    time, log = FakeTime(), []
    gate_ = gate(time)
    first, second = Caller(gate_, log, 1, time, tries=2), Caller(gate_, log, 2, time)
    await settle()
    first.leave.set()
    await settle()
    assert (log, gate_.in_flight, gate_.throttled) == ([(1, 100.0)], 0, 1), "its second asked wait is everyone's"
    await time.run_until(101.95)
    assert log == [(1, 100.0)]
    await time.run_until(102.0)
    assert log == [(1, 100.0), (2, 102.0)], "the others wait a second less, for waits are rounded up"
    second.leave.set()
    await time.run_until(104)
    assert log == [(1, 100.0), (2, 102.0), (1, 103.0)]
    assert (gate_.in_flight, gate_.waiting) == (0, 0)


async def test_a_call_under_way_goes_on_through_a_gate_that_is_shut() -> None:
    time, log = FakeTime(), []
    gate_ = gate(time)
    first = Caller(gate_, log, 1, time, tries=3)
    await settle()
    gate_.shut()
    first.leave.set()
    await time.run_until(200)
    assert [name for name, _ in log] == [1, 1, 1]
    await first.task


async def test_a_call_cancelled_while_it_waits_for_another_try_leaves_nothing() -> None:
    time, log = FakeTime(), []
    gate_ = gate(time)
    first = Caller(gate_, log, 1, time, tries=2)
    await settle()
    first.leave.set()
    await settle()
    assert (gate_.in_flight, gate_.waiting) == (0, 1)
    first.task.cancel()
    await settle()
    assert (gate_.in_flight, gate_.waiting) == (0, 0)
    Caller(gate_, log, 2, time)
    await time.run_until(110)
    assert [name for name, _ in log] == [1, 2]


async def test_those_who_wait_feel_new_settings_at_once_and_the_change_is_told() -> None:
    time, log = FakeTime(), []
    told: list[Change] = []
    gate_ = Gate("account", Limits(1, adaptive=False), clock=time.clock, sleep=time.sleep, record=told.append)
    for name in range(3):
        Caller(gate_, log, name, time)
    await settle()
    assert len(log) == 1
    gate_.retune(Limits(3, adaptive=False))
    gate_.retune(Limits(3, adaptive=False))
    await settle()
    assert len(log) == 3
    assert told == [Change("account", "retuned", {"concurrency": 3})]


async def test_a_pause_can_be_ended() -> None:
    time, log = FakeTime(), []
    gate_ = gate(time)
    gate_.pause(1000)
    Caller(gate_, log, 1, time)
    await time.run_until(200)
    assert log == []
    gate_.unpause()
    await settle()
    assert log == [(1, 200.0)]


async def test_a_mistake_in_the_timer_ends_every_wait() -> None:
    time = FakeTime()
    gate_ = gate(time)
    gate_.pause(5)
    caller = Caller(gate_, [], 1, time)
    await settle()
    gate_._turnstile.grants = lambda: 1 // 0  # type: ignore[method-assign,assignment,return-value]
    await time.run_until(110)
    del gate_._turnstile.grants
    with pytest.raises(ZeroDivisionError):
        await caller.task


def test_all_input_and_all_output_count_and_what_is_unknown_is_unknown() -> None:
    assert used(Usage(1, 2, 3, 4, 5, 6)) == Used(10, 11)
    assert used(Usage(1, 2, None, 4, 5, 6)) == Used(None, 11)


async def test_a_cancelled_pacer_costs_no_start() -> None:
    time, log = FakeTime(), []
    gate_ = gate(time, width=10, rpm=60)
    callers = [Caller(gate_, log, name, time) for name in range(3)]
    await time.run_until(100.5)
    callers[1].task.cancel()
    await time.run_until(101.1)
    assert [name for name, _ in log] == [0, 2]


@pytest.mark.parametrize("rpm", [None, 1])
async def test_shutting_ends_every_wait_at_once_and_lets_holders_finish(rpm: int | None) -> None:
    time, log = FakeTime(), []
    gate_ = gate(time, width=1 if rpm is None else 10, rpm=rpm)
    callers = [Caller(gate_, log, name, time) for name in range(4)]
    await settle()
    gate_.shut()
    await settle()
    assert [name for name, _ in log] == [0]
    for caller in callers[1:]:
        with pytest.raises(Shut):
            caller.task.result()
    callers[0].leave.set()
    await settle()
    assert (gate_.in_flight, gate_.waiting) == (0, 0)
    with pytest.raises(Shut):
        async with gate_.enter():
            pass
