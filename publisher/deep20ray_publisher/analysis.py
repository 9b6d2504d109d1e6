"""What the statistics and comparison pages say of a board's runs: the pure analyses of ``deep20ray.statistics``, put to verified runs.

None of it enters a score or a rank. Runs are compared within one board alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from deep20ray import statistics
from deep20ray.editions import Edition
from deep20ray.statistics import Agreement, Consistency, Curve, Difference
from deep20ray_publisher.board import Board, Standing, trials_of
from deep20ray_publisher.records import SubjectRow

MATRIX_MAX = 24
"""The best runs of a board: a matrix of differences and the comparisons hold this many; the file of differences holds all."""
NEIGHBOURS = 5
"""A run is put side by side with this many of those that follow it, so that pages grow with runs and not with pairs."""


@dataclass(frozen=True, slots=True)
class LeftOutSubject:
    """The score without one subject."""

    subject: SubjectRow
    score: float
    shift: float
    """Against the score with it."""


@dataclass(frozen=True, slots=True)
class RunNumbers:
    """One run's own analyses."""

    standing: Standing
    success: tuple[float, float]
    curve: Curve
    without: tuple[LeftOutSubject, ...]

    @property
    def easiest(self) -> LeftOutSubject | None:
        """The subject whose absence makes the score worst."""
        return max(self.without, key=lambda each: (each.score, each.subject.subject_id), default=None)

    @property
    def hardest(self) -> LeftOutSubject | None:
        """The subject whose absence makes the score best."""
        return min(self.without, key=lambda each: (each.score, each.subject.subject_id), default=None)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs of a board; ``difference`` is the first one's score minus the second's, the better one first."""

    one: Standing
    other: Standing
    difference: Difference
    separated: bool
    """Whether Holm's procedure over all pairs of the board tells them apart."""

    @property
    def stem(self) -> str:
        """A name for the pair: the digests that their run ids end with."""
        return f"{self.one.entry.slug[-12:]}-{self.other.entry.slug[-12:]}"


@dataclass(frozen=True, slots=True)
class BoardNumbers:
    """All analyses of a board."""

    board: Board
    runs: tuple[RunNumbers, ...]
    pairs: tuple[Pair, ...]
    """All, in the order of ranks."""
    agreement: Agreement
    consistency: Consistency

    @property
    def _by_runs(self) -> dict[tuple[str, str], Pair]:
        return {(pair.one.entry.slug, pair.other.entry.slug): pair for pair in self.pairs}

    @property
    def neighbours(self) -> Iterator[Pair]:
        """The pairs that have a page of their own."""
        order = {each.entry.slug: index for index, each in enumerate(self.board.standings)}
        places = ((pair, order[pair.one.entry.slug], order[pair.other.entry.slug]) for pair in self.pairs)
        return (pair for pair, one, other in places if other < MATRIX_MAX and other - one <= NEIGHBOURS)

    @property
    def matrix(self) -> list[tuple[Standing, list[Pair | None]]]:
        """Per run of the matrix its pairs with the others; None on the diagonal. The pair of two runs stands in both of their rows."""
        shown = self.board.standings[:MATRIX_MAX]
        found = self._by_runs
        keys = [each.entry.slug for each in shown]
        return [
            (each, [found.get((keys[row], other)) or found.get((other, keys[row])) for other in keys]) for row, each in enumerate(shown)
        ]


def board_numbers(rules: Edition, board: Board) -> BoardNumbers:
    """Analyses a board."""
    summaries = [each.entry.summary for each in board.standings]
    return BoardNumbers(
        board=board,
        runs=tuple(_run(rules, board, each) for each in board.standings),
        pairs=_pairs(board.standings),
        agreement=statistics.agreement(chain.from_iterable(each.reviewed for each in summaries)),
        consistency=statistics.self_consistency(chain.from_iterable(each.fresh for each in summaries)),
    )


def _run(rules: Edition, board: Board, standing: Standing) -> RunNumbers:
    trials = trials_of(standing.entry)
    without = statistics.leave_one_subject_out(trials)
    subjects = {subject.subject_id: subject for subject in board.subjects}
    games = [(trial.counted_questions or 0, bool(trial.success)) for trial in standing.entry.record.trials]
    return RunNumbers(
        standing=standing,
        success=statistics.wilson(standing.costs.solved, standing.costs.trials),
        curve=statistics.kaplan_meier(games, rules.question_limit),
        without=tuple(
            LeftOutSubject(subjects[subject], float(score), float(score - standing.score.exact)) for subject, score in without.items()
        ),
    )


def _pairs(standings: Sequence[Standing]) -> tuple[Pair, ...]:
    found = statistics.compared([trials_of(each.entry) for each in standings])
    return tuple(Pair(standings[pair.one], standings[pair.other], pair.difference, pair.separated) for pair in found)
