"""The question score and its interval, average-then-average-v1. Exact rationals up to the last step; lower is better.

Formula: methodology, section 4. score = (1/S) sum_i m_i; Var = (1/S^2) sum_i s_i^2/n_i; the interval is
score +/- t(0.975, nu) sqrt(Var) with the Welch-Satterthwaite nu = (sum_i v_i)^2 / sum_i v_i^2/(n_i - 1), v_i = s_i^2/n_i.
It is never clipped to the range of scores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from scipy.special import stdtrit

METHOD = "average-then-average-v1"


@dataclass(frozen=True, slots=True)
class Score:
    """A model's score on its fixed subjects.

    ``low`` and ``high`` are None where a subject has a single trial; ``nu`` is None there and where no variation was observed
    (then low == high == score). ``exact`` and ``exact_variance`` decide ranks and ties.
    """

    score: float
    low: float | None
    high: float | None
    nu: float | None
    exact: Fraction
    exact_variance: Fraction | None
    exact_nu: Fraction | None
    subject_means: Mapping[str, Fraction]

    @property
    def width(self) -> float | None:
        """Interval width in questions, or None without an interval.

        From the exact variance: ``high - low`` would carry the rounding of the score, and set runs of equal spread apart.
        """
        return None if self.exact_variance is None else 2 * _half_width(self.exact_variance, self.exact_nu)

    @property
    def no_observed_variation(self) -> bool:
        """Whether every subject's trials were identical, so that the width of 0 says little."""
        return self.exact_variance == 0

    @property
    def stability_key(self) -> tuple[float, Fraction, Fraction] | None:
        """What the stability order compares: the width, with ties on exact (Var, nu). None is unranked."""
        if self.width is None or self.exact_variance is None:
            return None
        return (self.width, self.exact_variance, self.exact_nu or Fraction(0))


def score_run(trials: Mapping[str, Sequence[int]]) -> Score:
    """Scores one run.

    Args:
        trials: each subject id's trial scores (counted questions, or the failure score), in any order.

    Raises:
        ValueError: no subjects, or a subject without trials.
    """
    if not trials or any(not scores for scores in trials.values()):
        raise ValueError("every run has subjects and every subject has trials")
    count = len(trials)
    means = {subject: Fraction(sum(scores), len(scores)) for subject, scores in trials.items()}
    exact = sum(means.values(), Fraction(0)) / count
    if any(len(scores) < 2 for scores in trials.values()):
        return Score(float(exact), None, None, None, exact, None, None, means)
    parts = [(_variance(scores, means[subject]) / len(scores), len(scores)) for subject, scores in trials.items()]
    total = sum((part for part, _ in parts), Fraction(0))
    variance = total / count**2
    if total == 0:
        return Score(float(exact), float(exact), float(exact), None, exact, variance, None, means)
    nu = total**2 / sum((part**2 / (n - 1) for part, n in parts), Fraction(0))
    half = _half_width(variance, nu)
    return Score(float(exact), float(exact) - half, float(exact) + half, float(nu), exact, variance, nu, means)


def _half_width(variance: Fraction, nu: Fraction | None) -> float:
    """t(0.975, nu) sqrt(Var); 0 where nothing varied and nu is None."""
    return 0.0 if nu is None else float(stdtrit(float(nu), 0.975)) * sqrt(variance)


def _variance(scores: Sequence[int], mean: Fraction) -> Fraction:
    """Sample variance, n - 1 in the denominator."""
    return sum(((score - mean) ** 2 for score in scores), Fraction(0)) / (len(scores) - 1)
