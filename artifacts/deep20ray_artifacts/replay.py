"""Plays a trial's published turns through the rules again: what the turns say must give what the trial claims.

It knows rows and rules only. A mismatch is a refusal: the rows were made by something else than the game.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from deep20ray.actions import Ask, Guess, Violation, ViolationKind, parse
from deep20ray.adjudication import Final, decide
from deep20ray.answers import Basis, Token, Verdict
from deep20ray.editions import Edition
from deep20ray.errors import IllegalEvent
from deep20ray.game import Ended, Game
from deep20ray_artifacts.errors import RecordRefused

Row = Mapping[str, Any]

_ADJUDICATORS = ("oracle", "reviewer", "judge")
_ASK_ONLY = ("question", "path", *_ADJUDICATORS, *(f"{role}_basis" for role in _ADJUDICATORS))
_GUESS_ONLY = ("guess_name", "guess_description", "verdict")


def check_trial(edition: Edition, category: str, trial: Row, turns: Sequence[Row]) -> None:
    """Compares a trial's row with its turns' rows, which are in order.

    Raises:
        RecordRefused: the first difference.
    """
    game = Game.start(edition, category, trial["variation"])
    seen: set[str] = set()
    for number, row in enumerate(turns, start=1):
        where = f"trial {trial['trial_id'][:12]}, turn {number}"
        if row["turn"] != number:
            _refuse(where, "the turns aren't numbered from 1 without gaps")
        if isinstance(game.needs, Ended):
            _refuse(where, "play goes on after the end")
        action = _action(row, where)
        if game.rule(action) != action:
            _refuse(where, "a question stands in the guess-only turn")
        if row["repeated"] is not _repeats(action, seen):
            _refuse(where, "its mark of a repeated action is wrong")
        before = game.counted
        game = _played(game, action, row, where)
        if row["counted_questions"] != game.counted or row["counted"] is not (game.counted > before):
            _refuse(where, f"it counts {row['counted_questions']} questions where the game counts {game.counted}")
    _check_outcome(game, trial)
    _check_numbers(trial, turns)


def _action(row: Row, where: str) -> Ask | Guess | Violation:
    """The turn's action, with the columns of the other kinds empty."""
    match row["kind"]:
        case "ask":
            _check_empty(row, (*_GUESS_ONLY, "violation_kind"), where)
            action: Ask | Guess = Ask(row["question"] or "")
        case "guess":
            _check_empty(row, (*_ASK_ONLY, "violation_kind"), where)
            action = Guess(row["guess_name"] or "", row["guess_description"] or "")
        case "violation" if row["violation_kind"] in set(ViolationKind):
            _check_empty(row, (*_ASK_ONLY, *_GUESS_ONLY, "final_token"), where)
            if row["degenerate"]:
                _refuse(where, "a violation holds no question to be degenerate")
            return Violation(ViolationKind(row["violation_kind"]))
        case _:
            _refuse(where, "it is no ask, guess or known violation")
    if parse(action.canonical) != action:
        _refuse(where, "its text is none that the action contract accepts")
    if row["degenerate"] is not (isinstance(action, Ask) and action.degenerate):
        _refuse(where, "its mark of a degenerate question is wrong")
    return action


def _repeats(action: Ask | Guess | Violation, seen: set[str]) -> bool:
    if isinstance(action, Violation):
        return False
    repeated = action.canonical in seen
    seen.add(action.canonical)
    return repeated


def _played(game: Game, action: Ask | Guess | Violation, row: Row, where: str) -> Game:
    try:
        game = game.after(action)
        match action:
            case Ask():
                return game.after(_final_token(row, where))
            case Guess():
                if row["final_token"] != row["verdict"]:
                    _refuse(where, "a guess's token is its verdict")
                return game.after(Verdict(row["verdict"]))
            case Violation():
                return game
    except (IllegalEvent, ValueError):
        _refuse(where, "its token or verdict isn't the edition's")


def _final_token(row: Row, where: str) -> Token:
    """The answer, by the decision rule over what each adjudicator said. Raises ValueError for an unknown token."""
    for role in _ADJUDICATORS:
        basis = row[f"{role}_basis"]
        if basis is not None and (row[role] is None or basis not in set(Basis)):
            _refuse(where, f"the {role}'s basis is unknown or belongs to no answer")
    oracle, reviewer, judge = (None if row[role] is None else Token(row[role]) for role in _ADJUDICATORS)
    decision = decide(oracle, reviewer, judge)
    if not isinstance(decision, Final) or (row["final_token"], row["path"]) != (str(decision.token), str(decision.path)):
        _refuse(where, "its final token doesn't follow from the adjudicators' answers")
    return decision.token


def _check_outcome(game: Game, trial: Row) -> None:
    where = f"trial {trial['trial_id'][:12]}"
    claimed = tuple(trial[name] for name in ("success", "terminal_reason", "counted_questions", "score"))
    match trial["status"], game.needs:
        case "scored", Ended() as ended:
            played = (ended.success, str(ended.reason), ended.counted, ended.score)
            if claimed != played:
                _refuse(where, f"it claims {claimed} where its turns give {played}")
            if trial["cause"] is not None or trial["completed_at"] is None:
                _refuse(where, "a scored trial has an end and no cause of failure")
        case "scored", _:
            _refuse(where, "it is scored, but its turns don't end it")
        case (("infrastructure" | "unfinished"), Ended()):
            _refuse(where, "its turns end it, but it isn't scored")
        case ("infrastructure" | "unfinished") as status, _:
            if claimed[0] is not None or claimed[1] is not None or claimed[3] is not None or claimed[2] not in {None, game.counted}:
                _refuse(where, "it has an outcome without being scored")
            if status == "infrastructure" and not trial["cause"]:
                _refuse(where, "it ended by infrastructure without a cause")
        case _:
            _refuse(where, "its status is unknown")


def _check_numbers(trial: Row, turns: Sequence[Row]) -> None:
    """The trial's sums, each over its turns."""
    asks = [row for row in turns if row["kind"] == "ask"]
    guesses = [row for row in turns if row["kind"] == "guess"]
    violations = [row for row in turns if row["kind"] == "violation"]
    expected = {
        "turns": len(turns),
        "asks": len(asks),
        "guesses": len(guesses),
        "rejected_guesses": sum(row["verdict"] == "NO" for row in guesses),
        "repeated_guesses": sum(row["repeated"] for row in guesses),
        "violations": len(violations),
        "counted_penalties": sum(row["counted"] for row in violations),
        "unknown_answers": sum(row["final_token"] == "UNKNOWN" for row in asks),
        "degenerate_questions": sum(row["degenerate"] for row in asks),
    }
    for name, value in expected.items():
        if trial[name] != value:
            _refuse(f"trial {trial['trial_id'][:12]}", f"{name} is {trial[name]} where its turns give {value}")


def _check_empty(row: Row, names: Sequence[str], where: str) -> None:
    for name in names:
        if row[name] is not None:
            _refuse(where, f"{name} must be empty in a turn of kind {row['kind']}")


def _refuse(where: str, why: str) -> NoReturn:
    raise RecordRefused(f"{where}: {why}; the run must be sealed again")
