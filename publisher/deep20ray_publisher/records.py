"""A run's verified tables as typed rows with indexes. It reads tables and judges nothing."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from deep20ray_artifacts.verify import VerifiedRun


@dataclass(frozen=True, slots=True)
class RunRow:
    """The row of table ``run``."""

    run_id: str
    sweep: str
    edition: str
    cohort: str
    cohort_sha256: str
    protocol_version: str
    policy: str
    run_seed: str
    model_id: str
    model_name: str
    simulated: bool
    status: str
    planned_trials: int
    scored_trials: int
    started_at: datetime
    completed_at: datetime | None
    plan_sha256: str
    search_backend: str
    fetch_policy: str
    reuse_policy: str
    software: str

    @property
    def complete(self) -> bool:
        """Whether every planned trial is scored."""
        return self.status == "complete"


@dataclass(frozen=True, slots=True)
class RoleRow:
    """A row of table ``roles``."""

    role: str
    provider: str
    requested_model: str
    effort: str | None
    sampling: str
    max_output_tokens: int
    prompt_revision: str
    prompt_sha256: str
    config_sha256: str
    served_models: Sequence[str]


@dataclass(frozen=True, slots=True)
class SubjectRow:
    """A row of table ``subjects``."""

    subject_id: str
    name: str
    aliases: Sequence[str]
    description: str
    category: str
    reference: str
    subject_sha256: str


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A row of table ``trials``. Times are UTC, money micro-dollars."""

    trial_id: str
    subject_id: str
    round: int
    variation: str
    status: str
    success: bool | None
    terminal_reason: str | None
    counted_questions: int | None
    score: int | None
    turns: int
    asks: int
    guesses: int
    rejected_guesses: int
    repeated_guesses: int
    violations: int
    counted_penalties: int
    unknown_answers: int
    degenerate_questions: int
    attempts: int
    cause: str | None
    started_at: datetime | None
    completed_at: datetime | None
    cost_microusd: int | None
    guesser_cost_microusd: int | None
    reused_answers: int
    adjudication_cost_microusd: int | None
    fresh_adjudication_cost_microusd: int | None
    duration_ms: int | None


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A row of table ``turns``."""

    trial_id: str
    turn: int
    kind: str
    counted: bool
    counted_questions: int
    question: str | None
    guess_name: str | None
    guess_description: str | None
    final_token: str | None
    path: str | None
    oracle: str | None
    oracle_basis: str | None
    reviewer: str | None
    reviewer_basis: str | None
    judge: str | None
    judge_basis: str | None
    verdict: str | None
    degenerate: bool
    repeated: bool
    violation_kind: str | None
    source_run: str | None
    source_trial: str | None
    source_turn: int | None
    source_at: datetime | None
    source_policy: str | None
    source_cost_microusd: int | None
    disputed: bool
    completed_at: datetime


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """A row of table ``evidence``."""

    trial_id: str
    turn: int
    number: int
    url: str
    excerpt: str
    kind: str
    verified: bool
    retrieved_at: datetime
    text_sha256: str


@dataclass(frozen=True, slots=True)
class ViolationRow:
    """A row of table ``violations``; ``text`` is the model's exact visible text."""

    trial_id: str
    turn: int
    kind: str
    counted: bool
    finish_reason: str | None
    text: str | None


@dataclass(frozen=True, slots=True)
class CallRow:
    """One call: its rows of ``audits`` and ``usage`` joined."""

    trial_id: str
    attempt: int
    turn: int
    call: str
    ask: int
    state: str
    outcome: str
    wire_tries: int
    latency_ms: int | None
    served_model: str | None
    seed_sent: bool
    input_fresh: int | None
    input_cache_read: int | None
    input_cache_write_5m: int | None
    input_cache_write_1h: int | None
    output_visible: int | None
    output_reasoning: int | None
    searches: int
    pages: int
    cost_microusd: int | None

    @property
    def input_tokens(self) -> int | None:
        """All input, cached or not; None if the provider reported none."""
        parts = [self.input_fresh, self.input_cache_read, self.input_cache_write_5m, self.input_cache_write_1h]
        known = [part for part in parts if part is not None]
        return sum(known) if known else None

    @property
    def output_tokens(self) -> int | None:
        """All output, reasoning included; None if the provider reported none."""
        known = [part for part in (self.output_visible, self.output_reasoning) if part is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class RepairRow:
    """A row of table ``repairs``: a call that was superseded or lost."""

    trial_id: str
    attempt: int
    turn: int
    call: str
    ask: int
    state: str
    cause: str
    cost_microusd: int | None


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row of table ``sources``: a run that reused answers come from."""

    source_run: str
    source_policy: str
    statement_sha256: str | None
    answers: int
    hits: int
    disputed: int
    cost_microusd: int | None
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Detail:
    """The rows below a run's trials; by far the most of it."""

    turns: Mapping[str, tuple[TurnRow, ...]]
    """By trial id, in order."""
    evidence: Mapping[tuple[str, int], tuple[EvidenceRow, ...]]
    violations: Mapping[tuple[str, int], ViolationRow]
    calls: Mapping[str, tuple[CallRow, ...]]


DETAIL = ("turns", "evidence", "violations", "audits", "usage")
"""The tables that ``Detail`` is made of."""


class RunRecord:
    """A run's public rows. Only verification makes a ``VerifiedRun``, so that nothing else gets onto a page.

    Its detail is read when it is asked for and
    let go by ``release``, so that one run at a time is in memory.
    """

    def __init__(self, verified: VerifiedRun, load: Callable[[], Mapping[str, pa.Table]]) -> None:
        """Args: load reads the verified tables ``DETAIL`` again."""
        tables = verified.tables
        self.run = RunRow(**_rows(tables, "run")[0])
        self.roles = tuple(RoleRow(**row) for row in _rows(tables, "roles"))
        subjects = (SubjectRow(**row) for row in _rows(tables, "subjects"))
        self.subjects = tuple(sorted(subjects, key=lambda subject: subject.subject_id))
        trials = (TrialRow(**row) for row in _rows(tables, "trials"))
        self.trials = tuple(sorted(trials, key=lambda trial: (trial.subject_id, trial.round)))
        self.repairs = tuple(RepairRow(**row) for row in _rows(tables, "repairs"))
        self.sources = tuple(SourceRow(**row) for row in _rows(tables, "sources"))
        self._load = load
        self._detail: Detail | None = _detail(tables)

    @property
    def _all(self) -> Detail:
        if self._detail is None:
            self._detail = _detail(self._load())
        return self._detail

    @property
    def turns(self) -> Mapping[str, tuple[TurnRow, ...]]:
        """By trial id, in order."""
        return self._all.turns

    @property
    def evidence(self) -> Mapping[tuple[str, int], tuple[EvidenceRow, ...]]:
        """By trial id and turn."""
        return self._all.evidence

    @property
    def violations(self) -> Mapping[tuple[str, int], ViolationRow]:
        """By trial id and turn."""
        return self._all.violations

    @property
    def calls(self) -> Mapping[str, tuple[CallRow, ...]]:
        """By trial id."""
        return self._all.calls

    def release(self) -> None:
        """Lets the detail go. It is read again, and compared with its digests, when it is needed."""
        self._detail = None

    @property
    def model(self) -> str:
        """The model's name for people."""
        return self.run.model_name

    @property
    def reused(self) -> int:
        """Questions whose answer was given before."""
        return sum(trial.reused_answers for trial in self.trials)

    def trials_of(self, subject_id: str) -> tuple[TrialRow, ...]:
        """A subject's trials by round."""
        return tuple(trial for trial in self.trials if trial.subject_id == subject_id)


_KEY = ("trial_id", "attempt", "turn", "call", "ask", "state")


def _detail(tables: Mapping[str, pa.Table]) -> Detail:
    turns: dict[str, list[TurnRow]] = defaultdict(list)
    for row in _rows(tables, "turns"):
        turns[row["trial_id"]].append(TurnRow(**row))
    evidence: dict[tuple[str, int], list[EvidenceRow]] = defaultdict(list)
    for row in _rows(tables, "evidence"):
        evidence[row["trial_id"], row["turn"]].append(EvidenceRow(**row))
    return Detail(
        turns={trial: tuple(sorted(rows, key=lambda turn: turn.turn)) for trial, rows in turns.items()},
        evidence={place: tuple(sorted(rows, key=lambda item: item.number)) for place, rows in evidence.items()},
        violations={(row["trial_id"], row["turn"]): ViolationRow(**row) for row in _rows(tables, "violations")},
        calls=_calls(tables),
    )


def _rows(tables: Mapping[str, pa.Table], name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tables[name].to_pylist()
    return rows


def _calls(tables: Mapping[str, pa.Table]) -> dict[str, tuple[CallRow, ...]]:
    audits = {tuple(row[name] for name in _KEY): row for row in _rows(tables, "audits")}
    calls: dict[str, list[CallRow]] = defaultdict(list)
    for row in _rows(tables, "usage"):
        audit = audits[tuple(row[name] for name in _KEY)]
        kept = {name: audit[name] for name in ("outcome", "wire_tries", "latency_ms", "served_model", "seed_sent")}
        calls[row["trial_id"]].append(CallRow(**row, **kept))
    return {trial: tuple(rows) for trial, rows in calls.items()}
