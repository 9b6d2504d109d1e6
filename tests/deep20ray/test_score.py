"""The score and its interval: the golden cases, the formula's invariants, and its edges."""

import json
import math
import statistics
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep20ray.score import METHOD, Score, score_run

GOLDEN = Path(__file__).parents[3] / "shared" / "data" / "stat_golden.json"


def close(got: float | None, wanted: float | None) -> bool:
    if got is None or wanted is None:
        return got is wanted
    return math.isclose(got, wanted, rel_tol=1e-12, abs_tol=1e-12)


def run(trials: Sequence[Sequence[int]]) -> Score:
    return score_run({f"S-{number}": scores for number, scores in enumerate(trials)})


def test_the_golden_cases() -> None:
    if not GOLDEN.exists():
        pytest.skip(f"{GOLDEN} is not there: the golden numbers come with the shared data")
    golden = json.loads(GOLDEN.read_text())
    assert golden["method"] == METHOD and len(golden["cases"]) == 11
    for name, case in golden["cases"].items():
        score = run(case["trials"])
        assert close(score.score, case["score"]), name
        assert score.exact == Fraction(case["score_exact"]), name
        for got, key in ((score.low, "ci_low"), (score.high, "ci_high"), (score.nu, "nu"), (score.width, "ci_width")):
            assert close(got, case.get(key)), (name, key)
        assert list(score.subject_means.values()) == [Fraction(each) for each in case["subject_means_exact"]], name
        assert score.exact_variance == (Fraction(case["variance_exact"]) if "variance_exact" in case else None), name
        assert score.exact_nu == (Fraction(case["nu_exact"]) if "nu_exact" in case else None), name
        assert score.no_observed_variation == (case["status"] == "zero_variance"), name


def test_by_hand() -> None:
    """Two subjects of 1, 3 and 10, 10: means 2 and 10, v = 1 and 0, Var 1/4, nu 1, t(0.975, 1) = 12.7062..."""
    score = run([[1, 3], [10, 10]])
    assert (score.exact, score.exact_variance, score.exact_nu) == (Fraction(6), Fraction(1, 4), Fraction(1))
    half = 12.706204736174694 / 2
    assert close(score.low, 6 - half) and close(score.high, 6 + half) and close(score.width, 2 * half)


def test_the_interval_is_not_clipped() -> None:
    score = run([[1, 41], [1, 41]])
    assert score.low is not None and score.high is not None
    assert score.low < 0 and score.high > 41


def test_a_subject_of_one_trial_leaves_no_interval() -> None:
    score = run([[5], [6, 8]])
    assert (score.exact, score.low, score.high, score.nu, score.width, score.stability_key) == (Fraction(6), None, None, None, None, None)
    assert not score.no_observed_variation, "nothing is known of it"


def test_no_variation_is_a_width_of_zero_and_said_so() -> None:
    score = run([[7, 7], [41, 41, 41]])
    assert (score.low, score.high, score.width, score.nu) == (24.0, 24.0, 0.0, None)
    assert score.no_observed_variation and score.stability_key == (0.0, Fraction(0), Fraction(0))


def test_nothing_to_score() -> None:
    nothing: list[dict[str, list[int]]] = [{}, {"S-1": []}, {"S-1": [3], "S-2": []}]
    for trials in nothing:
        with pytest.raises(ValueError, match="every subject has trials"):
            score_run(trials)


def test_ties_are_exact() -> None:
    """1/3 + 1/3 + 1/3 in floats isn't what 1 is made of otherwise; as rationals it is."""
    assert run([[0, 0, 1], [0, 0, 1], [0, 0, 1]]).exact == run([[1, 0, 0]]).exact == Fraction(1, 3)


# ---- invariants

subjects = st.lists(st.lists(st.integers(0, 51), min_size=2, max_size=6), min_size=1, max_size=10)
varying = subjects.filter(lambda trials: any(len(set(scores)) > 1 for scores in trials))


@given(subjects)
def test_against_the_formula_in_floats(trials: list[list[int]]) -> None:
    score, count = run(trials), len(trials)
    parts = [(statistics.variance(scores) / len(scores), len(scores)) for scores in trials]
    assert math.isclose(score.score, statistics.fmean(map(statistics.fmean, trials)), rel_tol=1e-12)
    assert score.exact_variance is not None
    assert math.isclose(float(score.exact_variance), sum(v for v, _ in parts) / count**2, rel_tol=1e-9)
    if score.nu is None:
        assert not any(v for v, _ in parts)
    else:
        assert math.isclose(score.nu, sum(v for v, _ in parts) ** 2 / sum(v**2 / (n - 1) for v, n in parts), rel_tol=1e-9)


@given(varying)
def test_degrees_of_freedom_lie_between_their_bounds(trials: list[list[int]]) -> None:
    nu = run(trials).exact_nu
    assert nu is not None
    assert min(len(scores) - 1 for scores in trials if len(set(scores)) > 1) <= nu <= sum(len(scores) - 1 for scores in trials)


@given(subjects, st.randoms(use_true_random=False))
def test_no_order_matters(trials: list[list[int]], chance) -> None:
    named = [(f"S-{number}", chance.sample(scores, len(scores))) for number, scores in enumerate(trials)]
    chance.shuffle(named)
    one, other = run(trials), score_run(dict(named))
    assert one == other


@given(subjects, st.integers(-20, 1_000))
def test_a_shift_moves_the_score_alone(trials: list[list[int]], by: int) -> None:
    one, other = run(trials), run([[each + by for each in scores] for scores in trials])
    assert other.exact == one.exact + by
    assert (other.exact_variance, other.exact_nu) == (one.exact_variance, one.exact_nu)
    assert other.width == one.width, "to the last bit: equal spread ties"
    assert other.stability_key == one.stability_key


@given(subjects, st.integers(1, 50))
def test_a_factor_scales_the_width(trials: list[list[int]], by: int) -> None:
    one, other = run(trials), run([[each * by for each in scores] for scores in trials])
    assert other.exact == one.exact * by and other.exact_nu == one.exact_nu
    assert one.width is not None and other.width is not None and math.isclose(other.width, one.width * by, rel_tol=1e-12)


@given(st.lists(st.integers(0, 51), min_size=2, max_size=6), st.integers(1, 8))
def test_equal_variances_add_up_their_freedom(scores: list[int], count: int) -> None:
    nu = run([[each + n for each in scores] for n in range(count)]).exact_nu
    assert nu == (count * (len(scores) - 1) if len(set(scores)) > 1 else None)


@given(st.lists(st.integers(0, 51), min_size=2, max_size=6).filter(lambda s: len(set(s)) > 1), st.integers(0, 8))
def test_one_varying_subject_has_its_own_freedom(scores: list[int], others: int) -> None:
    assert run([scores, *[[9, 9, 9]] * others]).exact_nu == len(scores) - 1


@given(subjects)
def test_the_score_lies_within_its_interval_and_its_data(trials: list[list[int]]) -> None:
    score = run(trials)
    assert score.low is not None and score.high is not None
    assert score.low <= score.score <= score.high
    assert min(map(min, trials)) <= score.exact <= max(map(max, trials))


@given(subjects)
def test_subjects_weigh_the_same_however_many_trials_they_had(trials: list[list[int]]) -> None:
    assert run(trials).exact == run([scores * 3 for scores in trials]).exact
