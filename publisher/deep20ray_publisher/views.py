"""What the run, subject and episode pages show, put together from a run's rows. No HTML here."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from deep20ray.editions import Edition
from deep20ray_publisher import charts, turnmap
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


def subject_line(rules: Edition, entry: Entry, subject: SubjectRow) -> SubjectLine:
    """One line of a run's grid."""
    record = entry.record
    trials = record.trials_of(subject.subject_id)
    scores = [trial.score for trial in trials if trial.score is not None]
    mean = fmean(scores) if trials and len(scores) == len(trials) else None
    return SubjectLine(
        subject=subject,
        cells=tuple(
            TrialCell(trial, charts.heat(rules, trial.score, trial.success), entry.summary.strips.get(trial.trial_id, ()))
            for trial in trials
        ),
        mean=mean,
        heat=charts.heat(rules, mean),
        reliability=reliability(trials, entry.summary.kinds),
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
    cell: turnmap.Cell
    steps: tuple[Step, ...]
    evidence: tuple[tuple[EvidenceRow, Link], ...]
    violation: ViolationRow | None
    latency_ms: int | None
    cost_microusd: int | None
    origin: tuple[SubjectRow, TrialRow] | None
    """Where a reused answer was given, if it was in this run."""


Places = Mapping[str, tuple[SubjectRow, TrialRow]]


def places(record: RunRecord) -> Places:
    """Subject and trial by trial id."""
    subjects = {subject.subject_id: subject for subject in record.subjects}
    return {trial.trial_id: (subjects[trial.subject_id], trial) for trial in record.trials}


def turn_views(record: RunRecord, trial: TrialRow, known: Places) -> tuple[TurnView, ...]:
    """A trial's transcript."""
    turns = record.turns.get(trial.trial_id, ())
    calls: dict[int, list[CallRow]] = defaultdict(list)
    for call in record.calls.get(trial.trial_id, ()):
        if call.state == "terminal":
            calls[call.turn].append(call)
    return tuple(_turn(record, turn, cell, calls.get(turn.turn, []), known) for turn, cell in zip(turns, turnmap.cells(turns), strict=True))


def _turn(record: RunRecord, turn: TurnRow, cell: turnmap.Cell, calls: Sequence[CallRow], known: Places) -> TurnView:
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
        origin=known.get(turn.source_trial or "") if turn.source_run == record.run.run_id else None,
    )


def _steps(turn: TurnRow) -> list[Step]:
    said = (
        ("Oracle", turn.oracle, turn.oracle_basis),
        ("Reviewer", turn.reviewer, turn.reviewer_basis),
        ("Judge", turn.judge, turn.judge_basis),
    )
    return [Step(role, token, basis, turnmap.token_kind(token)) for role, token, basis in said if token is not None]


@dataclass(frozen=True, slots=True)
class Said:
    """A turn in a few words, for a path beside another."""

    turn: int
    text: str | None
    """The question or the guess; None for a violation."""
    cell: turnmap.Cell


@dataclass(frozen=True, slots=True)
class Duel:
    """One round of two runs on one subject."""

    one: TrialCell
    other: TrialCell
    one_path: tuple[Said, ...]
    other_path: tuple[Said, ...]


def steps(record: RunRecord, trial: TrialRow) -> tuple[Said, ...]:
    """A trial's path."""
    turns = record.turns.get(trial.trial_id, ())
    return tuple(
        Said(turn.turn, turn.question if turn.kind == "ask" else turn.guess_name, cell)
        for turn, cell in zip(turns, turnmap.cells(turns), strict=True)
    )
