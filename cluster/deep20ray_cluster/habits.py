"""How games go: how many questions, guesses and calls they take, how many tokens and how long a call takes. Recorded, or learned.

What is recorded are means of six published runs of edition 1.0, 210 trials. What is learned comes from verified runs alone. Neither says
what an untried model will do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from deep20ray_artifacts.verify import VerifiedRun

_P95 = 1.645
"""Of a normal distribution."""


@dataclass(frozen=True, slots=True)
class CallHabits:
    """Of one kind of call, on average."""

    input_tokens: float
    output_tokens: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Habits:
    """On average: of a trial, its actions by kind; of questions, how they are answered."""

    asks: float = 13.7
    guesses: float = 4.9
    violations: float = 0.13
    high: float = 1.8
    """How many times as many actions a sweep's trials take on average where things go badly: in about one sweep out of 20."""
    unknown: float = 0.071
    """The part of questions that the Oracle answers with UNKNOWN."""
    judged: float = 0.118
    """The part of the others that the Judge decides."""
    calls: Mapping[str, CallHabits] = field(default_factory=dict)
    """By kind of call, all searches of a question alike; what isn't here was never seen."""
    learned_from: tuple[str, ...] = ()
    """Run ids."""

    @property
    def turns(self) -> float:
        """The actions of a trial."""
        return self.asks + self.guesses + self.violations


RECORDED = Habits()


def learned(runs: Sequence[VerifiedRun], trials: int) -> Habits:
    """From verified runs, all their trials and calls counting alike.

    Args:
        trials: how many are to be played; the mean of many strays less than that of few.

    Returns:
        ``RECORDED`` where there is nothing to learn from.
    """
    rows = [row for run in runs for row in run.tables["trials"].to_pylist() if row["status"] == "scored"]
    if not rows:
        return RECORDED
    actions = [row["asks"] + row["guesses"] + row["violations"] for row in rows]
    mean = fmean(actions)
    spread = stdev(actions) if len(actions) > 1 else mean
    # The mean of the trials to come, and our ignorance of the true mean.
    high = 1 + _P95 * spread / mean * (1 / max(trials, 1) + 1 / len(actions)) ** 0.5
    asked = [row for run in runs for row in run.tables["turns"].to_pylist() if row["kind"] == "ask" and row["source_run"] is None]
    answered = [row for row in asked if row["oracle"] != "UNKNOWN"]
    return Habits(
        asks=fmean(row["asks"] for row in rows),
        guesses=fmean(row["guesses"] for row in rows),
        violations=fmean(row["violations"] for row in rows),
        high=high,
        unknown=1 - len(answered) / len(asked) if asked else RECORDED.unknown,
        judged=sum(row["judge"] is not None for row in answered) / len(answered) if answered else RECORDED.judged,
        calls=_calls(runs),
        learned_from=tuple(run.statement.predicate.run_id for run in runs),
    )


def _calls(runs: Sequence[VerifiedRun]) -> dict[str, CallHabits]:
    """Means over terminal calls whose tokens are known."""
    seen: dict[str, list[tuple[int, int]]] = {}
    waits: dict[str, list[float]] = {}
    for run in runs:
        for row in run.tables["usage"].to_pylist():
            inputs = [row[name] for name in ("input_fresh", "input_cache_read", "input_cache_write_5m", "input_cache_write_1h")]
            outputs = [row["output_visible"], row["output_reasoning"]]
            if row["state"] == "terminal" and None not in (*inputs, *outputs):
                seen.setdefault(kind_of(row["call"]), []).append((sum(inputs), sum(outputs)))
        for row in run.tables["audits"].to_pylist():
            if row["state"] == "terminal" and row["latency_ms"] is not None:
                waits.setdefault(kind_of(row["call"]), []).append(row["latency_ms"] / 1000)
    return {
        kind: CallHabits(fmean(each[0] for each in seen[kind]), fmean(each[1] for each in seen[kind]), fmean(waits[kind]))
        for kind in seen.keys() & waits.keys()
    }


def kind_of(call: str) -> str:
    """A call's kind: a question's second search is a search."""
    return "search" if call.startswith("search-") else call
