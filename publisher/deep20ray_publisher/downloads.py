"""The files of an edition for other programs: CSV, JSON, Arrow and Parquet of the same rows.

Every row names its edition, whether it is official or a preview, and whether its run is simulated. In CSV no text can become a formula
and hidden characters are shown; the other forms hold the exact text. Turns are written run by run and never held all at once.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deep20ray_publisher.analysis import BoardNumbers
from deep20ray_publisher.board import EditionBoards
from deep20ray_publisher.catalog import Entry
from deep20ray_publisher.formats import iso
from deep20ray_publisher.records import RunRow
from deep20ray_publisher.text import spreadsheet_text

Value = str | int | float | bool | None
Row = Mapping[str, Value]


def leaderboard(edition: EditionBoards) -> list[Row]:
    """One row per run on a board, in rank order."""
    return list(_leaderboard_rows(edition))


def trials(edition: EditionBoards) -> list[Row]:
    """One row per trial of every published run."""
    return list(_trial_rows(edition))


def turns(edition: EditionBoards, entry: Entry) -> list[Row]:
    """One row per turn of a run."""
    return list(_turn_rows(edition, entry))


def differences(edition: EditionBoards, numbers: Iterable[BoardNumbers]) -> list[Row]:
    """One row per pair of runs on a board."""
    return [
        {
            "publication": "preview" if edition.preview else "official",
            "edition": edition.rules.id,
            "cohort": each.board.cohort,
            "model_id": pair.one.entry.record.run.model_id,
            "other_model_id": pair.other.entry.record.run.model_id,
            "run_id": pair.one.entry.record.run.run_id,
            "other_run_id": pair.other.entry.record.run.run_id,
            "difference": pair.difference.estimate,
            "low_95": pair.difference.low,
            "high_95": pair.difference.high,
            "nu": pair.difference.nu,
            "p": pair.difference.p,
            "separated_by_holm": pair.separated,
        }
        for each in numbers
        for pair in each.pairs
    ]


def to_csv(rows: Sequence[Row], heading: bool = True) -> bytes:
    """RFC 4180, every cell quoted. Empty for no rows."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    if rows and heading:
        writer.writerow(rows[0])
    writer.writerows([_cell(value) for value in row.values()] for row in rows)
    return out.getvalue().encode()


def to_json(edition: EditionBoards, rows: Sequence[Row]) -> bytes:
    """The rows with what holds for all of them; ASCII alone."""
    document = {
        "edition": edition.rules.id,
        "publication": "preview" if edition.preview else "official",
        "scoring": "average-then-average-v1",
        "as_of": iso(edition.as_of),
        "rows": [dict(row) for row in rows],
    }
    return json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False).encode() + b"\n"


def table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    """The rows as an Arrow table."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def to_arrow(found: pa.Table) -> bytes:
    """An Arrow IPC file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, found.schema) as writer:
        writer.write_table(found)
    return bytes(sink.getvalue())


def to_parquet(found: pa.Table) -> bytes:
    """A Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(found, sink)
    return bytes(sink.getvalue())


def join_turns(parts: Sequence[tuple[Path, Path]], csv_to: Path, arrow_to: Path, parquet_to: Path) -> None:
    """Puts the turns of single runs together, one run in memory at a time. Args: parts are each run's CSV and Arrow file."""
    with (
        csv_to.open("wb") as text,
        pa.OSFile(str(arrow_to), "wb") as sink,
        pa.ipc.new_file(sink, TURN_SCHEMA) as arrow,
        pq.ParquetWriter(str(parquet_to), TURN_SCHEMA) as parquet,
    ):
        for number, (csv_part, arrow_part) in enumerate(parts):
            data = csv_part.read_bytes()
            text.write(data if not number else data.partition(b"\r\n")[2])
            found = pa.ipc.open_file(pa.BufferReader(arrow_part.read_bytes())).read_all()
            arrow.write_table(found)
            parquet.write_table(found)


def _schema(**columns: str) -> pa.Schema:
    kinds: dict[str, Any] = {"s": pa.string(), "i": pa.int64(), "f": pa.float64(), "b": pa.bool_(), "t": pa.string()}
    fields = {"publication": "s", "simulated": "b", "edition": "s", "model_id": "s", "model": "s", "run_id": "s"} | columns
    return pa.schema([pa.field(name, kinds[kind]) for name, kind in fields.items()])


def _leaderboard_rows(edition: EditionBoards) -> Iterator[Row]:
    for board in edition.boards:
        for each in board.standings:
            figures, costs = each.reliability, each.costs
            yield {
                **_head(edition, each.entry.record.run),
                "cohort": board.cohort,
                "rank": each.place.rank,
                "rank_shared": each.place.shared,
                "rank_low": each.ranks.low,
                "rank_high": each.ranks.high,
                "score": each.score.score,
                "low_95": each.score.low,
                "high_95": each.score.high,
                "nu": each.score.nu,
                "width": each.score.width,
                "stability_rank": each.stability.rank if each.stability else None,
                "subjects": len(board.subjects),
                "trials": costs.trials,
                "solved": costs.solved,
                "success_rate": each.success_rate,
                "compliance": figures.compliance,
                "violations": figures.violations,
                "affected_trials": figures.affected_trials,
                "counted_penalties": figures.counted_penalties,
                "degenerate_questions": figures.degenerate,
                "model_cost_microusd": costs.model,
                "total_cost_microusd": costs.everything,
                "gross_cost_microusd": costs.gross_known,
                "fresh_adjudication_cost_microusd": costs.fresh_adjudication,
                "trial_ms": each.entry.summary.timing.per_trial,
                "model_call_ms": each.entry.summary.timing.per_call,
                "policy": each.entry.record.run.policy,
                "contract": each.entry.official.predicate.id if each.entry.official else None,
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


def _turn_rows(edition: EditionBoards, entry: Entry) -> Iterator[Row]:
    head, record = _head(edition, entry.record.run), entry.record
    for trial in record.trials:
        for turn in record.turns.get(trial.trial_id, ()):
            violation = record.violations.get((turn.trial_id, turn.turn))
            yield {
                **head,
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
                "evidence_items": len(record.evidence.get((turn.trial_id, turn.turn), ())),
                "source_run": turn.source_run,
                "source_trial": turn.source_trial,
                "source_turn": turn.source_turn,
                "source_at": iso(turn.source_at),
                "source_policy": turn.source_policy,
                "disputed": turn.disputed,
                "violation_text": violation.text if violation else None,
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


TRIAL_SCHEMA = _schema(
    trial_id="s", subject_id="s", subject="s", round="i", status="s", success="b", terminal_reason="s", counted_questions="i", score="i",
    turns="i", asks="i", guesses="i", rejected_guesses="i", repeated_guesses="i", violations="i", counted_penalties="i",
    unknown_answers="i", degenerate_questions="i", attempts="i", cause="s", model_cost_microusd="i", total_cost_microusd="i",
    reused_answers="i", adjudication_cost_microusd="i", fresh_adjudication_cost_microusd="i", duration_ms="i", completed_at="t",
)  # fmt: skip
TURN_SCHEMA = _schema(
    trial_id="s", subject_id="s", round="i", turn="i", kind="s", counted="b", counted_questions="i", question="s", guess_name="s",
    guess_description="s", final_token="s", path="s", oracle="s", reviewer="s", judge="s", degenerate="b", repeated="b",
    violation_kind="s", evidence_items="i", source_run="s", source_trial="s", source_turn="i", source_at="t", source_policy="s",
    disputed="b", violation_text="s", completed_at="t",
)  # fmt: skip
