"""The trial: every row of the table of turns in both editions, and, for any order of events, that nothing leaks and nothing is miscounted.

The properties hold the machine against a reference of their own: the table of turns written as plain arithmetic on strings.
"""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep20ray.actions import Ask, Guess, Violation, ViolationKind, parse
from deep20ray.answers import Token, Verdict
from deep20ray.editions import EDITION_1_0, EDITION_1_1, EDITIONS, Edition
from deep20ray.errors import IllegalEvent
from deep20ray.game import Answer, Ended, Event, Exchange, Game, GuesserTurn, Reason, Reminder, Ruling, View

LIMITS = {"1.0": (50, 51), "1.1": (40, 41)}
BAD = Violation(ViolationKind.NOT_JSON)
ASK = Ask("Is it alive?")
GUESS = Guess("Laika", "the dog in space")

both = pytest.mark.parametrize("edition", EDITIONS.values(), ids=EDITIONS.keys())


def start(edition: Edition) -> Game:
    return Game.start(edition, "thing", "0123456789ab")


def play(game: Game, *events: Event) -> Game:
    for event in events:
        game = game.after(event)
    return game


def asked(edition: Edition, count: int) -> Game:
    one: list[Event] = [ASK, Token.NO]
    return play(start(edition), *one * count)


def end(game: Game) -> tuple[Reason, int, int]:
    assert isinstance(game.needs, Ended)
    return game.needs.reason, game.needs.counted, game.needs.score


def last(game: Game) -> Exchange | Reminder:
    return game.view.history[-1]


# ---- the table, row by row


def test_the_editions_are_the_published_ones() -> None:
    assert EDITIONS == {"1.0": EDITION_1_0, "1.1": EDITION_1_1}
    shapes = {
        e.id: (e.subjects, e.rounds, e.question_limit, e.failure_score, e.violation_limit, e.category_guide) for e in EDITIONS.values()
    }
    assert shapes == {"1.0": (7, 5, 50, 51, 5, False), "1.1": (10, 3, 40, 41, 5, True)}
    assert [str(t) for t in EDITION_1_0.tokens] == ["YES", "NO", "UNKNOWN"]
    assert [str(t) for t in EDITION_1_1.tokens] == ["YES", "RATHER_YES", "RATHER_NO", "NO", "UNKNOWN"]
    assert [str(p) for p in EDITION_1_0.policies] == ["evidence-first"]
    assert [str(p) for p in EDITION_1_1.policies] == ["evidence-or-knowledge", "bounded-judge"]


@both
def test_ask_before_the_limit(edition: Edition) -> None:
    for token in edition.tokens:
        game = play(asked(edition, 3), ASK, token)
        assert game.counted == 4 and game.turn == 5
        assert last(game) == Exchange(ASK.canonical, token)
        assert isinstance(game.needs, GuesserTurn)


@both
@pytest.mark.parametrize("before", [0, 1, 7])
def test_guess_yes_counts_nothing(edition: Edition, before: int) -> None:
    assert end(play(asked(edition, before), GUESS, Verdict.YES)) == (Reason.SUCCESS, before, before)


@both
def test_guess_no_before_the_limit(edition: Edition) -> None:
    game = play(asked(edition, 3), GUESS, Verdict.NO)
    assert game.counted == 4 and last(game) == Exchange(GUESS.canonical, Token.NO)
    assert end(play(game, GUESS, Verdict.YES)) == (Reason.SUCCESS, 4, 4)


@both
def test_guess_unknown_before_the_limit(edition: Edition) -> None:
    assert end(play(asked(edition, 3), GUESS, Verdict.UNKNOWN)) == (Reason.VALIDATOR_UNKNOWN, 4, edition.failure_score)


@both
@pytest.mark.parametrize("kind", list(ViolationKind))
def test_violation_before_the_limit(edition: Edition, kind: ViolationKind) -> None:
    game = play(asked(edition, 3), Violation(kind))
    assert game.counted == 4 and last(game) == Reminder() and game.violations_in_row == 1
    assert isinstance(game.needs, GuesserTurn)


@both
def test_the_fifth_violation_in_a_row(edition: Edition) -> None:
    game = play(asked(edition, 3), *[BAD] * 4)
    assert isinstance(game.needs, GuesserTurn)
    assert end(game.after(BAD)) == (Reason.GUESSER_PROTOCOL_FAILURE, 8, edition.failure_score)


@both
@pytest.mark.parametrize("valid", [(ASK, Token.UNKNOWN), (GUESS, Verdict.NO)])
def test_a_valid_action_resets_the_row(edition: Edition, valid: Sequence[Event]) -> None:
    game = play(start(edition), *[BAD] * 4, *valid, *[BAD] * 4)
    assert isinstance(game.needs, GuesserTurn) and game.counted == 9
    assert end(game.after(BAD))[0] is Reason.GUESSER_PROTOCOL_FAILURE


@both
def test_the_limit_is_where_it_is(edition: Edition) -> None:
    limit, failure = LIMITS[edition.id]
    for count in (limit - 1, limit):
        needs = asked(edition, count).needs
        assert isinstance(needs, GuesserTurn) and needs.guess_only == (count == limit)
    assert end(play(asked(edition, limit - 1), GUESS, Verdict.YES)) == (Reason.SUCCESS, limit - 1, limit - 1)
    assert end(play(asked(edition, limit - 1), GUESS, Verdict.UNKNOWN)) == (Reason.VALIDATOR_UNKNOWN, limit, failure)


@both
@pytest.mark.parametrize("final", [(ASK, Token.YES), (GUESS, Verdict.NO), (BAD,)], ids=["ask", "rejected guess", "violation"])
def test_whatever_fills_the_limit_leads_to_the_guess_only_turn(edition: Edition, final: Sequence[Event]) -> None:
    game = play(asked(edition, edition.question_limit - 1), *final)
    assert isinstance(game.needs, GuesserTurn) and game.needs.guess_only


@both
@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ((GUESS, Verdict.YES), Reason.SUCCESS),
        ((GUESS, Verdict.NO), Reason.LIMIT_EXHAUSTED),
        ((GUESS, Verdict.UNKNOWN), Reason.VALIDATOR_UNKNOWN),
        ((BAD,), Reason.GUESSER_PROTOCOL_FAILURE),
        ((ASK,), Reason.GUESSER_PROTOCOL_FAILURE),
    ],
)
def test_the_guess_only_turn_counts_nothing(edition: Edition, events: Sequence[Event], reason: Reason) -> None:
    limit, failure = LIMITS[edition.id]
    assert end(play(asked(edition, limit), *events)) == (reason, limit, limit if reason is Reason.SUCCESS else failure)


@both
def test_an_ask_in_the_guess_only_turn_is_a_wrong_action(edition: Edition) -> None:
    limit = edition.question_limit
    assert asked(edition, limit).rule(ASK) == Violation(ViolationKind.WRONG_ACTION)
    assert asked(edition, limit).rule(GUESS) == GUESS and asked(edition, limit).rule(BAD) == BAD
    assert asked(edition, limit - 1).rule(ASK) == ASK


@both
def test_the_fifth_violation_may_fill_the_limit(edition: Edition) -> None:
    limit, failure = LIMITS[edition.id]
    assert end(play(asked(edition, limit - 5), *[BAD] * 5)) == (Reason.GUESSER_PROTOCOL_FAILURE, limit, failure)
    assert isinstance(play(asked(edition, limit - 4), *[BAD] * 4).needs, GuesserTurn)


@pytest.mark.failure_case(14)
@both
def test_an_ask_never_wins(edition: Edition) -> None:
    """Whatever it names: a list of candidates, the very subject, or the subject as a part of another word."""
    for question in (
        "Is it Garfield?",
        "Is it an apple, a bee or a cricket?",
        "Is it used with a mouse?",
        "Is it a bird of prey (e.g. eagle, hawk)?",
    ):
        game = play(start(edition), Ask(question), Token.YES)
        assert isinstance(game.needs, GuesserTurn) and game.counted == 1


@both
def test_an_ask_and_a_winning_guess_in_one_reply_is_one_violation(edition: Edition) -> None:
    reply = parse(Ask("Is it Garfield?").canonical + Guess("Garfield", "the cat").canonical)
    game = play(start(edition), reply)
    assert game.counted == 1 and game.view.history == (Reminder(),)


@both
def test_an_output_limit_is_a_violation_of_its_own_kind(edition: Edition) -> None:
    game = play(start(edition), Violation(ViolationKind.OUTPUT_LIMIT))
    assert game.counted == 1 and game.view.history == (Reminder(),)


# ---- what the game refuses


@both
def test_only_the_event_that_is_needed(edition: Edition) -> None:
    states = {
        GuesserTurn: start(edition),
        Answer: play(start(edition), ASK),
        Ruling: play(start(edition), GUESS),
        Ended: play(start(edition), GUESS, Verdict.YES),
    }
    accepts = {GuesserTurn: (Ask, Guess, Violation), Answer: (Token,), Ruling: (Verdict,), Ended: ()}
    for needs, game in states.items():
        assert isinstance(game.needs, needs)
        for event in (ASK, GUESS, BAD, Token.YES, Verdict.YES):
            if isinstance(event, accepts[needs]):
                game.after(event)
            else:
                with pytest.raises(IllegalEvent, match=needs.__name__):
                    game.after(event)


def test_no_token_of_another_edition() -> None:
    for token in (Token.RATHER_YES, Token.RATHER_NO):
        with pytest.raises(IllegalEvent):
            play(start(EDITION_1_0), ASK, token)
        play(start(EDITION_1_1), ASK, token)


@pytest.mark.parametrize("text", ["YES", "yes", "NO", "RATHER_YES", "unknown", "no, not yesterday"])
def test_free_text_is_no_answer(text: str) -> None:
    with pytest.raises(IllegalEvent):
        play(start(EDITION_1_1), ASK).after(text)  # type: ignore[arg-type]
    with pytest.raises(IllegalEvent):
        play(start(EDITION_1_1), GUESS).after(text)  # type: ignore[arg-type]


def test_a_game_is_a_value() -> None:
    game = play(start(EDITION_1_1), ASK)
    assert game.after(Token.YES) == game.after(Token.YES) != game.after(Token.NO)
    with pytest.raises(dataclasses.FrozenInstanceError):
        game.counted = 0  # type: ignore[misc]


def test_what_a_view_can_hold_at_all() -> None:
    """The types are the wall: no field for a subject, a count, evidence, an id, a time or a cost."""
    assert [f.name for f in dataclasses.fields(View)] == ["category", "variation", "history"]
    assert [f.name for f in dataclasses.fields(Exchange)] == ["action", "token"]
    assert [f.name for f in dataclasses.fields(Reminder)] == []
    assert {f.name for f in dataclasses.fields(GuesserTurn)} == {"view", "turn", "guess_only"}


# ---- any order of events, against a reference


@dataclass
class Reference:
    """The table of turns on plain values. One step is a whole turn: (move, what the adjudicators would say)."""

    limit: int
    counted: int = 0
    row: int = 0
    outcome: str = ""
    shown: list[tuple[str, str]] = field(default_factory=list)

    def step(self, move: str, said: str) -> None:
        assert not self.outcome
        last_turn = self.counted == self.limit
        match move, said:
            case "guess", "YES":
                self.outcome = "success"
            case "guess", "UNKNOWN":
                self.outcome = "validator_unknown"
            case "guess", "NO" if last_turn:
                self.outcome = "limit_exhausted"
            case (("ask" | "bad"), _) if last_turn:
                self.outcome = "guesser_protocol_failure"
        if last_turn or self.outcome == "success":
            return
        self.counted += 1
        self.row = self.row + 1 if move == "bad" else 0
        if self.row == 5:
            self.outcome = "guesser_protocol_failure"
        if not self.outcome:
            self.shown.append(("reminder", "") if move == "bad" else (move, said))

    @property
    def score(self) -> int:
        return self.counted if self.outcome == "success" else self.limit + 1


SECRET = "s3cr3t"
"""Stands in every text of a violation; it must never be seen again."""

small = dataclasses.replace(EDITION_1_1, id="small", question_limit=6)
moves = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from(["YES", "NO", "UNKNOWN"])),
    st.tuples(st.just("bad"), st.sampled_from([f"{SECRET}", f'{{"action":"ASK","question":"{SECRET}"}}', f"{ASK.canonical}{SECRET}", ""])),
    st.tuples(st.just("guess"), st.sampled_from(["NO"] * 8 + ["YES", "UNKNOWN"])),
)
longer = st.lists(moves, max_size=70)
editions = st.sampled_from([EDITION_1_0, EDITION_1_1, small])


def turn(game: Game, number: int, move: str, said: str) -> Game:
    """One whole turn through the machine; each action has a text of its own."""
    match move:
        case "ask":
            action = parse(Ask(f"Is it number {number}?").canonical)
            ruled = game.rule(action)
            game = game.after(action)
            return game if isinstance(ruled, Violation) else game.after(Token(said))
        case "guess":
            return play(game, parse(Guess(f"number {number}", "one of many").canonical), Verdict(said))
        case _:
            return game.after(parse(said))


@given(editions, longer)
def test_counts_outcomes_and_views_agree_with_the_reference(edition: Edition, events: list[tuple[str, str]]) -> None:
    game, reference = start(edition), Reference(edition.question_limit)
    for number, (move, said) in enumerate(events, 1):
        if reference.outcome:
            break
        game = turn(game, number, move, said)
        reference.step(move, said)
        assert game.counted == reference.counted <= edition.question_limit
        outcome = str(reference.outcome)
        assert (game.ended is not None) == bool(outcome)
        if game.ended is not None:
            assert (game.ended.reason, game.ended.counted, game.ended.score) == (outcome, reference.counted, reference.score)
            assert game.ended.success == (outcome == "success") == (game.ended.score <= edition.question_limit)
        else:
            assert isinstance(game.needs, GuesserTurn)
            assert game.needs.turn == number + 1
            assert game.needs.guess_only == (reference.counted == edition.question_limit)
            seen = [
                ("reminder", "") if isinstance(item, Reminder) else (json.loads(item.action)["action"].lower(), str(item.token))
                for item in game.view.history
            ]
            assert seen == reference.shown


@given(editions, longer)
def test_each_view_is_a_strict_prefix_of_the_next_and_holds_nothing_else(edition: Edition, events: list[tuple[str, str]]) -> None:
    game, views = start(edition), [start(edition).view]
    for number, (move, said) in enumerate(events, 1):
        game = turn(game, number, move, said)
        if game.ended is not None:
            break
        views.append(game.view)
    for before, after in pairwise(views):
        assert (before.category, before.variation) == (after.category, after.variation)
        assert len(after.history) == len(before.history) + 1 and after.history[: len(before.history)] == before.history
    assert SECRET not in repr(views[-1])
    for position, item in enumerate(views[-1].history, 1):
        if isinstance(item, Exchange):
            assert isinstance(item.token, Token) and item.token in edition.tokens
            own = parse(item.action)
            assert isinstance(own, Ask | Guess) and own.canonical == item.action and f"number {position}" in item.action


anything = st.one_of(
    st.just(ASK), st.just(GUESS), st.builds(Violation, st.sampled_from(ViolationKind)), st.sampled_from(Token), st.sampled_from(Verdict)
)


@given(editions, st.lists(anything, max_size=200))
def test_no_event_out_of_place_moves_the_game_and_none_after_the_end(edition: Edition, events: list[Event]) -> None:
    game = start(edition)
    for event in events:
        needs = game.needs
        try:
            game = game.after(event)
        except IllegalEvent:
            assert game.needs == needs
        else:
            assert not isinstance(needs, Ended)
    if isinstance(game.needs, Ended):
        for event in (ASK, GUESS, BAD, *Token, *Verdict):
            with pytest.raises(IllegalEvent):
                game.after(event)


@given(editions, longer, st.data())
def test_the_kind_of_a_violation_changes_nothing(edition: Edition, events: list[tuple[str, str]], data: st.DataObject) -> None:
    one = other = start(edition)
    for number, (move, said) in enumerate(events, 1):
        if one.ended is not None:
            break
        if move == "bad":
            kinds = st.sampled_from(ViolationKind)
            one, other = one.after(Violation(data.draw(kinds))), other.after(Violation(data.draw(kinds)))
        else:
            one, other = turn(one, number, move, said), turn(other, number, move, said)
        assert one == other


@given(editions)
def test_a_game_always_ends(edition: Edition) -> None:
    for move, said in (("ask", "YES"), ("guess", "NO"), ("bad", "")):
        game, turns = start(edition), 0
        while game.ended is None:
            turns += 1
            game = turn(game, turns, move, said)
        assert turns <= edition.question_limit + 1
