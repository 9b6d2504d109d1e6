"""Pools over fake actors: whatever an actor does, no call waits for ever."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from deep20ray_actors.leases import Again, Grant, Lease, Seen
from deep20ray_actors.messages import SearchMessage
from deep20ray_actors.outcomes import Call, CallResult, Completed
from deep20ray_cluster.errors import ClusterFailed
from deep20ray_cluster.pools import ActorLost, Lost, Pool

from .fakes import audit

CALL = Call(0, "route", SearchMessage(query="kite"), None, Lease("account", 1))


class Actor:
    """A fake role actor. It answers what it is given, unless told to die, to hang, or to make a mistake."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.finished: list[CallResult | Again] = []
        self.news = asyncio.Event()
        self.answers = True
        self.closed = False
        self.submit_raises: BaseException | None = None
        self.starts = asyncio.Event()
        self.starts.set()
        self._dead: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def ready(self) -> None:
        await self.starts.wait()

    async def submit(self, calls: list[Call | Grant]) -> None:
        if self.submit_raises is not None:
            raise self.submit_raises
        self.batches.append(calls)
        if self.answers:
            self.answer(*(call for call in calls if isinstance(call, Call)))

    def answer(self, *calls: Call) -> None:
        self.finished += [CallResult(call.slot, Completed(str(call.slot)), audit()) for call in calls]
        self.news.set()

    def die(self, error: BaseException | None = None) -> None:
        self._dead.set_exception(error or ActorLost("it died"))

    async def collect(self, wait_seconds: float) -> list[CallResult | Again]:
        self.news.clear()
        if not self.finished:
            news: asyncio.Future[Any] = asyncio.ensure_future(self.news.wait())
            try:
                await asyncio.wait([news, self._dead], timeout=wait_seconds, return_when=asyncio.FIRST_COMPLETED)
            finally:
                news.cancel()
        if self._dead.done():
            self._dead.result()
        results, self.finished = self.finished, []
        return results

    async def close(self) -> None:
        self.closed = True


class Cast:
    """Starts actors and keeps them."""

    def __init__(self, prepare: Callable[[Actor], None] = lambda actor: None) -> None:
        self.actors: list[Actor] = []
        self.started = 0
        self._prepare = prepare

    def start(self) -> Actor:
        actor = Actor()
        self._prepare(actor)
        self.actors.append(actor)
        return actor

    def pool(self, size: int = 1, replacements: int = 8) -> Pool:
        pool = Pool("judge", self.start, started=self._count, size=size, replacements=replacements, poll_seconds=0.01)
        pool.open()
        return pool

    def _count(self) -> None:
        self.started += 1


async def settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


async def test_calls_leave_in_batches_and_in_order_and_each_gets_its_own_reply() -> None:
    cast = Cast()
    pool = cast.pool()
    results = await asyncio.gather(*(pool.ask(CALL) for _ in range(5)))
    assert [result.outcome for result in results] == [Completed(str(number)) for number in range(1, 6)]  # type: ignore[union-attr]
    assert [[call.slot for call in batch] for batch in cast.actors[0].batches] == [[1, 2, 3, 4, 5]]
    assert cast.started == 1
    await pool.close()
    assert cast.actors[0].closed


async def test_replies_may_come_in_any_order() -> None:
    cast = Cast(lambda actor: setattr(actor, "answers", False))
    pool = cast.pool()
    asks = [asyncio.create_task(pool.ask(CALL)) for _ in range(3)]
    await settle()
    calls = cast.actors[0].batches[0]
    cast.actors[0].answer(*reversed(calls))
    assert [(await ask).outcome.text for ask in asks] == ["1", "2", "3"]  # type: ignore[union-attr]
    await pool.close()


async def test_a_lost_actor_is_replaced_and_its_calls_come_back_as_lost() -> None:
    cast = Cast(lambda actor: setattr(actor, "answers", False))
    pool = cast.pool()
    asks = [asyncio.create_task(pool.ask(CALL)) for _ in range(3)]
    await settle()
    cast.actors[0].die()
    assert await asyncio.gather(*asks) == [Lost(), Lost(), Lost()]
    assert pool.replaced == 1
    again = asyncio.create_task(pool.ask(CALL))
    await settle()
    cast.actors[1].answer(*cast.actors[1].batches[0])
    assert isinstance(await again, CallResult)
    assert cast.started == 2
    await pool.close()


async def test_a_submit_that_fails_while_collect_waits_loses_the_batch() -> None:
    cast = Cast()
    pool = cast.pool()
    await settle()
    cast.actors[0].submit_raises = ActorLost("it stopped answering")
    assert await pool.ask(CALL) == Lost()
    assert isinstance(await pool.ask(CALL), CallResult), "the next actor serves"
    await pool.close()


async def test_losses_beyond_the_budget_fail_every_call_that_waits_and_every_later_one() -> None:
    cast = Cast(lambda actor: setattr(actor, "answers", False))
    pool = cast.pool(replacements=1)
    for _ in range(2):
        ask = asyncio.create_task(pool.ask(CALL))
        await settle()
        cast.actors[-1].die()
        await settle()
    with pytest.raises(ClusterFailed, match=r"judge worker was lost 2 times.*it died.*resume"):
        await ask
    with pytest.raises(ClusterFailed):
        await pool.ask(CALL)
    assert len(cast.actors) == 2
    await pool.close()


async def test_the_other_actors_calls_end_too_when_the_budget_is_spent() -> None:
    cast = Cast(lambda actor: setattr(actor, "answers", False))
    pool = cast.pool(size=2, replacements=0)
    asks = [asyncio.create_task(pool.ask(CALL)) for _ in range(2)]
    await settle()
    assert [len(actor.batches) for actor in cast.actors] == [1, 1], "the load is spread"
    cast.actors[0].die()
    results = await asyncio.gather(*asks, return_exceptions=True)
    assert all(isinstance(result, ClusterFailed) for result in results)
    await pool.close()
    assert cast.actors[1].closed


@pytest.mark.parametrize("where", ["start", "ready", "submit"])
async def test_a_mistake_of_ours_fails_the_pool_instead_of_hanging_it(where: str) -> None:
    cast = Cast(lambda actor: setattr(actor, "submit_raises", ZeroDivisionError()))
    starts = {"start": lambda: 1 / 0, "ready": _Unready, "submit": cast.start}
    pool = Pool("judge", starts[where])  # type: ignore[arg-type]
    pool.open()
    with pytest.raises(ZeroDivisionError):
        async with asyncio.timeout(5):
            await pool.ask(CALL)
    await pool.close()


async def test_a_mistake_while_collecting_fails_the_calls_that_wait() -> None:
    cast = Cast(lambda actor: setattr(actor, "answers", False))
    pool = cast.pool()
    ask = asyncio.create_task(pool.ask(CALL))
    await settle()
    cast.actors[0].die(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        async with asyncio.timeout(5):
            await ask
    await pool.close()


class _Unready:
    async def ready(self) -> None:
        raise ZeroDivisionError

    async def close(self) -> None: ...


async def test_calls_wait_for_an_actor_that_is_still_starting() -> None:
    cast = Cast(lambda actor: actor.starts.clear())
    pool = cast.pool()
    ask = asyncio.create_task(pool.ask(CALL))
    await settle()
    assert not ask.done()
    assert cast.started == 0
    cast.actors[0].starts.set()
    assert isinstance(await ask, CallResult)
    await pool.close()


async def test_failing_the_pool_from_outside_ends_every_call() -> None:
    cast = Cast(lambda actor: setattr(actor, "answers", False))
    pool = cast.pool()
    ask = asyncio.create_task(pool.ask(CALL))
    await settle()
    pool.fail(ClusterFailed("the raylet died"))
    pool.fail(ClusterFailed("second"))
    with pytest.raises(ClusterFailed, match="raylet"):
        await ask
    with pytest.raises(ClusterFailed, match="raylet"):
        await pool.ask(CALL)
    await pool.close()


async def test_closing_ends_calls_that_still_wait() -> None:
    cast = Cast(lambda actor: setattr(actor, "answers", False))
    pool = cast.pool()
    ask = asyncio.create_task(pool.ask(CALL))
    await settle()
    await pool.close()
    with pytest.raises(ClusterFailed, match="closed"):
        await ask


async def test_a_reply_nobody_waits_for_is_dropped() -> None:
    cast = Cast(lambda actor: setattr(actor, "answers", False))
    pool = cast.pool()
    ask = asyncio.create_task(pool.ask(CALL))
    await settle()
    ask.cancel()
    await settle()
    cast.actors[0].answer(*cast.actors[0].batches[0])
    await settle()
    cast.actors[0].answers = True
    assert isinstance(await pool.ask(CALL), CallResult)
    await pool.close()


async def test_a_call_that_its_actor_forgot_is_lost_after_its_deadline() -> None:
    cast = Cast(lambda actor: setattr(actor, "answers", False))
    pool = cast.pool()
    assert await pool.ask(CALL, 0.01) == Lost()
    await pool.close()


AGAIN = Again(1, Seen("throttled", 2.0), 2.0)


async def test_the_lease_of_another_try_goes_to_the_actor_that_asked() -> None:
    cast = Cast(lambda actor: setattr(actor, "answers", False))
    pool = cast.pool()
    asked: list[Again] = []

    async def lease(again: Again) -> Lease:
        asked.append(again)
        return Lease("account", 2)

    ask = asyncio.create_task(pool.ask(CALL, None, lease))
    await settle()
    (actor,) = cast.actors
    actor.finished.append(AGAIN)
    actor.news.set()
    await settle()
    assert asked == [AGAIN] and actor.batches[1] == [Grant(1, Lease("account", 2))]
    actor.answer(*actor.batches[0])
    assert isinstance(await ask, CallResult)
    actor.finished.append(AGAIN)
    actor.news.set()
    await settle()
    assert len(actor.batches) == 2, "a call that has ended gets no lease"
    await pool.close()


async def test_a_call_that_ends_while_it_waits_for_a_lease_waits_no_longer() -> None:
    cast = Cast(lambda actor: setattr(actor, "answers", False))
    pool = cast.pool()
    cancelled = asyncio.Event()

    async def lease(again: Again) -> Lease:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    ask = asyncio.create_task(pool.ask(CALL, None, lease))
    await settle()
    cast.actors[0].finished.append(AGAIN)
    cast.actors[0].answer(*cast.actors[0].batches[0])
    assert isinstance(await ask, CallResult)
    await settle()
    assert cancelled.is_set()
    await pool.close()


async def test_a_lease_that_can_t_come_ends_the_wait_for_its_call() -> None:
    cast = Cast(lambda actor: setattr(actor, "answers", False))
    pool = cast.pool()

    async def lease(again: Again) -> Lease:
        raise ZeroDivisionError

    ask = asyncio.create_task(pool.ask(CALL, None, lease))
    await settle()
    cast.actors[0].finished.append(AGAIN)
    cast.actors[0].news.set()
    with pytest.raises(ZeroDivisionError):
        await ask
    await pool.close()


async def test_what_a_lease_waits_in_the_mailbox_is_taken_off_its_wait() -> None:
    clock = [100.0]
    cast = Cast(lambda actor: actor.starts.clear())
    pool = Pool("judge", cast.start, poll_seconds=0.01, clock=lambda: clock[0])
    pool.open()
    asks = [asyncio.create_task(pool.ask(replace(CALL, lease=Lease("account", 1, after)))) for after in (0.0, 0.01, 0.05)]
    await settle()
    clock[0] += 0.02
    cast.actors[0].starts.set()
    await asyncio.gather(*asks)
    assert [call.lease.after for call in cast.actors[0].batches[0]] == [0.0, 0.0, pytest.approx(0.03)]
    await pool.close()


async def test_who_asks_whether_it_is_ready_waits_for_an_actor_or_a_failure() -> None:
    cast = Cast(lambda actor: actor.starts.clear())
    pool = cast.pool()
    waits = asyncio.create_task(pool.ready())
    await settle()
    assert not waits.done()
    cast.actors[0].starts.set()
    await waits
    await pool.ready()
    other = cast.pool()
    waits = asyncio.create_task(other.ready())
    await settle()
    await other.close()
    with pytest.raises(ClusterFailed):
        await waits
    await pool.close()
