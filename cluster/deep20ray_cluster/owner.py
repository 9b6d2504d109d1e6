"""The owner of all answers of a drive: it looks them up, lets an equal question be in flight once, and keeps what lands.

The journal is the store. What is kept here is an index over its closed turns, and over the archive that the plan names, built anew for
each drive, so that a kill can't make the two disagree. A hit is an event of its own, synced before its trial goes on, and from then on
read from the journal. There is one owner, in the driver's process, where the tables are; what a table needs of it is ``Answers``.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Protocol, Self

from deep20ray.actions import Ask
from deep20ray.canonical import Digest
from deep20ray.reuse import ReusePolicy, Terms, answer_key
from deep20ray_cluster.journal import Event
from deep20ray_cluster.memory import Reply
from deep20ray_cluster.plan import Plan, PlannedTrial, terms_of
from deep20ray_cluster.reuse import Book, Hit, Place, Record, record_of
from deep20ray_cluster.spending import known_cost

Price = Callable[[str, str, Reply], int | None]
"""(run, kind of call, its reply) to micro-dollars, None where unknown."""


class Flight(Protocol):
    """A question that is being asked, for as long as the block runs; who waits for it then finds what landed, or asks for himself."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None: ...

    def land(self, closed: Event) -> None:
        """Its turn has closed."""


class Answers(Protocol):
    """What a table needs of the owner of all answers."""

    def place(self, trial: PlannedTrial, ask: Ask) -> Place | None:
        """Where a question belongs; None where nothing may be reused."""

    async def borrow(self, place: Place) -> "Hit | Flight":
        """An earlier answer, waited for while an equal question is in flight; or else the caller's own flight."""

    def fly(self, place: Place) -> Flight:
        """The caller's own flight, without looking."""

    def cost(self, run: str, call: str, reply: Reply) -> int | None:
        """What a call cost in micro-dollars, None where unknown."""


class _Flight:
    def __init__(self, owner: "Owner", place: Place) -> None:
        self._owner, self._place = owner, place
        self.done = asyncio.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        self._owner.ended(self._place, self)

    def land(self, closed: Event) -> None:
        self._owner.keep(self._place, closed)


class Owner:
    """The one owner of a drive's answers; see ``Answers``. It lives in one event loop and never awaits while it changes anything."""

    def __init__(self, policy: ReusePolicy, terms: Terms, price: Price, archive: Iterable[tuple[Digest, Record]] = ()) -> None:
        """``price`` is what a call of a run costs; ``archive`` holds answers by key."""
        self._policy, self._terms, self._price = policy, terms, price
        self._book = Book()
        self._flights: dict[tuple[Digest, tuple[str, ...]], _Flight] = {}
        self.hits = 0
        for key, record in archive:
            self._book.add(Place(key, (), ("", "")), record)

    @classmethod
    def of(cls, plan: Plan, events: Callable[[], Iterable[Event]]) -> "Owner":
        """With all that the archive and a journal hold. ``events`` isn't called where nothing is reused."""

        def price(run: str, call: str, reply: Reply) -> int | None:
            return known_cost(plan.document, run, call, reply.outcome, reply.audit)

        owner = cls(plan.sweep.sweep.reuse, terms_of(plan), price, () if plan.archive is None else plan.archive.answers)
        if owner._policy is not ReusePolicy.OFF:
            for place, event in asked(plan, events()):
                owner.keep(place, event)
        return owner

    def place(self, trial: PlannedTrial, ask: Ask) -> Place | None:
        """See ``Answers``."""
        return place_of(self._policy, self._terms, trial, ask)

    async def borrow(self, place: Place) -> Hit | Flight:
        """See ``Answers``. Who waited for a question that failed asks for himself, at once and without waiting again."""
        record = self._book.find(place)
        if record is None and place.shared in self._flights and not self.disputed(place):
            await self._flights[place.shared].done.wait()
            record = self._book.find(place)
        if record is None:
            return self.fly(place)
        self.hits += 1
        return Hit.of(place, record)

    def fly(self, place: Place) -> Flight:
        """See ``Answers``. Those who come later wait for the first of several."""
        flight = _Flight(self, place)
        self._flights.setdefault(place.shared, flight)
        return flight

    def cost(self, run: str, call: str, reply: Reply) -> int | None:
        """See ``Answers``."""
        return self._price(run, call, reply)

    def keep(self, place: Place, closed: Event) -> None:
        """Takes a closed turn's answer, unless it was itself reused."""
        record = record_of(closed)
        if record is not None:
            self._book.add(place, record)

    def disputed(self, place: Place) -> bool:
        """Whether answers to that question disagree."""
        return self._book.disputed(place)

    def ended(self, place: Place, flight: _Flight) -> None:
        """A flight is over, landed or not."""
        if self._flights.get(place.shared) is flight:
            del self._flights[place.shared]
        flight.done.set()


def place_of(policy: ReusePolicy, terms: Terms, trial: PlannedTrial, ask: Ask) -> Place | None:
    """Where a trial's question belongs; None where nothing may be reused."""
    if policy is ReusePolicy.OFF or ask.degenerate:
        return None
    scope = {ReusePolicy.TRIAL: trial.key, ReusePolicy.RUN: (trial.run_id,)}.get(policy, ())
    return Place(answer_key(trial.subject.trusted.digest, ask.question, terms), scope, trial.key)


def asked(plan: Plan, events: Iterable[Event]) -> Iterator[tuple[Place, Event]]:
    """Every closed turn of a journal that asked what may be reused, hits included, in order."""
    policy, terms = plan.sweep.sweep.reuse, terms_of(plan)
    trials: dict[tuple[str, str], PlannedTrial] = {trial.key: trial for trial in plan.trials()}
    for event in events:
        if event.kind == "closed" and event.body["kind"] == "ask":
            place = place_of(policy, terms, trials[event.run, event.trial], Ask(event.body["question"]))
            if place is not None:
                yield place, event


def disputed_turns(plan: Plan, run: str, events: Iterable[Event]) -> frozenset[tuple[str, int]]:
    """The (trial, turn) of a run whose question has answers that disagree, in a sweep's whole journal and its archive."""
    if plan.sweep.sweep.reuse is ReusePolicy.OFF:
        return frozenset()
    owner = Owner.of(plan, tuple)
    turns: dict[Place, list[tuple[str, int]]] = defaultdict(list)
    for place, event in asked(plan, events):
        owner.keep(place, event)
        if event.run == run:
            turns[place].append((event.trial, event.turn))
    return frozenset(turn for place, found in turns.items() if owner.disputed(place) for turn in found)
