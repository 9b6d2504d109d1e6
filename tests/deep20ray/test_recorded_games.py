"""The rules alone, on games that others recorded: every count, outcome and terminal reason must come out as it was published."""

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deep20ray.actions import Ask, Guess, Violation, ViolationKind, parse
from deep20ray.adjudication import Final, decide
from deep20ray.answers import Token, Verdict
from deep20ray.editions import EDITION_1_0
from deep20ray.game import Answer, Ended, Game, GuesserTurn, Reason, Ruling
from deep20ray.score import score_run

DATA = Path(__file__).parents[3] / "shared" / "data" / "deep20bench-v1.0"
KINDS = {"invalid_json": ViolationKind.NOT_JSON, "invalid_action": ViolationKind.WRONG_ACTION}

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"{DATA} is not there: the recorded games come with the shared data")

Key = tuple[str, str, str]
Row = dict[str, Any]


def lines(name: str) -> Iterator[Row]:
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def key(row: Row) -> Key:
    return row["execution_id"], row["target_id"], row["trial"]


def table(name: str) -> list[Row]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def recorded() -> dict[Key, list[Row]]:
    """Each trial's turns in order, violations among them, guesses with their verdicts."""
    verdicts = {(*key(row), row["turn"]): row["validator"] for row in lines("guesses.jsonl")}
    trials: dict[Key, list[Row]] = defaultdict(list)
    # turns.jsonl marks where a violation stood; violations.jsonl has the same row with its text.
    moves = (row for row in lines("turns.jsonl") if row["type"] != "violation")
    for row in (*moves, *lines("violations.jsonl")):
        trials[key(row)].append({**row, "verdict": verdicts.get((*key(row), row["turn"]))})
    return {each: sorted(turns, key=lambda row: row["turn"]) for each, turns in trials.items()}


def unwrapped(text: str) -> str:
    """Without the recordings' one-key envelope where that is all that differs; else the fault as it was."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return json.dumps(value["result"]) if isinstance(value, dict) and value.keys() == {"result"} else text


def action(row: Row) -> Ask | Guess | Violation:
    if "violation_kind" in row:
        (rejected,) = row["rejected_outputs"]
        return parse(unwrapped(rejected["text"]))
    if row["type"] == "ASK":
        return parse(Ask(row["question"]).canonical)
    return parse(Guess(row["guess_name"], row["guess_description"]).canonical)


def token(row: Row) -> Token:
    final = decide(*(Token(row[role]) if row[role] else None for role in ("oracle", "reviewer", "judge")))
    assert isinstance(final, Final), row
    assert final.token == row["answer"], row
    return final.token


def played(turns: list[Row]) -> Game:
    """A whole trial through the rules, each turn held against its record."""
    game = Game.start(EDITION_1_0, "person", "")
    for row in turns:
        assert isinstance(game.needs, GuesserTurn), row
        assert game.needs.turn == row["turn"]
        move = action(row)
        if "violation_kind" in row:
            assert move == Violation(KINDS[row["violation_kind"]]), row
        else:
            assert not isinstance(move, Violation), row
        game = game.after(move)
        match game.needs:
            case Answer():
                game = game.after(token(row))
            case Ruling():
                game = game.after(Verdict(row["verdict"]))
        assert game.counted == row["counted_questions"], row
    if game.ended is None:
        # The last, uncounted reply of a game that ended by a protocol failure at the limit isn't among the published turns.
        assert game.at_limit
        game = game.after(Ask("Is it?"))
        assert game.ended is not None and game.ended.reason is Reason.GUESSER_PROTOCOL_FAILURE
    return game


def test_every_recorded_trial_comes_out_as_published(recorded: dict[Key, list[Row]]) -> None:
    published = table("trials.csv")
    assert len(published) == 210
    reasons: Counter[str] = Counter()
    for trial in published:
        ended = played(recorded[key(trial)]).needs
        assert isinstance(ended, Ended)
        got = (ended.success, str(ended.reason), ended.counted, ended.score)
        wanted = (trial["success"] == "True", trial["terminal_reason"], int(trial["counted_questions"]), int(trial["score"]))
        assert got == wanted, key(trial)
        reasons[ended.reason] += 1
    assert reasons == {"success": 185, "limit_exhausted": 19, "guesser_protocol_failure": 5, "validator_unknown": 1}


def test_every_published_score_and_interval_comes_out(recorded: dict[Key, list[Row]]) -> None:
    board = table("leaderboard-published.csv")
    assert len(board) == 6
    for line in board:
        trials: dict[str, list[int]] = defaultdict(list)
        for (run, subject, _), turns in recorded.items():
            if run == line["execution_id"]:
                ended = played(turns).ended
                assert ended is not None
                trials[subject].append(ended.score)
        score = score_run(trials)
        assert score.low is not None and score.high is not None
        assert abs(score.score - float(line["question_score"])) < 1e-9
        assert abs(score.low - float(line["question_score_ci_lower"])) < 1e-9
        assert abs(score.high - float(line["question_score_ci_upper"])) < 1e-9


def test_a_changed_verdict_is_noticed(recorded: dict[Key, list[Row]]) -> None:
    """What proves that the comparison compares."""
    turns = next(turns for turns in recorded.values() if turns[-1]["verdict"] == "YES")
    changed = [*turns[:-1], {**turns[-1], "verdict": "UNKNOWN"}]
    with pytest.raises(AssertionError):
        played(changed)
    assert (
        played(turns).ended
        != played([*turns[:-1], {**turns[-1], "verdict": "UNKNOWN", "counted_questions": turns[-1]["counted_questions"] + 1}]).ended
    )


@pytest.mark.failure_case(6)
def test_recorded_junk_questions_are_flagged() -> None:
    """The record's own marks are no norm: what plainly holds no question must be seen, and no real question be taken for junk."""
    marked = {row["question"] for row in lines("degenerate-questions.jsonl") if row["question"]}
    junk = {"placeholder", ",", "question", "n", "}}{", "filler", "question_placeholder"}
    assert junk <= marked
    assert {question for question in marked if Ask(question).degenerate} == junk
    asked = {row["question"] for row in lines("turns.jsonl") if row["type"] == "ASK"}
    assert {question for question in asked if Ask(question).degenerate} == junk
