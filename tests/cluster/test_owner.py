"""The owner of answers: who gets which, one question in flight at a time, and what disagreement stops."""

import asyncio
import itertools
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep20ray.actions import Ask
from deep20ray.answers import Token
from deep20ray.canonical import canonical
from deep20ray.reuse import ReusePolicy
from deep20ray.seeds import TrialId
from deep20ray_cluster.errors import PlanMismatch
from deep20ray_cluster.journal import Event
from deep20ray_cluster.owner import Owner
from deep20ray_cluster.plan import PlannedTrial
from deep20ray_cluster.reuse import Book, Hit, Place, Record, Source, record_of

from .fakes import SUBJECT, TRIAL, owner

ASK = Ask("Is it alive?")
RUNS = ("20261201T000000Z-one-0123456789ab", "20261201T000000Z-two-0123456789ab")
TRIALS = [replace(TRIAL, run_id=run, id=TrialId(name * 32)) for run in RUNS for name in ("aa", "bb")]
"""Both runs have trials of the same ids, as models with one run seed do."""


def closed(trial: PlannedTrial, token: str = "NO", turn: int = 1, at: int = 5, **more: object) -> Event:
    body = {"kind": "ask", "question": ASK.question, "degenerate": False, "token": token, "path": "agreed", "oracle": token}
    return Event(trial.run_id, trial.id, 1, turn, "closed", "", 0, at, body | {"evidence": [], "adjudication_microusd": 7} | more)


def place(answers: Owner, trial: PlannedTrial = TRIALS[0], ask: Ask = ASK) -> Place:
    found = answers.place(trial, ask)
    assert found is not None
    return found


async def answer(answers: Owner, trial: PlannedTrial, token: str = "NO") -> Hit | None:
    """Asks as a table does, at once; what it was given, None where it asked for itself."""
    where = place(answers, trial)
    found = await answers.borrow(where)
    if isinstance(found, Hit):
        return found
    with found:
        found.land(closed(trial, token))
    return None


async def look(answers: Owner, trial: PlannedTrial) -> Hit | None:
    """What a trial is given; None where it would ask for itself."""
    found = await answers.borrow(place(answers, trial))
    if isinstance(found, Hit):
        return found
    with found:
        return None


# ---- who gets what


@pytest.mark.parametrize(
    ("policy", "reached"),
    [(ReusePolicy.TRIAL, [0]), (ReusePolicy.RUN, [0, 1]), (ReusePolicy.SWEEP, [0, 1, 2, 3]), (ReusePolicy.ARCHIVE, [0, 1, 2, 3])],
)
async def test_a_policy_reaches_so_far_and_no_further(policy: ReusePolicy, reached: list[int]) -> None:
    answers = owner(policy)
    await answer(answers, TRIALS[0])
    hits = {index: await look(answers, trial) for index, trial in enumerate(TRIALS)}
    assert [index for index, hit in hits.items() if isinstance(hit, Hit)] == reached
    needed = {index: hit.policy.value for index, hit in hits.items() if isinstance(hit, Hit)}
    assert needed == {index: ("trial", "run", "sweep", "sweep")[index] for index in reached}


def test_nothing_is_looked_up_without_a_policy_nor_for_a_degenerate_question() -> None:
    assert owner(ReusePolicy.OFF).place(TRIAL, ASK) is None
    assert owner(ReusePolicy.SWEEP).place(TRIAL, Ask("?")) is None


async def test_a_hit_carries_its_whole_source_and_is_never_one() -> None:
    answers = owner(ReusePolicy.SWEEP)
    await answer(answers, TRIALS[0], "UNKNOWN")
    hit = await answer(answers, TRIALS[2])
    assert isinstance(hit, Hit)
    assert hit.provenance == {"run": RUNS[0], "trial": "aa" * 32, "turn": 1, "at": 5, "policy": "sweep"}
    assert (hit.token, hit.cost, hit.facts) == (Token.UNKNOWN, 7, {"path": "agreed", "oracle": "UNKNOWN", "evidence": []})
    assert record_of(closed(TRIALS[2], reused=hit.provenance | {"cost_microusd": 7})) is None
    assert Hit.read(hit.body, hit.key) == hit
    with pytest.raises(PlanMismatch, match="another question"):
        Hit.read(hit.body, place(answers, ask=Ask("Is it dead?")).key)


async def test_another_subject_is_another_question() -> None:
    answers = owner(ReusePolicy.SWEEP)
    await answer(answers, TRIALS[0])
    other = replace(SUBJECT, trusted=replace(SUBJECT.trusted, description="Reworded."))
    assert await answer(answers, replace(TRIALS[1], subject=other)) is None


async def test_answers_that_disagree_stop_later_hits_and_nobody_waits_for_another() -> None:
    answers = owner(ReusePolicy.SWEEP)
    await answer(answers, TRIALS[0], "NO")
    assert isinstance(await answer(answers, TRIALS[1]), Hit)
    with answers.fly(place(answers, TRIALS[1])) as flight:
        flight.land(closed(TRIALS[1], "YES"))
    for trial in TRIALS:
        assert await answer(answers, trial, "NO") is None
    with answers.fly(place(answers)):
        async with asyncio.timeout(5):
            assert not isinstance(await answers.borrow(place(answers, TRIALS[3])), Hit), "it does not wait for an answer that it can't have"


async def test_archived_answers_are_there_from_the_beginning() -> None:
    fresh = owner(ReusePolicy.ARCHIVE)
    record = Record(Source("r", "t", 3, 1), Token.YES, canonical({"path": "agreed"}), None, archived=True)
    answers = Owner(ReusePolicy.ARCHIVE, fresh._terms, fresh._price, [(place(fresh).key, record)])
    hit = await answer(answers, TRIALS[0])
    assert isinstance(hit, Hit)
    assert (hit.policy, hit.source, hit.token, hit.cost) == (ReusePolicy.ARCHIVE, record.source, Token.YES, None)


# ---- the book against its definition


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([(), ("r",)]), st.sampled_from(list(Token)))))
def test_the_book_gives_the_first_answer_of_those_that_all_agree(entries: list[tuple[str, tuple[str, ...], Token]]) -> None:
    book = Book()
    for number, (key, scope, token) in enumerate(entries):
        book.add(Place(key, scope, ("", "")), Record(Source("r", "t", number, 0), token, b"{}", None))  # type: ignore[arg-type]
    for key, scope in itertools.product("ab", [(), ("r",)]):
        same = [(number, entry[2]) for number, entry in enumerate(entries) if entry[:2] == (key, scope)]
        where = Place(key, scope, ("x", "y"))  # type: ignore[arg-type]
        found = book.find(where)
        if same and len({token for _, token in same}) == 1:
            assert found is not None and (found.source.turn, found.token) == same[0]
        else:
            assert found is None
        assert book.disputed(where) == (len({token for _, token in same}) > 1)


# ---- single flight, in every order


class Askers:
    """Trials that ask one question; each waits for its cue before it answers or fails. ``asked`` counts real adjudications."""

    def __init__(self, count: int) -> None:
        self.answers = owner(ReusePolicy.SWEEP)
        self.cues = [asyncio.Event() for _ in range(count)]
        self.works = [True] * count
        self.asked: list[int] = []
        self.open: set[int] = set()
        self.outcomes: dict[int, str] = {}

    async def ask(self, index: int) -> None:
        trial = replace(TRIAL, id=TrialId(f"{index:064x}"))
        found = await self.answers.borrow(place(self.answers, trial))
        if isinstance(found, Hit):
            self.outcomes[index] = f"hit {int(found.source.trial, 16)}"
            return
        self.asked.append(index)
        self.open.add(index)
        with found:
            await self.cues[index].wait()
            self.open.discard(index)
            if not self.works[index]:
                self.outcomes[index] = "failed"
                return
            found.land(closed(trial))
        self.outcomes[index] = "asked"


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def schedules() -> Iterable[tuple[tuple[bool, ...], tuple[int, ...]]]:
    """Which of three trials fail, and in which order those that are asking get their cue."""
    return itertools.product(itertools.product((True, False), repeat=3), itertools.permutations(range(3)))


@pytest.mark.parametrize(("works", "order"), list(schedules()))
async def test_equal_questions_in_flight_are_asked_once_and_those_behind_a_failed_one_for_themselves(
    works: tuple[bool, ...], order: tuple[int, ...]
) -> None:
    askers = Askers(4)
    askers.works[:3] = works
    tasks = [asyncio.create_task(askers.ask(index)) for index in range(3)]
    await settle()
    assert askers.asked == [0], "one asks, the others wait"
    askers.cues[0].set()
    await settle()
    if works[0]:
        assert askers.outcomes == {0: "asked", 1: "hit 0", 2: "hit 0"}
    else:
        assert askers.asked == [0, 1, 2], "each for himself, at once"
        late = asyncio.create_task(askers.ask(3))
        await settle()
        assert 3 not in askers.asked, "who comes later waits for the first of them"
        for index in order:
            askers.cues[index].set()
            await settle()
        askers.cues[3].set()
        await late
        assert {index: askers.outcomes[index] for index in (1, 2)} == {index: "asked" if works[index] else "failed" for index in (1, 2)}
        expected = "asked" if not any(works[1:]) or (not works[1] and order.index(1) < order.index(2)) else "hit"
        assert askers.outcomes[3].split()[0] == expected
    await asyncio.gather(*tasks)


async def test_a_cancelled_question_lets_the_others_go_on() -> None:
    askers = Askers(2)
    first, second = (asyncio.create_task(askers.ask(index)) for index in range(2))
    await settle()
    first.cancel()
    await settle()
    assert askers.asked == [0, 1]
    askers.cues[1].set()
    await second
    assert askers.outcomes == {1: "asked"}


async def test_a_cancelled_waiter_disturbs_nobody() -> None:
    askers = Askers(3)
    tasks = [asyncio.create_task(askers.ask(index)) for index in range(3)]
    await settle()
    tasks[1].cancel()
    askers.cues[0].set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert askers.outcomes == {0: "asked", 2: "hit 0"}


@given(st.data())
def test_any_order_of_arrivals_ends_and_failures_leaves_nobody_waiting(data: st.DataObject) -> None:
    async def play() -> None:
        count = data.draw(st.integers(1, 6))
        askers = Askers(count)
        askers.works = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
        tasks: list[asyncio.Task[None]] = []
        while len(askers.outcomes) < count:
            choices = ["arrive"] * (len(tasks) < count) + [f"end {index}" for index in sorted(askers.open)]
            what = data.draw(st.sampled_from(choices))
            if what == "arrive":
                tasks.append(asyncio.create_task(askers.ask(len(tasks))))
            else:
                askers.cues[int(what.split()[1])].set()
            await settle()
            waiting = len(tasks) - len(askers.outcomes) - len(askers.open)
            assert not waiting or askers.open, "whoever waits, waits for someone"
        await asyncio.gather(*tasks)
        landed = [index for index in range(count) if askers.outcomes[index] == "asked"]
        hits = [outcome for outcome in askers.outcomes.values() if outcome.startswith("hit")]
        assert all(int(hit.split()[1]) in landed for hit in hits)
        assert not askers.answers._flights
        if all(askers.works):
            assert len(askers.asked) == 1, "asked once"

    asyncio.run(play())
