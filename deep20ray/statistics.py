"""What can be said beside the score: differences, rank ranges, success, questions to success, agreement. None of it is the score.

Pure: plain numbers in, plain numbers out; exact rationals up to the last step, as in ``score``. Every analysis holds within one
edition and for its fixed subjects. It knows no run, table or page.

Sources: B. L. Welch, "The generalization of Student's problem", Biometrika 34 (1947); S. Holm, Scand. J. Statist. 6 (1979);
M. Mogstad, J. P. Romano, A. Shaikh, D. Wilhelm, "Inference for ranks", Rev. Econ. Stud. 91 (2024); E. B. Wilson, JASA 22 (1927);
E. L. Kaplan, P. Meier, JASA 53 (1958); J. Cohen, Educ. Psychol. Meas. 20 (1960).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import sqrt

from scipy.special import ndtri, stdtr, stdtrit

from deep20ray.score import score_run

Trials = Mapping[str, Sequence[int]]
"""Each subject id's trial scores."""

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Difference:
    """One model's score minus another's on the same subjects. Below 0 the first needs fewer questions.

    ``low``, ``high``, ``nu`` and ``p`` are None where a subject has a single trial. Where nothing varied at all ``nu`` is None,
    the interval has no width, and ``p`` is None as well: no variation was seen that a difference could be held against.
    """

    exact: Fraction
    low: float | None
    high: float | None
    nu: float | None
    p: float | None

    @property
    def estimate(self) -> float:
        """In questions."""
        return float(self.exact)


def difference(one: Trials, other: Trials) -> Difference:
    """Welch-Satterthwaite over all 2 S cells: Var = (1/S^2) sum (s_a^2/n_a + s_b^2/n_b).

    Raises:
        ValueError: other subjects in one than in the other.
    """
    if one.keys() != other.keys() or not one:
        raise ValueError("a difference needs the same subjects on both sides")
    exact = score_run(one).exact - score_run(other).exact
    cells = [scores for trials in (one, other) for scores in trials.values()]
    if any(len(scores) < 2 for scores in cells):
        return Difference(exact, None, None, None, None)
    parts = [(_spread(scores), len(scores) - 1) for scores in cells]
    whole = sum((part for part, _ in parts), Fraction(0))
    if whole == 0:
        return Difference(exact, float(exact), float(exact), None, None)
    nu = float(whole**2 / sum((part**2 / free for part, free in parts), Fraction(0)))
    error = sqrt(whole / len(one) ** 2)
    half = float(stdtrit(nu, 1 - ALPHA / 2)) * error
    p = 2 * float(stdtr(nu, -abs(float(exact)) / error))
    return Difference(exact, float(exact) - half, float(exact) + half, nu, p)


def _spread(scores: Sequence[int]) -> Fraction:
    """s^2/n."""
    mean = Fraction(sum(scores), len(scores))
    return sum(((score - mean) ** 2 for score in scores), Fraction(0)) / ((len(scores) - 1) * len(scores))


def holm(p_values: Sequence[float], alpha: float = ALPHA) -> tuple[bool, ...]:
    """Which hypotheses are rejected, in the order given, so that a false rejection among all of them has at most chance ``alpha``."""
    rejected = [False] * len(p_values)
    for step, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] > alpha / (len(p_values) - step):
            break
        rejected[index] = True
    return tuple(rejected)


@dataclass(frozen=True, slots=True)
class RankRange:
    """The ranks that the data don't rule out, best first. ``low == high`` is a rank that is set apart from all others."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Compared:
    """Two of several runs, by their indices, and whether Holm's procedure over all pairs of them tells the two apart."""

    one: int
    other: int
    difference: Difference
    separated: bool


def compared(runs: Sequence[Trials], alpha: float = ALPHA) -> tuple[Compared, ...]:
    """Every pair, in the order given. A pair without a test (a single trial, or no variation on either side) is never told apart."""
    pairs = list(combinations(range(len(runs)), 2))
    found = [difference(runs[one], runs[other]) for one, other in pairs]
    rejected = holm([1.0 if each.p is None else each.p for each in found], alpha)
    return tuple(Compared(one, other, each, apart) for (one, other), each, apart in zip(pairs, found, rejected, strict=True))


def rank_ranges(runs: Sequence[Trials], alpha: float = ALPHA) -> tuple[RankRange, ...]:
    """Per run: 1 + the number of runs that are shown to be better, to K - the number shown to be worse, by Holm over all pairs.

    A pair without a test rules nothing out.
    """
    better, worse = [0] * len(runs), [0] * len(runs)
    for pair in compared(runs, alpha):
        if pair.separated:
            winner, loser = (pair.one, pair.other) if pair.difference.exact < 0 else (pair.other, pair.one)
            better[loser] += 1
            worse[winner] += 1
    return tuple(RankRange(1 + better[index], len(runs) - worse[index]) for index in range(len(runs)))


def wilson(successes: int, trials: int, alpha: float = ALPHA) -> tuple[float, float]:
    """Wilson's score interval of a proportion. Pooled over subjects it is too wide, never too narrow.

    Raises:
        ValueError: no trials, or more successes than trials.
    """
    if not 0 <= successes <= trials or not trials:
        raise ValueError("an interval needs trials, and no more successes than these")
    z = float(ndtri(1 - alpha / 2))
    share, spread = successes / trials, z * z / trials
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * sqrt(share * (1 - share) / trials + spread / (4 * trials))
    return (0.0 if not successes else middle - half, 1.0 if successes == trials else middle + half)


@dataclass(frozen=True, slots=True)
class Curve:
    """The share of games that are still going after each number of questions: steps of (questions, share from there on)."""

    steps: tuple[tuple[int, Fraction], ...]
    games: int
    limit: int

    @property
    def median(self) -> int | None:
        """The first number of questions by which half of the games had found the subject; None if they never did."""
        return next((questions for questions, share in self.steps if share <= Fraction(1, 2)), None)

    def restricted_mean(self, until: int) -> Fraction:
        """The area under the curve from 0 to ``until``. At the failure score, with equal trials per subject, it is the score."""
        area, at, share = Fraction(0), 0, Fraction(1)
        for questions, after in self.steps:
            if questions >= until:
                break
            area += share * (questions - at)
            at, share = questions, after
        return area + share * (until - at)


def kaplan_meier(games: Iterable[tuple[int, bool]], limit: int) -> Curve:
    """Questions to success by Kaplan and Meier.

    Args:
        games: each game's counted questions and whether the subject was found. A failure, wherever the game ended, is censored at
            ``limit``: a game that broke off early is no evidence that the subject was near.
        limit: the edition's question limit.
    """
    played = [(questions, True) if found else (limit, False) for questions, found in games]
    found_at = Counter(questions for questions, found in played if found)
    share, steps = Fraction(1), []
    for questions in sorted(found_at):
        at_risk = sum(each >= questions for each, _ in played)
        share *= 1 - Fraction(found_at[questions], at_risk)
        steps.append((questions, share))
    return Curve(tuple(steps), len(played), limit)


def leave_one_subject_out(trials: Trials) -> dict[str, Fraction]:
    """Per subject the score without it. Empty for a single subject."""
    if len(trials) < 2:
        return {}
    means = score_run(trials).subject_means
    whole = sum(means.values(), Fraction(0))
    return {subject: (whole - mean) / (len(means) - 1) for subject, mean in means.items()}


def reuse_width_factor(correlation: Fraction | float, trials_per_subject: int) -> float:
    """How much too narrow an interval is if a subject's trials are correlated: sqrt((1 + (n-1) rho) / (1 - rho)), 0 <= rho < 1."""
    rho = float(correlation)
    return sqrt((1 + (trials_per_subject - 1) * rho) / (1 - rho))


@dataclass(frozen=True, slots=True)
class Agreement:
    """Fresh directional answers: how often Oracle and Reviewer said the same word, and what the Judge made of the rest."""

    reviewed: int
    agreed: int
    kept: int
    """Judged answers that are the Oracle's after all."""
    reviewers: int
    """Judged answers that are the Reviewer's."""
    neither: int
    kappa: float | None
    """Cohen's kappa of Oracle and Reviewer; None where chance alone would agree always."""

    @property
    def judged(self) -> int:
        """Answers that the Judge decided."""
        return self.reviewed - self.agreed

    @property
    def changed(self) -> int:
        """Answers that review changed: the final word isn't the Oracle's."""
        return self.judged - self.kept


def agreement(decisions: Iterable[tuple[str, str, str]]) -> Agreement:
    """Args: of each reviewed answer the Oracle's, the Reviewer's and the final token."""
    rows = list(decisions)
    same = sum(oracle == reviewer for oracle, reviewer, _ in rows)
    judged = [row for row in rows if row[0] != row[1]]
    kept = sum(final == oracle for oracle, _, final in judged)
    reviewers = sum(final == reviewer for _, reviewer, final in judged)
    return Agreement(len(rows), same, kept, reviewers, len(judged) - kept - reviewers, _kappa([row[:2] for row in rows], same))


def _kappa(pairs: Sequence[tuple[str, ...]], same: int) -> float | None:
    if not pairs:
        return None
    ones, others = Counter(pair[0] for pair in pairs), Counter(pair[1] for pair in pairs)
    by_chance = Fraction(sum(ones[token] * others[token] for token in ones), len(pairs) ** 2)
    return None if by_chance == 1 else float((Fraction(same, len(pairs)) - by_chance) / (1 - by_chance))


@dataclass(frozen=True, slots=True)
class Consistency:
    """Whether questions that were answered afresh more than once got the same answer each time."""

    questions: int
    """Asked about one subject, answered afresh at least twice."""
    alike: int
    """Of these, always the same word."""
    pairs: int
    pairs_alike: int


def self_consistency(answers: Iterable[tuple[str, str]]) -> Consistency:
    """Args: of each fresh answer a key that says subject and question, and the final token."""
    said: dict[str, Counter[str]] = {}
    for key, token in answers:
        said.setdefault(key, Counter())[token] += 1
    repeated = [tokens for tokens in said.values() if tokens.total() > 1]
    pairs = sum(tokens.total() * (tokens.total() - 1) // 2 for tokens in repeated)
    alike = sum(count * (count - 1) // 2 for tokens in repeated for count in tokens.values())
    return Consistency(len(repeated), sum(len(tokens) == 1 for tokens in repeated), pairs, alike)
