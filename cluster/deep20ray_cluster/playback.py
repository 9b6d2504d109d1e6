"""A private archive played again: what every call of its run was sent, message and wire request, by the very code that plays.

A table is given the journal of one attempt at a time and a desk that nobody sits at, so that nothing is ever sent; what it asks, and is
answered out of the journal, is what it must have asked then. Requests are built by the actors' own pure code. Needs the extra ``run``.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from deep20ray.actions import Ask
from deep20ray.answers import Role
from deep20ray.canonical import Digest, sha256
from deep20ray.editions import edition
from deep20ray.reuse import ReusePolicy, Terms
from deep20ray.seeds import TrialId, sampling_seed
from deep20ray.subjects import Subject, TrustedSubject
from deep20ray_actors.config import RouteConfig
from deep20ray_actors.errors import RouteRefused
from deep20ray_actors.messages import Message, ToolMessage
from deep20ray_actors.outcomes import CallResult
from deep20ray_actors.providers.wire import WireRequest
from deep20ray_actors.requests import request_digest, wire_request
from deep20ray_artifacts.audit import CallId, Recomputed
from deep20ray_artifacts.errors import ArchiveRefused
from deep20ray_artifacts.private import EVENTS, ROUTES
from deep20ray_artifacts.verify import SealedRun
from deep20ray_cluster.archive import terms_of_run
from deep20ray_cluster.journal import Event
from deep20ray_cluster.memory import LostCall, Memory, Reply
from deep20ray_cluster.owner import Flight, place_of
from deep20ray_cluster.plan import PlannedTrial
from deep20ray_cluster.pools import Lost
from deep20ray_cluster.recorded import read_routes
from deep20ray_cluster.research import ResearchPolicy
from deep20ray_cluster.reuse import Hit, Place
from deep20ray_cluster.table import Infrastructure, Parked, Table

_Parsed = TypeVar("_Parsed")


@dataclass(frozen=True, slots=True)
class Played:
    """One call as the archive gives it."""

    message: Message
    route: RouteConfig
    seed: int | None

    @property
    def recomputed(self) -> Recomputed:
        """Its digests."""
        try:
            return Recomputed(self.message.digest, request_digest(self.route, self.message, self.seed))
        except RouteRefused:
            return Recomputed(self.message.digest, None)

    @property
    def request(self) -> WireRequest | None:
        """The request as it was sent, without its credential; None for pages, which are many, or where none can be built."""
        try:
            return wire_request(self.route, self.message, self.seed)
        except RouteRefused:
            return None


def playback(run: SealedRun, files: Mapping[str, bytes]) -> dict[CallId, Played]:
    """Every call of a run's archive.

    Args:
        files: the archive's, as ``private.read_private`` gives them.

    Raises:
        ArchiveRefused: its events aren't those of the public chain, or it can't be read by this version.
    """
    plan = json.loads(run.plan)
    run_id = run.statement.predicate.run_id
    events = _events(run, files[EVENTS])
    routes = read_routes(files[ROUTES], plan, run_id)
    try:
        stage = _Stage.of(run, plan)
        return asyncio.run(_all(stage, events, routes))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ArchiveRefused(f"run {run_id}: another version wrote its archive or plan; audit it with that one") from None


def _events(run: SealedRun, data: bytes) -> dict[str, list[Event]]:
    """By trial, in order. A line's digest is the event's."""
    lines = data.split(b"\n")
    if lines.pop() or [sha256(line) for line in lines] != run.tables["chain"]["event_sha256"].to_pylist():
        raise ArchiveRefused(f"{EVENTS}: its events aren't those of chain.arrow; give the archive of this run")
    found: dict[str, list[Event]] = defaultdict(list)
    for line in lines:
        event = Event(**json.loads(line))
        found[event.trial].append(event)
    return found


@dataclass(frozen=True, slots=True)
class _Stage:
    """What a run's tables need, from public tables and plan."""

    run: SealedRun
    policy: ResearchPolicy
    terms: Terms
    reuse: ReusePolicy

    @classmethod
    def of(cls, run: SealedRun, plan: Mapping[str, Any]) -> "_Stage":
        search, row = plan["search"], run.tables["run"].to_pylist()[0]
        names = ("query_target", "max_queries", "max_results", "fetch_pages")
        policy = ResearchPolicy(row["search_backend"].startswith("native:"), *(search[name] for name in names))
        return cls(run, policy, terms_of_run(run, "the run"), ReusePolicy(row["reuse_policy"]))

    def trials(self) -> Iterator[PlannedTrial]:
        """As they were planned."""
        subjects = {
            row["subject_id"]: Subject(
                row["subject_id"],
                row["category"],
                row["reference"],
                TrustedSubject(row["name"], tuple(row["aliases"]), row["description"]),
            )
            for row in self.run.tables["subjects"].to_pylist()
        }
        run_id = self.run.statement.predicate.run_id
        for row in self.run.tables["trials"].to_pylist():
            yield PlannedTrial(TrialId(row["trial_id"]), run_id, subjects[row["subject_id"]], row["round"], row["variation"])


async def _all(stage: _Stage, events: Mapping[str, list[Event]], routes: Mapping[Role, RouteConfig]) -> dict[CallId, Played]:
    seed = stage.run.statement.predicate.run_seed
    found: dict[CallId, Played] = {}
    for trial in stage.trials():
        for attempt, so_far in _attempts(events.get(trial.id, [])):
            asked = await _asked(stage, trial, so_far)
            for event in so_far:
                if event.kind != "started" or event.attempt != attempt or (event.turn, event.call) not in asked:
                    continue
                role, message = asked[event.turn, event.call]
                own = None if isinstance(message, ToolMessage) else sampling_seed(seed, trial.id, role, event.turn)
                found[CallId(trial.id, attempt, event.turn, event.call, event.ask)] = Played(message, routes[role], own)
    return found


def _attempts(events: list[Event]) -> Iterator[tuple[int, list[Event]]]:
    """Each attempt, and all events up to its end."""
    ends = [index for index, event in enumerate(events) if event.kind == "attempt"]
    for attempt, end in enumerate((*ends, len(events)), start=1):
        yield attempt, events[:end]


async def _asked(stage: _Stage, trial: PlannedTrial, events: list[Event]) -> dict[tuple[int, str], tuple[Role, Message]]:
    """What a table asks, as far as those events lead it."""
    predicate = stage.run.statement.predicate
    rules = edition(predicate.edition)
    journal: Any = _NoJournal()
    answers = _Answers(stage)
    table = _Listening(
        trial, rules, predicate.run_seed, "guesser", stage.policy, _NoDesk(), journal, _Recalled.of(events), lambda: 0, answers
    )
    with suppress(_Unrecorded, Infrastructure, Parked):
        await table.play()
    return table.asked


class _Unrecorded(Exception):
    """The journal leads no further."""


class _Listening(Table):
    """A table that keeps what it asks."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.asked: dict[tuple[int, str], tuple[Role, Message]] = {}

    async def _ask(self, role: Role, call: str, route: str, message: Message, read: Callable[[Reply], _Parsed | None]) -> _Parsed:
        self.asked[self._turn, call] = (role, message)
        return await super()._ask(role, call, route, message, read)


class _Recalled(Memory):
    """A memory that gives the reply of a call whatever was sent: it is the audit that compares."""

    def recall(self, turn: int, call: str, ask: int, message: Digest) -> Reply | LostCall | None:
        """As ``Memory``'s, without its check."""
        records = self.calls.get((turn, call), [])
        return records[ask] if ask < len(records) else None


class _NoDesk:
    async def call(self, role: Role, route: str, message: Message, seed: int | None, before: Callable[[], Any]) -> CallResult | Lost:
        """Nobody sits here."""
        raise _Unrecorded


class _NoJournal:
    def note(self, *events: Event) -> None:
        """Nothing is written."""

    async def append(self, *events: Event) -> None:
        """Nothing is written."""


class _NoFlight:
    def land(self, closed: Event) -> None:
        """Nobody waits."""


class _Answers:
    """A turn takes the way that its journal says it took; there is nothing to look up."""

    def __init__(self, stage: _Stage) -> None:
        self._stage = stage

    def place(self, trial: PlannedTrial, ask: Ask) -> Place | None:
        """See ``owner.Answers``."""
        return place_of(self._stage.reuse, self._stage.terms, trial, ask)

    async def borrow(self, place: Place) -> Hit | Flight:
        """Neither an answer nor a call of its own is recorded."""
        raise _Unrecorded

    def fly(self, place: Place) -> Any:
        """See ``owner.Answers``."""
        flight: AbstractContextManager[_NoFlight] = nullcontext(_NoFlight())
        return flight

    def cost(self, run: str, call: str, reply: Reply) -> int | None:
        """Costs are no part of it."""
        return None
