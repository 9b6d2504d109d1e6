"""What is counted about a set of trials: reliability, money, time, usage by role. Pure sums; an unknown part makes a sum unknown."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deep20ray_publisher.records import CallRow, RunRecord, TrialRow

CALLS = ("guesser", "queries", "search", "pages", "oracle", "reviewer", "judge", "validator")
"""Kinds of call in the order of a turn; a question's second and further searches count as searches."""


@dataclass(frozen=True, slots=True)
class Reliability:
    """The four published figures, and degenerate questions beside them."""

    replies: int
    violations: int
    by_kind: tuple[tuple[str, int], ...]
    trials: int
    affected_trials: int
    counted_penalties: int
    asks: int
    degenerate: int

    @property
    def compliance(self) -> float | None:
        """Share of Guesser replies that kept the action contract; None without replies."""
        return None if not self.replies else (self.replies - self.violations) / self.replies


def reliability(record: RunRecord, trials: Sequence[TrialRow]) -> Reliability:
    """The figures over some of a run's trials."""
    turns = [turn for trial in trials for turn in record.turns.get(trial.trial_id, ())]
    broken = [turn for turn in turns if turn.kind == "violation"]
    kinds = Counter(turn.violation_kind or "unknown" for turn in broken)
    return Reliability(
        replies=len(turns),
        violations=len(broken),
        by_kind=tuple(sorted(kinds.items(), key=lambda item: (-item[1], item[0]))),
        trials=len(trials),
        affected_trials=len({turn.trial_id for turn in broken}),
        counted_penalties=sum(turn.counted for turn in broken),
        asks=sum(turn.kind == "ask" for turn in turns),
        degenerate=sum(turn.degenerate for turn in turns),
    )


def total(parts: Iterable[int | None]) -> int | None:
    """Their sum, or None if any is unknown."""
    amount = 0
    for part in parts:
        if part is None:
            return None
        amount += part
    return amount


@dataclass(frozen=True, slots=True)
class Costs:
    """Micro-dollars. ``model`` is the Guesser's calls, ``everything`` all roles', both of terminal attempts alone."""

    model: int | None
    everything: int | None
    trials: int
    solved: int
    repairs_known: int
    repairs_unknown: int
    adjudication: int | None
    """Of ``everything``, what answering questions cost."""
    fresh_adjudication: int | None
    """The same, had every reused answer cost what it cost at its source."""

    @property
    def model_per_trial(self) -> int | None:
        """Rounded to a whole micro-dollar."""
        return None if self.model is None or not self.trials else round(self.model / self.trials)

    @property
    def model_per_solved(self) -> int | None:
        """None where nothing was solved."""
        return None if self.model is None or not self.solved else round(self.model / self.solved)

    @property
    def gross_known(self) -> int | None:
        """What was spent as far as it is known, superseded and lost calls included."""
        return None if self.everything is None else self.everything + self.repairs_known


def costs(record: RunRecord) -> Costs:
    """A run's costs."""
    repairs = [row.cost_microusd for row in record.repairs]
    return Costs(
        model=total(trial.guesser_cost_microusd for trial in record.trials),
        everything=total(trial.cost_microusd for trial in record.trials),
        trials=len(record.trials),
        solved=sum(bool(trial.success) for trial in record.trials),
        repairs_known=sum(cost for cost in repairs if cost is not None),
        repairs_unknown=sum(cost is None for cost in repairs),
        adjudication=total(trial.adjudication_cost_microusd for trial in record.trials),
        fresh_adjudication=total(trial.fresh_adjudication_cost_microusd for trial in record.trials),
    )


@dataclass(frozen=True, slots=True)
class RoleUse:
    """What one kind of call used, terminal calls alone. Sums of tokens leave out calls that reported none."""

    call: str
    calls: int
    wire_tries: int
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    searches: int
    cost_microusd: int | None
    latency_ms: int | None


def use_by_role(calls: Iterable[CallRow]) -> tuple[RoleUse, ...]:
    """Usage by kind of call, in the order of a turn."""
    kept = [call for call in calls if call.state == "terminal"]
    return tuple(_use(name, group) for name in CALLS if (group := [call for call in kept if call.call.partition("-")[0] == name]))


def _use(name: str, calls: Sequence[CallRow]) -> RoleUse:
    return RoleUse(
        call=name,
        calls=len(calls),
        wire_tries=sum(call.wire_tries for call in calls),
        input_tokens=_known(call.input_tokens for call in calls),
        cached_tokens=_known(call.input_cache_read for call in calls),
        output_tokens=_known(call.output_tokens for call in calls),
        reasoning_tokens=_known(call.output_reasoning for call in calls),
        searches=sum(call.searches for call in calls),
        cost_microusd=total(call.cost_microusd for call in calls),
        latency_ms=_known(call.latency_ms for call in calls),
    )


def _known(parts: Iterable[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None
