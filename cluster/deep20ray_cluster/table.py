"""A table plays one trial: the only place where all five roles meet.

It owns a ``Game`` and asks it what comes next; it hands each role its own message and nothing else. Every reply is journalled before
the trial's next call is sent. The same code resumes a trial: while the journal still holds the reply to a call, that reply is used,
after a check that the very same message would be sent now; so a journalled reply is never paid for again.
"""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from typing import Any, Protocol, TypeVar, assert_never

from deep20ray.actions import Ask, Guess, Violation, ViolationKind, parse
from deep20ray.adjudication import Consult, Final, decide
from deep20ray.answers import Basis, Role, Token, Verdict
from deep20ray.canonical import Digest
from deep20ray.editions import Edition
from deep20ray.game import Answer, Ended, Game, GuesserTurn, Ruling
from deep20ray.seeds import sampling_seed
from deep20ray_actors import replies
from deep20ray_actors.messages import EvidenceItem, GuesserMessage, JudgeMessage, Message, ReviewerMessage, ToolMessage, ValidatorMessage
from deep20ray_actors.outcomes import (
    CallResult,
    Completed,
    Credentials,
    Empty,
    Outcome,
    QuotaExhausted,
    Refused,
    Truncated,
    is_fault,
)
from deep20ray_cluster.journal import Event, Journal, Kind
from deep20ray_cluster.memory import LostCall, Memory, Reply
from deep20ray_cluster.owner import Answers, Flight
from deep20ray_cluster.plan import PlannedTrial
from deep20ray_cluster.pools import Lost
from deep20ray_cluster.prices import total
from deep20ray_cluster.records import reply_body
from deep20ray_cluster.research import Answered, ExcludedSource, KeptItem, ResearchPolicy, research
from deep20ray_cluster.reuse import Hit, Place

MAX_REPLIES = 3
"""An adjudicator's first answer and at most two byte-equal re-asks."""
MAX_LOST = 3
_LOST = "worker_lost"

_Parsed = TypeVar("_Parsed")


class Infrastructure(Exception):
    """The attempt can't go on. ``cause`` is public, ``detail`` is not."""

    def __init__(self, turn: int, call: str, cause: str, detail: str = "") -> None:
        super().__init__(cause)
        self.turn, self.call, self.cause, self.detail = turn, call, cause, detail


class Parked(Exception):
    """The whole sweep must stop, resumable: quota is exhausted or a credential is refused."""


class Draining(Exception):
    """The driver is stopping; the trial has journalled all it was given."""


class Desk(Protocol):
    """How a table reaches a role: a lease, then the role's pool."""

    async def call(self, role: Role, route: str, message: Message, seed: int | None, before: Callable[[], Any]) -> CallResult | Lost:
        """Waits for a lease, awaits ``before()``, sends, and returns what came back.

        What is given to ``before``, by name, is journalled with the call's start.

        Raises:
            Draining: no new call may start.
            Withheld: the budget has no room for it.
        """


class Table:
    """One trial's table."""

    def __init__(
        self,
        trial: PlannedTrial,
        edition: Edition,
        run_seed: str,
        guesser_route: str,
        policy: ResearchPolicy,
        desk: Desk,
        journal: Journal,
        memory: Memory,
        now: Callable[[], int],
        answers: Answers,
    ) -> None:
        self._trial = trial
        self._edition = edition
        self._run_seed = run_seed
        self._guesser_route = guesser_route
        self._policy = policy
        self._desk = desk
        self._journal = journal
        self._memory = memory
        self._now = now
        self._answers = answers
        self._costs: list[int | None] = []
        self._turn = 0
        self._calling = "guesser"
        self._actions: set[str] = set()

    @property
    def waits_for(self) -> tuple[int, str]:
        """The turn and the call that the trial is at."""
        return self._turn, self._calling

    async def play(self) -> Ended:
        """Plays to the end of the game, journalling each step.

        Raises:
            Infrastructure: the attempt can't go on.
            Parked: no trial can go on.
            Draining: the driver is stopping.
            Withheld: the budget has no room for the next call.
            JournalFull: a reply can't be journalled.
        """
        game = Game.start(self._edition, self._trial.subject.category, self._trial.variation)
        while True:
            match game.needs:
                case Ended() as ended:
                    body = {"reason": ended.reason.value, "counted": ended.counted, "score": ended.score}
                    await self._journal.append(self._event("ended", "", 0, body))
                    return ended
                case GuesserTurn() as turn:
                    game = await self._guesser(game, turn)
                case Answer(ask):
                    game = await self._question(game, ask)
                case Ruling(guess):
                    verdict = await self._validate(guess)
                    facts = {"kind": "guess", "name": guess.name, "description": guess.description, "verdict": verdict.value}
                    game = self._closed(game, game.after(verdict), guess.canonical, facts)
                case needs:
                    assert_never(needs)

    async def _guesser(self, game: Game, turn: GuesserTurn) -> Game:
        self._turn = turn.turn
        reply = await self._ask(Role.GUESSER, "guesser", self._guesser_route, GuesserMessage.of(turn.view), lambda reply: reply)
        action, text = _ruled(reply.outcome)
        action = game.rule(action)
        after = game.after(action)
        if isinstance(action, Violation):
            facts = {"kind": "violation", "violation": action.kind.value, "text": text, "finish_reason": reply.audit.finish_reason}
            return self._closed(game, after, None, facts)
        return after

    async def _question(self, game: Game, ask: Ask) -> Game:
        """The turn after a question: an earlier answer where there is one, else an adjudication that others may wait for."""
        place = self._answers.place(self._trial, ask)
        found = None if place is None else await self._borrowed(place)
        facts: dict[str, Any] = {"kind": "ask", "question": ask.question, "degenerate": ask.degenerate}
        if isinstance(found, Hit):
            told = facts | dict(found.facts) | {"reused": found.provenance | {"cost_microusd": found.cost}}
            return self._closed(game, game.after(found.token), ask.canonical, told)
        with found or nullcontext():
            self._costs = []
            token, said = await self._adjudicate(ask)
            told = facts | said | {"adjudication_microusd": total(self._costs)}
            return self._closed(game, game.after(token), ask.canonical, told, found)

    async def _borrowed(self, place: Place) -> Hit | Flight:
        """An earlier answer, or this turn's own flight. A turn takes the way that the journal says it took."""
        body = self._memory.reused.get(self._turn)
        if body is not None:
            return Hit.read(body, place.key)
        if self._memory.began(self._turn):
            # Some of its own adjudication is paid for.
            return self._answers.fly(place)
        self._calling = "reuse"
        found = await self._answers.borrow(place)
        if isinstance(found, Hit):
            await self._journal.append(self._event("reused", "", 0, found.body))
        return found

    async def _adjudicate(self, ask: Ask) -> tuple[Token, dict[str, Any]]:
        """The final token of a question, and what the turn's record says about it."""
        facts: dict[str, Any] = {}
        known: dict[str, Token] = {}
        items: tuple[EvidenceItem, ...] = ()
        while isinstance(step := decide(**known), Consult):
            if step.role is Role.ORACLE:
                answered = await self._research(ask)
                token, basis = answered.token, answered.basis
                items = tuple(kept.item.item for kept in answered.kept)
                facts["evidence"] = [_evidence_row(kept) for kept in answered.kept]
            else:
                token, basis = await self._second_opinion(step.role, ask, items)
            known[step.role.value] = token
            facts |= {step.role.value: token.value, f"{step.role.value}_basis": basis.value}
        assert isinstance(step, Final)
        return step.token, facts | {"path": step.path.value}

    async def _research(self, ask: Ask) -> Answered:
        try:
            return await research(self._policy, self._trial.subject.trusted, ask.question, self._edition.tokens, self._ask_oracle)
        except ExcludedSource:
            # It is the answer that can't be taken, so it is the Oracle that a repair asks anew.
            raise Infrastructure(self._turn, "oracle", "excluded_source") from None

    async def _ask_oracle(
        self, call: str, message: Message, read: Callable[[Reply], _Parsed | None], *, tolerant: bool = False
    ) -> _Parsed | None:
        """See ``research.Asker``."""
        try:
            return await self._ask(Role.ORACLE, call, "oracle", message, read)
        except Infrastructure as failure:
            # A lost call is no answer: asked again, it may turn out otherwise, and a resumed trial must take the same way.
            if tolerant and failure.cause != _LOST:
                return None
            raise

    async def _second_opinion(self, role: Role, ask: Ask, items: tuple[EvidenceItem, ...]) -> tuple[Token, Basis]:
        """The Reviewer or the Judge: the same three things, by a type of its own."""
        kind = ReviewerMessage if role is Role.REVIEWER else JudgeMessage
        message = kind.of(self._trial.subject.trusted, ask.question, items)
        tokens = self._edition.tokens
        opinion = await self._ask(role, role.value, role.value, message, lambda reply: replies.reviewed_answer(_text(reply), tokens))
        return opinion.token, opinion.basis

    async def _validate(self, guess: Guess) -> Verdict:
        message = ValidatorMessage.of(self._trial.subject.trusted, guess)
        ruling = await self._ask(Role.VALIDATOR, "validator", "validator", message, lambda reply: replies.validated_guess(_text(reply)))
        return ruling.verdict

    async def _ask(self, role: Role, call: str, route: str, message: Message, read: Callable[[Reply], _Parsed | None]) -> _Parsed:
        """One call of this turn, from the journal or live, until its reply reads; see the module."""
        self._calling = call
        unread = lost = 0
        digest = message.digest
        for ask in count():
            record = self._memory.recall(self._turn, call, ask, digest)
            live = record is None
            if record is None:
                record = await self._live(role, call, route, message, digest, ask)
            if isinstance(record, LostCall):
                lost += live
                if lost >= MAX_LOST:
                    raise Infrastructure(self._turn, call, _LOST)
                continue
            if is_fault(record.outcome):
                # A stop for want of quota or of a credential is gone on from; any other fault ended the attempt, journalled or not.
                if not live and isinstance(record.outcome, QuotaExhausted | Credentials):
                    continue
                self._costs.append(self._answers.cost(self._trial.run_id, call, record))
                raise self._fault(call, record)
            self._costs.append(self._answers.cost(self._trial.run_id, call, record))
            parsed = read(record)
            if parsed is not None:
                return parsed
            unread += 1
            if unread >= MAX_REPLIES:
                raise Infrastructure(self._turn, call, "unreadable_reply")
            if role is not Role.GUESSER and isinstance(record.outcome, Refused):
                raise Infrastructure(self._turn, call, "refused")
        raise AssertionError("count() never ends")

    async def _live(self, role: Role, call: str, route: str, message: Message, digest: Digest, ask: int) -> Reply | LostCall:
        seed = None if isinstance(message, ToolMessage) else sampling_seed(self._run_seed, self._trial.id, role, self._turn)
        started = self._event("started", call, ask, {"message_sha256": digest})
        begun = False

        async def before(**facts: Any) -> None:
            nonlocal begun
            begun = True
            await self._journal.append(replace(started, body=started.body | facts))

        try:
            result = await self._desk.call(role, route, message, seed, before)
        except asyncio.CancelledError:
            # A deadline, or a second Ctrl-C: a call that was begun may be paid for all the same.
            if begun:
                self._journal.note(self._event("lost", call, ask, {"message_sha256": digest}))
            raise
        if isinstance(result, Lost):
            self._journal.note(self._event("lost", call, ask, {"message_sha256": digest}))
            return LostCall(digest)
        event = self._event("reply", call, ask, reply_body(digest, result))
        self._journal.note(event)
        return Reply(digest, result.outcome, result.audit, event.at)

    def _fault(self, call: str, reply: Reply) -> Exception:
        match reply.outcome:
            case QuotaExhausted() | Credentials():
                return Parked(f"{call}: {reply.outcome.detail}")
            case fault:
                return Infrastructure(self._turn, call, type(fault).__name__.lower(), getattr(fault, "detail", ""))

    def _closed(self, before: Game, after: Game, action: str | None, facts: dict[str, Any], flight: Flight | None = None) -> Game:
        """Notes a closed turn, and lands its flight, unless the journal has it."""
        repeated = action is not None and action in self._actions
        if action is not None:
            self._actions.add(action)
        if self._turn > self._memory.closed:
            last = after.view.history[len(before.view.history) :]
            token = next((entry.token.value for entry in last if hasattr(entry, "token")), None)
            counted = {"counted": after.counted > before.counted, "counted_questions": after.counted, "repeated": repeated, "token": token}
            event = self._event("closed", "", 0, facts | counted)
            self._journal.note(event)
            if flight is not None:
                flight.land(event)
        return after

    def _event(self, kind: Kind, call: str, ask: int, body: dict[str, Any]) -> Event:
        return Event(self._trial.run_id, self._trial.id, self._memory.attempt, self._turn, kind, call, ask, self._now(), body)


def _ruled(outcome: Outcome) -> tuple[Ask | Guess | Violation, str | None]:
    """A delivered Guesser reply as an action or a violation, and its visible text."""
    match outcome:
        case Completed(text):
            return parse(text), text
        case Truncated(text=text, reason="length"):
            return Violation(ViolationKind.OUTPUT_LIMIT), text
        case Truncated(text=text):
            return Violation(ViolationKind.INCOMPLETE), text
        case Refused(text):
            return Violation(ViolationKind.REFUSED), text
        case Empty():
            return Violation(ViolationKind.EMPTY), None
        case _:
            raise AssertionError(f"a Guesser never delivers {type(outcome).__name__}")


def _evidence_row(kept: KeptItem) -> dict[str, Any]:
    item = kept.item
    return {
        "number": item.number,
        "url": item.url,
        "excerpt": item.excerpt,
        "kind": item.kind,
        "verified": item.verified,
        "text_sha256": item.text_digest,
        "retrieved_at": kept.retrieved_at,
    }


def _text(reply: Reply) -> str:
    """An adjudicator's text; anything but a completion has none, and so doesn't read."""
    return reply.outcome.text if isinstance(reply.outcome, Completed) else ""
