"""What is counted about a set of trials: reliability, money, time, usage by role. Pure sums; an unknown part makes a sum unknown."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from deep20ray.reuse import folded
from deep20ray_publisher.records import CallRow, RunRecord, TrialRow
from deep20ray_publisher.turnmap import Strip, strip

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


def reliability(trials: Sequence[TrialRow], kinds: Mapping[str, Sequence[str]]) -> Reliability:
    """The figures over some of a run's trials. Args: kinds lists each trial's violations, by trial id."""
    counted = Counter(kind for trial in trials for kind in kinds.get(trial.trial_id, ()))
    return Reliability(
        replies=sum(trial.turns for trial in trials),
        violations=sum(trial.violations for trial in trials),
        by_kind=tuple(sorted(counted.items(), key=lambda item: (-item[1], item[0]))),
        trials=len(trials),
        affected_trials=sum(trial.violations > 0 for trial in trials),
        counted_penalties=sum(trial.counted_penalties for trial in trials),
        asks=sum(trial.asks for trial in trials),
        degenerate=sum(trial.degenerate_questions for trial in trials),
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


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds. None where nothing was measured."""

    per_trial: int | None
    """Mean wall time of a trial, from its first call to its end."""
    thinking_per_trial: int | None
    """Mean of the time that the model's own calls of a trial took together."""
    per_call: int | None
    """Mean of the model's calls."""
    median_call: int | None
    calls: int


def timing(trials: Sequence[TrialRow], calls: Iterable[CallRow]) -> Timing:
    """Of a run's trials and their calls."""
    latencies = [call.latency_ms for call in calls if call.call == "guesser" and call.state == "terminal" and call.latency_ms is not None]
    durations = [trial.duration_ms for trial in trials if trial.duration_ms is not None]
    return Timing(
        per_trial=round(sum(durations) / len(durations)) if durations else None,
        thinking_per_trial=round(sum(latencies) / len(trials)) if latencies else None,
        per_call=round(sum(latencies) / len(latencies)) if latencies else None,
        median_call=round(median(latencies)) if latencies else None,
        calls=len(latencies),
    )


@dataclass(frozen=True, slots=True)
class Summary:
    """What the edition's pages need of a run's detail."""

    reliability: Reliability
    kinds: Mapping[str, Sequence[str]]
    """Each trial's violations by kind, by trial id."""
    strips: Mapping[str, Strip]
    """Each trial as a drawing, by trial id."""
    uses: tuple[RoleUse, ...]
    timing: Timing
    reviewed: tuple[tuple[str, str, str], ...]
    """Of each fresh reviewed answer: the Oracle's token, the Reviewer's, the final one."""
    fresh: tuple[tuple[str, str], ...]
    """Of each fresh answer to a question with content: subject and question, and the final token."""

    def cost_of(self, *calls: str) -> int | None:
        """What these kinds of call cost together; None if a part is unknown."""
        return total(use.cost_microusd for use in self.uses if use.call in calls)


def summary(record: RunRecord) -> Summary:
    """Reads the run's detail once."""
    calls = [call for group in record.calls.values() for call in group]
    subjects = {trial.trial_id: trial.subject_id for trial in record.trials}
    asks = [turn for turns in record.turns.values() for turn in turns if turn.kind == "ask" and turn.source_run is None]
    kinds: dict[str, list[str]] = defaultdict(list)
    for (trial, _), violation in sorted(record.violations.items()):
        kinds[trial].append(violation.kind)
    return Summary(
        reliability=reliability(record.trials, kinds),
        kinds=dict(kinds),
        strips={trial: strip(turns) for trial, turns in record.turns.items()},
        uses=use_by_role(calls),
        timing=timing(record.trials, calls),
        reviewed=tuple((turn.oracle, turn.reviewer, turn.final_token or "") for turn in asks if turn.oracle and turn.reviewer),
        fresh=tuple(
            (f"{subjects[turn.trial_id]} {folded(turn.question or '')}", turn.final_token or "") for turn in asks if not turn.degenerate
        ),
    )
