"""Tables that reuse answers: what a hit changes and what it doesn't, and a kill at any point of two trials that share their questions."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from deep20ray.actions import Ask, Guess
from deep20ray.answers import Role
from deep20ray.game import Ended
from deep20ray.reuse import ReusePolicy
from deep20ray.seeds import TrialId
from deep20ray_actors.messages import GuesserMessage, Message
from deep20ray_actors.outcomes import CallResult, Outcome, ServerFault
from deep20ray_cluster.errors import PlanMismatch
from deep20ray_cluster.journal import Event
from deep20ray_cluster.memory import Memory
from deep20ray_cluster.owner import Owner
from deep20ray_cluster.pools import Lost
from deep20ray_cluster.table import Infrastructure

from .fakes import GAME, TRIAL, Desk, Killed, MemoryJournal, owner, play, script

ONE = TRIAL
TWO = replace(TRIAL, run_id="20261201T000000Z-other-0123456789ab")
"""Of another run with the same seed: its trial has the same id."""
THREE = replace(TRIAL, id=TrialId("cd" * 32), round=2)
TRIALS = {trial.key: trial for trial in (ONE, TWO, THREE)}
ASKS = sum('"ASK"' in move for move in GAME)


class Slow(Desk):
    """Lets others go on while it waits."""

    async def call(
        self, role: Role, route: str, message: Message, seed: int | None, before: Callable[[], Awaitable[None]]
    ) -> CallResult | Lost:
        await asyncio.sleep(0)
        found = await super().call(role, route, message, seed, before)
        await asyncio.sleep(0)
        return found


def rebuilt(policy: ReusePolicy, events: list[Event]) -> Owner:
    """An owner out of a journal, as a drive makes it."""
    answers = owner(policy)
    for event in events:
        if event.kind == "closed" and event.body["kind"] == "ask":
            place = answers.place(TRIALS[event.run, event.trial], Ask(event.body["question"]))  # type: ignore[index]
            if place is not None:
                answers.keep(place, event)
    return answers


def closed(events: list[Event], trial: object) -> list[dict[str, Any]]:
    return [event.body for event in events if event.kind == "closed" and (event.run, event.trial) == trial]


def without_source(bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in body.items() if name not in ("reused", "adjudication_microusd")} for body in bodies]


def answers_of(events: list[Event], trial: object) -> list[dict[str, Any]]:
    """Without what a clock says of them."""
    return [{name: value for name, value in body.items() if name != "evidence"} for body in without_source(closed(events, trial))]


async def test_a_hit_plays_the_same_game_and_asks_no_adjudicator() -> None:
    answers, journal = owner(ReusePolicy.SWEEP), MemoryJournal()
    first = await play(Desk(script(GAME)), journal, answers=answers)
    desk = Desk(script(GAME))
    second = await play(desk, journal, answers=answers, trial=TWO)
    assert (second.reason, second.counted, second.score) == (first.reason, first.counted, first.score)
    assert {role for role, _, _ in desk.sent} == {Role.GUESSER, Role.VALIDATOR}
    one, two = closed(journal.events, ONE.key), closed(journal.events, TWO.key)
    assert without_source(one) == without_source(two), "evidence, path and every adjudicator's word with it"
    reused = [body["reused"] for body in two if body["kind"] == "ask"]
    assert len(reused) == ASKS and answers.hits == ASKS
    assert [(source["run"], source["trial"], source["turn"], source["policy"]) for source in reused] == [
        (ONE.run_id, ONE.id, turn, "sweep") for turn in (1, 2, 5, 6)
    ]
    assert [source["cost_microusd"] for source in reused] == [body["adjudication_microusd"] for body in one if body["kind"] == "ask"]


async def test_the_guesser_is_sent_the_same_whether_an_answer_is_reused_or_not() -> None:
    answers = owner(ReusePolicy.SWEEP)
    await play(Desk(script(GAME)), MemoryJournal(), answers=answers)
    fresh, reusing = Desk(script(GAME)), Desk(script(GAME))
    await play(fresh, MemoryJournal(), trial=THREE)
    await play(reusing, MemoryJournal(), answers=answers, trial=THREE)
    told = [[(message, seed) for role, message, seed in desk.sent if role in (Role.GUESSER, Role.VALIDATOR)] for desk in (fresh, reusing)]
    assert told[0] == told[1]
    assert len(reusing.sent) < len(fresh.sent)


async def test_a_question_repeated_in_a_trial_is_counted_again_and_costs_nothing() -> None:
    moves = [Ask("Is it alive? NO").canonical, Ask(" Is it  alive? NO").canonical, Guess("kite", "a toy").canonical]
    desk, journal = Desk(script(moves)), MemoryJournal()
    ended = await play(desk, journal, answers=owner(ReusePolicy.TRIAL))
    assert ended.counted == 2
    assert sum(role is Role.ORACLE for role, _, _ in desk.sent) == 2, "one search and one answer"
    first, second, _ = closed(journal.events, ONE.key)
    assert second["counted"] and second["reused"]["policy"] == "trial" and "reused" not in first


async def test_degenerate_questions_are_asked_every_time() -> None:
    moves = [Ask("?").canonical, Ask("?").canonical, Guess("kite", "a toy").canonical]

    def roles(role: Role, message: Message, seed: int | None) -> Outcome:
        if isinstance(message, GuesserMessage):
            return script(moves)(role, message, seed)
        question = getattr(message, "question", None)
        return script(moves)(role, message.model_copy(update={"question": "NO"}) if question else message, seed)

    journal = MemoryJournal()
    await play(Desk(roles), journal, answers=owner(ReusePolicy.SWEEP))
    assert [body.get("degenerate", False) for body in closed(journal.events, ONE.key)] == [True, True, False]
    assert not [event for event in journal.events if event.kind == "reused"]


async def test_a_hit_is_on_disk_before_the_trial_goes_on_and_after_its_source() -> None:
    answers, journal = owner(ReusePolicy.SWEEP), MemoryJournal()
    await play(Desk(script(GAME)), journal, answers=answers)
    await play(Desk(script(GAME)), journal, answers=answers, trial=TWO)
    check_order(journal.events)
    assert sum(event.kind == "reused" for event in journal.events) == ASKS


def check_order(events: list[Event]) -> None:
    """Every hit stands after the turn that it comes from, which was answered afresh, and is its own turn's only answer."""
    fresh = {}
    for event in events:
        if event.kind == "closed" and event.body["kind"] == "ask" and "reused" not in event.body:
            fresh[event.run, event.trial, event.turn] = event
        if event.kind == "reused":
            source = event.body["source"]
            origin = fresh[source["run"], source["trial"], source["turn"]]
            assert (origin.at, origin.body["token"]) == (source["at"], event.body["token"])
    hits = {(event.run, event.trial, event.turn) for event in events if event.kind == "reused"}
    answered = {(event.run, event.trial, event.turn) for event in events if event.kind == "started" and event.call in ("search", "oracle")}
    assert not hits & answered


async def both(journal: MemoryJournal, answers: Owner, desk: Desk) -> list[Ended | BaseException]:
    """Plays the trials of two runs side by side, as far as their journal lets them."""
    memories = {}
    for trial in (ONE, TWO):
        memory = Memory.of(event for event in journal.events if (event.run, event.trial) == trial.key)
        for event in memory.dangling:
            journal.note(replace(event, kind="lost"))
            memory.lose(event)
        memory.dangling = []
        memories[trial.key] = memory
    return await asyncio.gather(
        *(play(desk, journal, memories[trial.key], answers=answers, trial=trial) for trial in (ONE, TWO)), return_exceptions=True
    )


async def test_two_trials_side_by_side_ask_every_question_once() -> None:
    desk, journal = Slow(script(GAME)), MemoryJournal()
    await both(journal, owner(ReusePolicy.SWEEP), desk)
    assert sum(type(message).__name__ == "OracleMessage" for _, message, _ in desk.sent) == ASKS
    check_order(journal.events)


async def test_a_kill_at_any_point_of_two_trials_that_share_answers() -> None:
    whole = MemoryJournal()
    expected = await both(whole, owner(ReusePolicy.SWEEP), Slow(script(GAME)))
    for survives in range(len(whole.events)):
        journal = MemoryJournal(survives=survives)
        died = await both(journal, owner(ReusePolicy.SWEEP), Slow(script(GAME)))
        assert any(isinstance(end, Killed) for end in died) and len(journal.events) == survives
        before = list(journal.events)
        paid = {(event.run, event.turn, event.call) for event in before if event.kind == "reply"}
        hits = [event for event in before if event.kind == "reused"]
        resumed = MemoryJournal(before)
        ended = await both(resumed, rebuilt(ReusePolicy.SWEEP, before), Slow(script(GAME)))
        assert ended == expected, survives
        again = {(event.run, event.turn, event.call) for event in resumed.events[survives:] if event.kind == "started"}
        assert not again & paid, f"paid twice after {survives} events"
        check_order(resumed.events)
        kept = [event for event in resumed.events if event.kind == "reused"]
        assert kept[: len(hits)] == hits, "a hit is never looked up again"
        assert len({(event.run, event.turn) for event in kept}) == len(kept)
        for trial in (ONE, TWO):
            assert answers_of(resumed.events, trial.key) == answers_of(whole.events, trial.key)
        # The one that was in the middle of an answer takes it up before the other can ask for the same.
        fresh = [event for event in resumed.events if event.kind == "closed" and event.body["kind"] == "ask" and "reused" not in event.body]
        assert len(fresh) <= ASKS + 1, survives


async def test_a_journalled_hit_on_another_question_is_not_used() -> None:
    answers, journal = owner(ReusePolicy.SWEEP), MemoryJournal()
    await play(Desk(script(GAME)), journal, answers=answers)
    await play(Desk(script(GAME)), journal, answers=answers, trial=TWO)
    events = [event for event in journal.events if event.run == TWO.run_id]
    next(event for event in events if event.kind == "reused").body["key"] = "0" * 64
    with pytest.raises(PlanMismatch, match="another question"):
        await play(Desk(script(GAME)), MemoryJournal(events), answers=answers, trial=TWO)


async def test_a_repair_may_take_an_answer_that_was_given_since_but_keeps_what_was_paid() -> None:
    """Search failed: nothing of the turn is paid for, so a hit is as good. The Reviewer failed: the search and the Oracle stay."""
    for broken, reuses in (("SearchMessage", True), ("ReviewerMessage", False)):
        good = script(GAME)

        def bad(role: Role, message: Message, seed: int | None, broken: str = broken) -> Outcome:
            return ServerFault("500") if type(message).__name__ == broken else script(GAME)(role, message, seed)

        answers, journal = owner(ReusePolicy.SWEEP), MemoryJournal()
        with pytest.raises(Infrastructure) as error:
            await play(Desk(bad), journal, answers=answers)
        body = {"cause": error.value.cause, "detail": ""}
        journal.note(Event(ONE.run_id, ONE.id, 1, error.value.turn, "infrastructure", error.value.call, 0, 1, body))
        assert not answers._flights
        await play(Desk(good), journal, answers=answers, trial=TWO)
        journal.note(Event(ONE.run_id, ONE.id, 2, 0, "attempt", "", 0, 2, {"of": 3}))
        desk = Desk(good)
        await play(desk, journal, answers=answers)
        asked = [type(message).__name__ for _, message, _ in desk.sent]
        assert ("ReviewerMessage" in asked) is not reuses
        assert "SearchMessage" not in asked and "OracleMessage" not in asked
        failed = (ONE.run_id, 1, error.value.turn)
        check_order([event for event in journal.events if (event.run, event.attempt, event.turn) != failed])


async def test_a_trial_that_ends_while_it_waits_keeps_its_guessers_reply() -> None:
    answers, journal = owner(ReusePolicy.SWEEP), MemoryJournal()
    place = answers.place(ONE, Ask("Is it alive? NO"))
    assert place is not None
    with answers.fly(place):
        waiting = asyncio.create_task(play(Desk(script(GAME)), journal, answers=answers, trial=TWO))
        for _ in range(5):
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    journal.note(Event(TWO.run_id, TWO.id, 1, 1, "infrastructure", "reuse", 0, 1, {"cause": "trial_deadline", "detail": ""}))
    journal.note(Event(TWO.run_id, TWO.id, 2, 0, "attempt", "", 0, 2, {"of": 3}))
    desk = Desk(script(GAME))
    await play(desk, journal, answers=answers, trial=TWO)
    assert sum(isinstance(message, GuesserMessage) and not message.history for _, message, _ in desk.sent) == 0
