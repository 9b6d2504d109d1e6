"""The CSV files of an edition.

Every row names its edition, whether it is official or a preview, and whether its run is simulated. No text can become a formula.
"""

import csv
import io
from collections.abc import Iterator, Mapping

from deep20ray_publisher.board import EditionBoards
from deep20ray_publisher.formats import iso
from deep20ray_publisher.records import RunRow
from deep20ray_publisher.text import spreadsheet_text

Value = str | int | float | bool | None
Row = Mapping[str, Value]


def leaderboard(edition: EditionBoards) -> bytes:
    """One row per run on a board, in rank order."""
    return _csv(_leaderboard_rows(edition))


def trials(edition: EditionBoards) -> bytes:
    """One row per trial of every published run."""
    return _csv(_trial_rows(edition))


def turns(edition: EditionBoards) -> bytes:
    """One row per turn of every published run."""
    return _csv(_turn_rows(edition))


def _leaderboard_rows(edition: EditionBoards) -> Iterator[Row]:
    for board in edition.boards:
        for each in board.standings:
            figures, costs = each.reliability, each.costs
            yield {
                **_head(edition, each.entry.record.run),
                "cohort": board.cohort,
                "rank": each.place.rank,
                "rank_shared": each.place.shared,
                "score": each.score.score,
                "low_95": each.score.low,
                "high_95": each.score.high,
                "nu": each.score.nu,
                "width": each.score.width,
                "stability_rank": each.stability.rank if each.stability else None,
                "subjects": len(board.subjects),
                "trials": costs.trials,
                "solved": costs.solved,
                "compliance": figures.compliance,
                "violations": figures.violations,
                "affected_trials": figures.affected_trials,
                "counted_penalties": figures.counted_penalties,
                "degenerate_questions": figures.degenerate,
                "model_cost_microusd": costs.model,
                "total_cost_microusd": costs.everything,
                "completed_at": iso(each.entry.record.run.completed_at),
                "statement_sha256": each.entry.statement_sha256,
            }


def _trial_rows(edition: EditionBoards) -> Iterator[Row]:
    for entry in edition.entries:
        names = {subject.subject_id: subject.name for subject in entry.record.subjects}
        for trial in entry.record.trials:
            yield {
                **_head(edition, entry.record.run),
                "trial_id": trial.trial_id,
                "subject_id": trial.subject_id,
                "subject": names[trial.subject_id],
                "round": trial.round,
                "status": trial.status,
                "success": trial.success,
                "terminal_reason": trial.terminal_reason,
                "counted_questions": trial.counted_questions,
                "score": trial.score,
                "turns": trial.turns,
                "asks": trial.asks,
                "guesses": trial.guesses,
                "rejected_guesses": trial.rejected_guesses,
                "repeated_guesses": trial.repeated_guesses,
                "violations": trial.violations,
                "counted_penalties": trial.counted_penalties,
                "unknown_answers": trial.unknown_answers,
                "degenerate_questions": trial.degenerate_questions,
                "attempts": trial.attempts,
                "cause": trial.cause,
                "model_cost_microusd": trial.guesser_cost_microusd,
                "total_cost_microusd": trial.cost_microusd,
                "reused_answers": trial.reused_answers,
                "adjudication_cost_microusd": trial.adjudication_cost_microusd,
                "fresh_adjudication_cost_microusd": trial.fresh_adjudication_cost_microusd,
                "duration_ms": trial.duration_ms,
                "completed_at": iso(trial.completed_at),
            }


def _turn_rows(edition: EditionBoards) -> Iterator[Row]:
    for entry in edition.entries:
        for trial in entry.record.trials:
            for turn in entry.record.turns.get(trial.trial_id, ()):
                yield {
                    **_head(edition, entry.record.run),
                    "trial_id": turn.trial_id,
                    "subject_id": trial.subject_id,
                    "round": trial.round,
                    "turn": turn.turn,
                    "kind": turn.kind,
                    "counted": turn.counted,
                    "counted_questions": turn.counted_questions,
                    "question": turn.question,
                    "guess_name": turn.guess_name,
                    "guess_description": turn.guess_description,
                    "final_token": turn.final_token,
                    "path": turn.path,
                    "oracle": turn.oracle,
                    "reviewer": turn.reviewer,
                    "judge": turn.judge,
                    "degenerate": turn.degenerate,
                    "repeated": turn.repeated,
                    "violation_kind": turn.violation_kind,
                    "evidence_items": len(entry.record.evidence.get((turn.trial_id, turn.turn), ())),
                    "source_run": turn.source_run,
                    "source_trial": turn.source_trial,
                    "source_turn": turn.source_turn,
                    "source_at": iso(turn.source_at),
                    "source_policy": turn.source_policy,
                    "disputed": turn.disputed,
                    "completed_at": iso(turn.completed_at),
                }


def _head(edition: EditionBoards, run: RunRow) -> Row:
    return {
        "publication": "preview" if edition.preview else "official",
        "simulated": run.simulated,
        "edition": run.edition,
        "model_id": run.model_id,
        "model": run.model_name,
        "run_id": run.run_id,
    }


def _csv(rows: Iterator[Row]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    for index, row in enumerate(rows):
        if not index:
            writer.writerow(row)
        writer.writerow([_cell(value) for value in row.values()])
    return out.getvalue().encode()


def _cell(value: Value) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return spreadsheet_text(value)
