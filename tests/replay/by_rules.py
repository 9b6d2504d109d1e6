"""Plays recorded games by the rules and the replay server's replies alone, without Ray, HTTP or a journal, into tables like the sealed ones."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_never

import pyarrow as pa

import deep20ray_cohorts
from deep20ray.actions import Ask, Guess, Violation, ViolationKind, parse
from deep20ray.adjudication import Final, decide
from deep20ray.answers import Role, Token, Verdict
from deep20ray.editions import EDITION_1_0
from deep20ray.game import Answer, Ended, Game, GuesserTurn, Ruling
from deep20ray.seeds import TrialId, sampling_seed, trial_id
from deep20ray.subjects import protocol_version
from deep20ray_actors.replies import oracle_answer, reviewed_answer, validated_guess
from tests.replay.recording import Run
from tests.replay.server import COHORT, Replies

Row = dict[str, Any]


class Unanswered(Exception):
    """Nothing was recorded for a call."""


class _Asker:
    def __init__(self, run: Run, replies: Replies, trial: TrialId) -> None:
        self._run, self._replies, self._trial = run, replies, trial

    def ask(self, role: Role, turn: int) -> tuple[str, str]:
        try:
            return self._replies[(self._run.id, role.value)][sampling_seed(self._run.seed, self._trial, role, turn)]
        except KeyError:
            raise Unanswered(f"{role.value}, turn {turn}") from None


def play(run: Run, replies: Replies, folder: Path) -> Path:
    """Plays every trial of a run and writes trials, turns and violations."""
    protocol = protocol_version(EDITION_1_0, deep20ray_cohorts.load(COHORT))
    tables: Mapping[str, list[Row]] = {"trials": [], "turns": [], "violations": []}
    for subject, round_ in run.games:
        trial = trial_id(protocol, run.seed, subject, round_)
        row = {"trial_id": trial, "subject_id": subject, "round": round_, "status": "infrastructure", "cause": None}
        row |= dict.fromkeys(("success", "terminal_reason", "counted_questions", "score"))
        try:
            ended = _trial(_Asker(run, replies, trial), trial, tables["turns"], tables["violations"])
            row |= {"status": "scored", "success": ended.success, "terminal_reason": ended.reason.value}
            row |= {"counted_questions": ended.counted, "score": ended.score}
        except Unanswered as error:
            row["cause"] = f"nothing recorded: {error}"
        tables["trials"].append(row)
    folder.mkdir()
    for name, rows in tables.items():
        write(folder / f"{name}.arrow", rows)
    return folder


def write(path: Path, rows: list[Row]) -> None:
    """One Arrow file of plain values."""
    table = pa.Table.from_pylist(rows)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _trial(asker: _Asker, trial: str, turns: list[Row], violations: list[Row]) -> Ended:
    game = Game.start(EDITION_1_0, "person", "x")
    row: Row = {}
    while True:
        needs = game.needs
        match needs:
            case Ended():
                return needs
            case GuesserTurn():
                text, finish = asker.ask(Role.GUESSER, needs.turn)
                action = game.rule(parse(text) if finish == "stop" else Violation(ViolationKind.OUTPUT_LIMIT))
                row = {"trial_id": trial, "turn": needs.turn, "final_token": None, "violation_kind": None}
                row |= {"oracle": None, "reviewer": None, "judge": None, "verdict": None}
                game = game.after(action)
                row |= {"kind": _kind(action), "counted_questions": game.counted}
                if isinstance(action, Violation):
                    violations.append({"trial_id": trial, "turn": needs.turn, "kind": action.kind.value})
                    turns.append(row | {"violation_kind": action.kind.value})
            case Answer():
                given = _adjudicated(asker, row["turn"])
                game = game.after(given["final_token"])
                turns.append(row | {key: token.value for key, token in given.items()} | {"counted_questions": game.counted})
            case Ruling():
                verdict = _verdict(asker, row["turn"])
                game = game.after(verdict)
                turns.append(row | {"final_token": verdict.value, "verdict": verdict.value, "counted_questions": game.counted})
            case _:
                assert_never(needs)


def _kind(action: Ask | Guess | Violation) -> str:
    return type(action).__name__.lower()


def _adjudicated(asker: _Asker, turn: int) -> dict[str, Token]:
    given: dict[str, Token] = {}
    while True:
        step = decide(**given)
        if isinstance(step, Final):
            return given | {"final_token": step.token}
        text, _ = asker.ask(step.role, turn)
        if step.role is Role.ORACLE:
            answer = oracle_answer(text, EDITION_1_0.tokens, ())
            assert answer is not None
            given["oracle"] = answer.token
        else:
            reviewed = reviewed_answer(text, EDITION_1_0.tokens)
            assert reviewed is not None
            given[step.role.value] = reviewed.token


def _verdict(asker: _Asker, turn: int) -> Verdict:
    ruled = validated_guess(asker.ask(Role.VALIDATOR, turn)[0])
    assert ruled is not None
    return ruled.verdict
