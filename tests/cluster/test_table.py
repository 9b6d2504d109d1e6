"""One trial at a table: who is asked what, what is journalled, and what a kill at any point costs."""

import asyncio

import pytest

from deep20ray.answers import Role
from deep20ray.game import Reason
from deep20ray_actors.messages import GuesserMessage, JudgeMessage, OracleMessage, ReviewerMessage, SearchMessage
from deep20ray_actors.outcomes import Completed, Malformed, QuotaExhausted, Refused, ServerFault
from deep20ray_cluster.errors import PlanMismatch
from deep20ray_cluster.journal import Event
from deep20ray_cluster.memory import Memory
from deep20ray_cluster.pools import Lost
from deep20ray_cluster.table import Infrastructure, Parked

from .fakes import GAME, TRIAL, Desk, Killed, MemoryJournal, play, says, script


def closed(events: list[Event]) -> list[tuple[int, object]]:
    return [
        (event.turn, {key: value for key, value in event.body.items() if key != "evidence"}) for event in events if event.kind == "closed"
    ]


async def test_a_game_goes_its_whole_way() -> None:
    desk, journal = Desk(script(GAME)), MemoryJournal()
    ended = await play(desk, journal)
    assert (ended.reason, ended.counted, ended.score) == (Reason.SUCCESS, 6, 6)
    bodies = [body for _, body in closed(journal.events)]
    assert [body["token"] for body in bodies] == ["NO", "YES", None, "NO", "UNKNOWN", "RATHER_YES", None]  # type: ignore[index]
    assert [body.get("path") for body in bodies] == ["agreed", "judged", None, None, "oracle_unknown", "judged", None]  # type: ignore[attr-defined]
    roles = [type(message).__name__ for _, message, _ in desk.sent]
    assert roles.count("JudgeMessage") == 2
    assert roles.count("ReviewerMessage") == 3
    assert roles.count("OracleMessage") == roles.count("SearchMessage") == 4


async def test_no_message_tells_more_than_its_role_may_know() -> None:
    desk = Desk(script(GAME))
    await play(desk, MemoryJournal())
    for _, message, _ in desk.sent:
        text = message.model_dump_json()
        assert "private" not in text
        if isinstance(message, GuesserMessage):
            assert "not an action" not in text and "string; not the bird" not in text and "example.org" not in text
        if isinstance(message, ReviewerMessage | JudgeMessage):
            assert set(type(message).model_fields) == {"subject", "question", "evidence"}


async def test_excerpts_are_folded_before_they_are_looked_for() -> None:
    desk = Desk(script(GAME))
    await play(desk, MemoryJournal())
    reviewed = next(message for _, message, _ in desk.sent if isinstance(message, ReviewerMessage))
    assert [item.excerpt for item in reviewed.evidence] == ["flies in the wind"]


async def test_seeds_differ_by_role_and_turn_and_searches_have_none() -> None:
    desk = Desk(script(GAME))
    await play(desk, MemoryJournal())
    seeds = [seed for _, message, seed in desk.sent if not isinstance(message, SearchMessage)]
    assert len(set(seeds)) == len(seeds)
    assert all(seed is None for _, message, seed in desk.sent if isinstance(message, SearchMessage))


async def test_a_kill_at_any_point_loses_no_journalled_reply_and_changes_nothing() -> None:
    whole = MemoryJournal()
    expected = await play(Desk(script(GAME)), whole)
    for survives in range(len(whole.events)):
        journal = MemoryJournal(survives=survives)
        with pytest.raises(Killed):
            await play(Desk(script(GAME)), journal)
        assert len(journal.events) == survives
        paid = {(event.turn, event.call) for event in journal.events if event.kind == "reply"}
        resumed = MemoryJournal(journal.events)
        memory = Memory.of(resumed.events)
        for event in memory.dangling:
            memory.lose(event)
        desk = Desk(script(GAME))
        ended = await play(desk, resumed, memory)
        assert ended == expected
        assert closed(resumed.events) == closed(whole.events)
        again = {(event.turn, event.call) for event in resumed.events[survives:] if event.kind == "started"}
        assert not again & paid, f"paid twice after {survives} events"
        # Everything asked in both lives: as often as in one, and once more for each call in the air at the kill.
        lost = len(memory.dangling)
        assert len(desk.sent) + len(paid) + lost >= sum(event.kind == "started" for event in whole.events)


async def test_resuming_a_finished_trial_asks_nobody() -> None:
    journal = MemoryJournal()
    await play(Desk(script(GAME)), journal)
    desk = Desk(script([]))
    await play(desk, MemoryJournal(journal.events))
    assert desk.sent == []


async def test_a_reply_to_another_message_is_not_used() -> None:
    journal = MemoryJournal()
    await play(Desk(script(GAME)), journal)
    events = [event for event in journal.events if event.turn < 3]
    events[1].body["message_sha256"] = "0" * 64
    with pytest.raises(PlanMismatch, match="another message"):
        await play(Desk(script(GAME)), MemoryJournal(events))


@pytest.mark.failure_case(17)
async def test_an_unreadable_adjudicator_is_asked_twice_more_byte_for_byte_and_then_given_up() -> None:
    good = script(GAME)

    def bad(role: Role, message: object, seed: int | None) -> object:
        return Completed("I think YES") if role is Role.REVIEWER else good(role, message, seed)  # type: ignore[arg-type]

    desk = Desk(bad)  # type: ignore[arg-type]
    with pytest.raises(Infrastructure) as error:
        await play(desk, MemoryJournal())
    assert (error.value.call, error.value.cause) == ("reviewer", "unreadable_reply")
    asked = [(message, seed) for role, message, seed in desk.sent if role is Role.REVIEWER]
    assert len(asked) == 3
    assert asked[0] == asked[1] == asked[2]


@pytest.mark.failure_case(23)
async def test_a_refusing_adjudicator_is_infrastructure_at_once() -> None:
    good = script(GAME)
    desk = Desk(lambda role, message, seed: Refused("no") if isinstance(message, OracleMessage) else good(role, message, seed))
    with pytest.raises(Infrastructure) as error:
        await play(desk, MemoryJournal())
    assert (error.value.call, error.value.cause) == ("oracle", "refused")
    assert sum(isinstance(message, OracleMessage) for _, message, _ in desk.sent) == 1


@pytest.mark.failure_case(22)
async def test_a_failed_search_is_infrastructure_and_never_an_answer() -> None:
    good = script(GAME)
    desk = Desk(lambda role, message, seed: ServerFault("500") if isinstance(message, SearchMessage) else good(role, message, seed))
    journal = MemoryJournal()
    with pytest.raises(Infrastructure) as error:
        await play(desk, journal)
    assert (error.value.call, error.value.cause) == ("search", "serverfault")
    assert not any(isinstance(message, OracleMessage) for _, message, _ in desk.sent)
    assert closed(journal.events) == []


async def test_exhausted_quota_parks_instead_of_ending_the_trial() -> None:
    good = script(GAME)
    desk = Desk(lambda role, message, seed: QuotaExhausted("no credit") if role is Role.JUDGE else good(role, message, seed))
    journal = MemoryJournal()
    with pytest.raises(Parked):
        await play(desk, journal)
    # Credit is bought; the same attempt goes on with the judge alone.
    desk = Desk(good)
    await play(desk, MemoryJournal(journal.events))
    assert desk.sent[0][0] is Role.JUDGE


async def test_a_lost_call_is_asked_again_and_stays_in_the_ledger() -> None:
    good = script(GAME)
    losses = iter([True, True])

    def flaky(role: Role, message: object, seed: int | None) -> object:
        return Lost() if role is Role.VALIDATOR and next(losses, False) else good(role, message, seed)  # type: ignore[arg-type]

    journal = MemoryJournal()
    ended = await play(Desk(flaky), journal)  # type: ignore[arg-type]
    assert ended.counted == 6
    assert [event.ask for event in journal.events if event.kind == "lost"] == [0, 1]


async def test_repair_keeps_every_reply_but_the_failed_call() -> None:
    good = script(GAME)
    desk = Desk(lambda role, message, seed: ServerFault("500") if role is Role.JUDGE else good(role, message, seed))
    journal = MemoryJournal()
    with pytest.raises(Infrastructure) as error:
        await play(desk, journal)
    failure = error.value
    journal.note(
        Event(TRIAL.run_id, TRIAL.id, 1, failure.turn, "infrastructure", failure.call, 0, 1, {"cause": failure.cause, "detail": ""})
    )
    journal.note(Event(TRIAL.run_id, TRIAL.id, 2, 0, "attempt", "", 0, 2, {"of": 3}))
    desk = Desk(good)
    ended = await play(desk, MemoryJournal(journal.events))
    assert ended.counted == 6
    assert desk.sent[0][0] is Role.JUDGE, "the reviewer's and the Oracle's replies of the failed turn were kept"


async def test_a_fenced_adjudicator_is_read() -> None:
    good = script(GAME)

    def fenced(role: Role, message: object, seed: int | None) -> object:
        if role is not Role.VALIDATOR:
            return good(role, message, seed)  # type: ignore[arg-type]
        return Completed("```json\n" + says(statement="```", verdict="NO").text + "\n```")

    journal = MemoryJournal()
    ended = await play(Desk(fenced), journal, edition=_short())  # type: ignore[arg-type]
    assert ended.reason is Reason.LIMIT_EXHAUSTED


def _short() -> "object":
    from dataclasses import replace

    from deep20ray.editions import EDITION_1_1

    return replace(EDITION_1_1, question_limit=6)


async def test_a_fault_that_ended_an_attempt_is_not_gone_on_from_without_a_repair() -> None:
    good = script(GAME)
    desk = Desk(lambda role, message, seed: Malformed("used tools") if isinstance(message, GuesserMessage) else good(role, message, seed))
    journal = MemoryJournal()
    with pytest.raises(Infrastructure):
        await play(desk, journal)
    # Killed between the reply and the end of the attempt: the delivered reply isn't asked for again.
    desk = Desk(good)
    with pytest.raises(Infrastructure) as error:
        await play(desk, MemoryJournal(journal.events))
    assert (error.value.call, error.value.cause) == ("guesser", "malformed")
    assert desk.sent == []


async def test_a_call_that_never_left_is_not_lost() -> None:
    class Waiting(Desk):
        async def call(self, role: Role, route: str, message: object, seed: int | None, before: object) -> object:  # type: ignore[override]
            raise asyncio.CancelledError

    journal = MemoryJournal()
    with pytest.raises(asyncio.CancelledError):
        await play(Waiting(script(GAME)), journal)
    assert journal.events == []
