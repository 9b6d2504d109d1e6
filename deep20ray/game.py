"""One trial as a pure state machine: an event in, what the Guesser may see next, or the end, out.

No clock, no I/O, no model, no subject: a game knows its edition, the category label and the variation token, so its view can't
leak more. A ``Game`` is a value; ``after`` returns the next one. What it ``needs`` says which event it accepts:

    GuesserTurn(view)  ->  an Ask, a Guess or a Violation
    Answer(ask)        ->  a Token of the edition
    Ruling(guess)      ->  a Verdict
    Ended(...)         ->  nothing
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from deep20ray.actions import Ask, Guess, Violation, ViolationKind
from deep20ray.answers import Token, Verdict
from deep20ray.editions import Edition
from deep20ray.errors import IllegalEvent


class Reason(StrEnum):
    """Why a trial ended. Infrastructure is not among them: it is no outcome of the game."""

    SUCCESS = "success"
    LIMIT_EXHAUSTED = "limit_exhausted"
    GUESSER_PROTOCOL_FAILURE = "guesser_protocol_failure"
    VALIDATOR_UNKNOWN = "validator_unknown"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One valid action in canonical form and the one token that followed it."""

    action: str
    token: Token


@dataclass(frozen=True, slots=True)
class Reminder:
    """The fixed format reminder stood here. It carries nothing of the reply that caused it."""


@dataclass(frozen=True, slots=True)
class View:
    """All that the Guesser may see. Each turn's history is a strict prefix of the next one's."""

    category: str
    variation: str
    history: tuple[Exchange | Reminder, ...] = ()


@dataclass(frozen=True, slots=True)
class GuesserTurn:
    """The Guesser is to move. ``guess_only`` is for the rules; nothing announces it to the model."""

    view: View
    turn: int
    guess_only: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """A question waits for its final token."""

    ask: Ask


@dataclass(frozen=True, slots=True)
class Ruling:
    """A guess waits for its verdict."""

    guess: Guess


@dataclass(frozen=True, slots=True)
class Ended:
    """The trial is over. ``score`` is the counted questions of a success, else the edition's failure score."""

    reason: Reason
    counted: int
    score: int

    @property
    def success(self) -> bool:
        """Whether the subject was found."""
        return self.reason is Reason.SUCCESS


Needs = GuesserTurn | Answer | Ruling | Ended
Event = Ask | Guess | Violation | Token | Verdict


@dataclass(frozen=True, slots=True)
class Game:
    """A trial in play. Make one with ``Game.start`` and move it with ``after``."""

    edition: Edition
    view: View
    counted: int = 0
    turn: int = 1
    violations_in_row: int = 0
    pending: Ask | Guess | None = None
    ended: Ended | None = None

    @classmethod
    def start(cls, edition: Edition, category: str, variation: str) -> "Game":
        """A new trial before its first turn."""
        return cls(edition, View(category, variation))

    @property
    def at_limit(self) -> bool:
        """Whether the next turn is the guess-only one."""
        return self.counted >= self.edition.question_limit

    @property
    def needs(self) -> Needs:
        """The event that the game waits for, or how it ended."""
        if self.ended is not None:
            return self.ended
        match self.pending:
            case Ask() as ask:
                return Answer(ask)
            case Guess() as guess:
                return Ruling(guess)
            case None:
                return GuesserTurn(self.view, self.turn, self.at_limit)
            case _:
                assert_never(self.pending)

    def rule(self, action: Ask | Guess | Violation) -> Ask | Guess | Violation:
        """What a parsed reply is in this turn: an ASK in the guess-only turn is a violation of kind ``wrong_action``."""
        return Violation(ViolationKind.WRONG_ACTION) if self.at_limit and isinstance(action, Ask) else action

    def after(self, event: Event) -> "Game":
        """The game after one event.

        Raises:
            IllegalEvent: the event is not the one that ``needs`` names, or the token is not the edition's.
        """
        needs = self.needs
        match needs, event:
            case GuesserTurn(), (Ask() | Guess() | Violation()) as action:
                return self._moved(self.rule(action))
            case Answer(), Token() as token if token in self.edition.tokens:
                return self._told(token, counted=self.counted + 1)
            case Ruling(), Verdict() as verdict:
                return self._ruled(verdict)
        raise IllegalEvent(f"the game needs {type(needs).__name__}, not {event!r}")

    def _moved(self, action: Ask | Guess | Violation) -> "Game":
        match action:
            case Ask() | Guess():
                return replace(self, pending=action)
            case Violation():
                return self._violated()
            case _:
                assert_never(action)

    def _violated(self) -> "Game":
        if self.at_limit:
            return _end(self, Reason.GUESSER_PROTOCOL_FAILURE)
        row = self.violations_in_row + 1
        game = replace(
            self,
            counted=self.counted + 1,
            turn=self.turn + 1,
            violations_in_row=row,
            view=replace(self.view, history=(*self.view.history, Reminder())),
        )
        return _end(game, Reason.GUESSER_PROTOCOL_FAILURE) if row >= self.edition.violation_limit else game

    def _told(self, token: Token, counted: int) -> "Game":
        assert self.pending is not None
        exchange = Exchange(self.pending.canonical, token)
        return replace(
            self,
            counted=counted,
            turn=self.turn + 1,
            violations_in_row=0,
            pending=None,
            view=replace(self.view, history=(*self.view.history, exchange)),
        )

    def _ruled(self, verdict: Verdict) -> "Game":
        counted = self.counted if self.at_limit else self.counted + 1
        match verdict:
            case Verdict.YES:
                return _end(self, Reason.SUCCESS)
            case Verdict.NO if self.at_limit:
                return _end(self, Reason.LIMIT_EXHAUSTED)
            case Verdict.NO:
                return self._told(Token.NO, counted)
            case Verdict.UNKNOWN:
                return _end(replace(self, counted=counted), Reason.VALIDATOR_UNKNOWN)
            case _:
                assert_never(verdict)


def _end(game: Game, reason: Reason) -> Game:
    score = game.counted if reason is Reason.SUCCESS else game.edition.failure_score
    return replace(game, pending=None, ended=Ended(reason, game.counted, score))
