"""What the run, subject and episode pages show, put together from a run's rows. No HTML here."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from deep20ray.editions import Edition
from deep20ray_publisher import charts
from deep20ray_publisher.board import Board, EditionBoards, LeftOut, Standing
from deep20ray_publisher.catalog import Entry
from deep20ray_publisher.figures import Reliability, reliability, total
from deep20ray_publisher.records import CallRow, EvidenceRow, RunRecord, SubjectRow, TrialRow, TurnRow, ViolationRow
from deep20ray_publisher.text import Link, link


@dataclass(frozen=True, slots=True)
class TrialCell:
    """A trial in a grid."""

    trial: TrialRow
    heat: str
    strip: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SubjectLine:
    """A subject's trials in one run, by round, with the mean of their scores (None unless all are scored)."""

    subject: SubjectRow
    cells: tuple[TrialCell, ...]
    mean: float | None
    heat: str
    reliability: Reliability


def subject_line(rules: Edition, record: RunRecord, subject: SubjectRow) -> SubjectLine:
    """One line of a run's grid."""
    trials = record.trials_of(subject.subject_id)
    scores = [trial.score for trial in trials if trial.score is not None]
    mean = fmean(scores) if trials and len(scores) == len(trials) else None
    return SubjectLine(
        subject=subject,
        cells=tuple(
            TrialCell(trial, charts.heat(rules, trial.score, trial.success), charts.strip(record.turns.get(trial.trial_id, ())))
            for trial in trials
        ),
        mean=mean,
        heat=charts.heat(rules, mean),
        reliability=reliability(record, trials),
    )


@dataclass(frozen=True, slots=True)
class RunStanding:
    """A published run with its place, or why it has none."""

    entry: Entry
    board: Board | None
    standing: Standing | None
    left_out: LeftOut | None


def run_standings(edition: EditionBoards) -> tuple[RunStanding, ...]:
    """Every run of an edition: those on boards in their order, then the others."""
    ranked: dict[str, tuple[Board, Standing]] = {
        each.entry.record.run.run_id: (board, each) for board in edition.boards for each in board.standings
    }
    left_out = {item.entry.record.run.run_id: item for item in edition.left_out}
    order = {run_id: index for index, run_id in enumerate(ranked)}
    entries = sorted(edition.entries, key=lambda entry: order.get(entry.record.run.run_id, len(order)))
    return tuple(_run_standing(entry, ranked.get(entry.record.run.run_id), left_out.get(entry.record.run.run_id)) for entry in entries)


def _run_standing(entry: Entry, ranked: tuple[Board, Standing] | None, left_out: LeftOut | None) -> RunStanding:
    board, standing = ranked or (None, None)
    return RunStanding(entry, board, standing, left_out)


@dataclass(frozen=True, slots=True)
class Step:
    """One adjudicator's step on the way to a final token."""

    role: str
    token: str
    basis: str | None
    kind: str
    """The class of the token's colour."""


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn as the transcript shows it."""

    row: TurnRow
    cell: charts.Cell
    steps: tuple[Step, ...]
    evidence: tuple[tuple[EvidenceRow, Link], ...]
    violation: ViolationRow | None
    latency_ms: int | None
    cost_microusd: int | None
    origin: tuple[SubjectRow, TrialRow] | None
    """Where a reused answer was given, if it was in this run."""


def turn_views(record: RunRecord, trial: TrialRow) -> tuple[TurnView, ...]:
    """A trial's transcript."""
    turns = record.turns.get(trial.trial_id, ())
    calls = [call for call in record.calls.get(trial.trial_id, ()) if call.state == "terminal"]
    return tuple(
        _turn(record, turn, cell, [call for call in calls if call.turn == turn.turn])
        for turn, cell in zip(turns, charts.cells(turns), strict=True)
    )


def _turn(record: RunRecord, turn: TurnRow, cell: charts.Cell, calls: Sequence[CallRow]) -> TurnView:
    place = (turn.trial_id, turn.turn)
    latencies = [call.latency_ms for call in calls if call.latency_ms is not None]
    return TurnView(
        row=turn,
        cell=cell,
        steps=tuple(_steps(turn)),
        evidence=tuple((item, link(item.url)) for item in record.evidence.get(place, ())),
        violation=record.violations.get(place),
        latency_ms=sum(latencies) if latencies else None,
        cost_microusd=total(call.cost_microusd for call in calls) if calls else None,
        origin=_origin(record, turn),
    )


def _origin(record: RunRecord, turn: TurnRow) -> tuple[SubjectRow, TrialRow] | None:
    if turn.source_run != record.run.run_id:
        return None
    trial = next(trial for trial in record.trials if trial.trial_id == turn.source_trial)
    return next(subject for subject in record.subjects if subject.subject_id == trial.subject_id), trial


def _steps(turn: TurnRow) -> list[Step]:
    said = (
        ("Oracle", turn.oracle, turn.oracle_basis),
        ("Reviewer", turn.reviewer, turn.reviewer_basis),
        ("Judge", turn.judge, turn.judge_basis),
    )
    return [Step(role, token, basis, charts.token_kind(token)) for role, token, basis in said if token is not None]
