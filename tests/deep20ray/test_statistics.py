"""The analyses beside the score: golden numbers, second opinions by scipy, invariants, and the simulated coverage."""

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from deep20ray import coverage, statistics
from deep20ray.score import score_run

GOLDEN = Path(__file__).parents[3] / "shared" / "data" / "stat_golden.json"


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    if not GOLDEN.exists():
        pytest.skip(f"no golden numbers: {GOLDEN} is not there")
    found: dict[str, Any] = json.loads(GOLDEN.read_text())
    return found


def trials(rows: Sequence[Sequence[int]]) -> dict[str, Sequence[int]]:
    return {f"S-{number}": row for number, row in enumerate(rows)}


def close(got: float | None, wanted: float) -> bool:
    return got is not None and math.isclose(got, wanted, rel_tol=1e-11, abs_tol=1e-11)


def test_the_difference_of_two_models(golden: dict[str, Any]) -> None:
    cases, wanted = golden["cases"], golden["separated_analyses"]["model_difference_typical_minus_strong"]
    found = statistics.difference(trials(cases["e11_typical"]["trials"]), trials(cases["e11_strong"]["trials"]))
    assert found.exact == Fraction(wanted["estimate_exact"])
    assert close(found.low, wanted["ci_low"]) and close(found.high, wanted["ci_high"])
    assert close(found.nu, wanted["nu"]) and close(found.p, wanted["p_two_sided"])


def test_one_subject_is_welchs_test(golden: dict[str, Any]) -> None:
    wanted = golden["separated_analyses"]["single_subject_welch_check"]
    found = statistics.difference({"S": wanted["x"]}, {"S": wanted["y"]})
    assert close(found.nu, wanted["df"]) and close(found.p, wanted["p"])
    assert close(found.low, wanted["ci"][0]) and close(found.high, wanted["ci"][1])


@given(st.lists(st.integers(0, 41), min_size=2, max_size=6), st.lists(st.integers(0, 41), min_size=2, max_size=6))
def test_one_subject_agrees_with_scipy(one: list[int], other: list[int]) -> None:
    found = statistics.difference({"S": one}, {"S": other})
    if len(set(one)) == len(set(other)) == 1:
        assert found.p is None and found.low == found.high == found.estimate
        return
    theirs = stats.ttest_ind(one, other, equal_var=False)
    assert math.isclose(found.p or 0, float(theirs.pvalue), rel_tol=1e-9, abs_tol=1e-12)


@given(st.lists(st.tuples(*[st.integers(0, 41)] * 3), min_size=1, max_size=5), st.integers(0, 9))
def test_a_difference_turned_round_is_its_negative(rows: list[tuple[int, ...]], shift: int) -> None:
    one, other = trials(rows), trials([[value + shift for value in row] for row in rows[::-1]])
    there, back = statistics.difference(one, other), statistics.difference(other, one)
    assert there.exact == -back.exact
    assert there.p == back.p
    assert (there.low, there.high) == (back.high and -back.high, back.low and -back.low)


def test_a_difference_needs_the_same_subjects() -> None:
    with pytest.raises(ValueError, match="same subjects"):
        statistics.difference({"A": [1, 2]}, {"B": [1, 2]})
    assert statistics.difference({"A": [1]}, {"A": [2, 3]}).low is None


def test_rank_ranges(golden: dict[str, Any]) -> None:
    cases, wanted = golden["cases"], golden["separated_analyses"]["rank_sets_holm"]["rank_range"]
    names = {"typical": "e11_typical", "strong": "e11_strong", "zero_q": "zero_questions", "one_varies": "one_subject_varies"}
    found = statistics.rank_ranges([trials(cases[names[name]]["trials"]) for name in wanted])
    assert {name: [each.low, each.high] for name, each in zip(wanted, found, strict=True)} == wanted


@given(st.lists(st.lists(st.lists(st.integers(0, 41), min_size=2, max_size=4), min_size=2, max_size=2), min_size=1, max_size=5))
def test_a_rank_lies_in_its_range(runs: list[list[list[int]]]) -> None:
    scored = [trials(run) for run in runs]
    scores = [score_run(run).exact for run in scored]
    for score, found in zip(scores, statistics.rank_ranges(scored), strict=True):
        assert 1 <= found.low <= 1 + sum(other < score for other in scores) <= found.high <= len(runs)


def test_holm_agrees_with_a_second_way() -> None:
    p_values = [0.01, 0.04, 0.03, 0.005, 0.0126]
    adjusted, worst = {}, 0.0
    for step, index in enumerate(sorted(range(5), key=p_values.__getitem__)):
        worst = max(worst, (5 - step) * p_values[index])
        adjusted[index] = worst
    assert statistics.holm(p_values) == tuple(adjusted[index] <= 0.05 for index in range(5)) == (True, False, False, True, True)


def test_success_rates(golden: dict[str, Any]) -> None:
    for name, k, n in (("success_rate", 25, 30), ("success_rate_0_of_30", 0, 30), ("success_rate_30_of_30", 30, 30)):
        low, high = statistics.wilson(k, n)
        wanted = golden["separated_analyses"][name]["wilson95"]
        assert close(low, wanted[0]) and close(high, wanted[1])
    with pytest.raises(ValueError, match="trials"):
        statistics.wilson(0, 0)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy(case: tuple[int, int]) -> None:
    k, n = case
    theirs = stats.binomtest(k, n).proportion_ci(method="wilson")
    low, high = statistics.wilson(k, n)
    assert math.isclose(low, theirs.low, abs_tol=1e-12) and math.isclose(high, theirs.high, abs_tol=1e-12)


def test_questions_to_success(golden: dict[str, Any]) -> None:
    wanted, case = golden["separated_analyses"]["rmst"], golden["cases"]["e11_typical"]
    games = [(min(score, 40), score <= 40) for row in case["trials"] for score in row]
    curve = statistics.kaplan_meier(games, 40)
    assert close(float(curve.restricted_mean(41)), wanted["rmst_tau41"]) and close(float(curve.restricted_mean(41)), case["score"])
    assert close(float(curve.restricted_mean(40)), wanted["lifelines_rmst_tau40"])
    assert curve.median == wanted["median_questions_km"]


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=30))
def test_the_curve_agrees_with_scipy(games: list[tuple[int, bool]]) -> None:
    curve = statistics.kaplan_meier(games, 40)
    found, lost = [q for q, ok in games if ok], [40 for _, ok in games if not ok]
    theirs = stats.ecdf(stats.CensoredData(uncensored=found, right=lost)).sf if lost else stats.ecdf(found).sf
    for questions, share in curve.steps:
        assert math.isclose(float(share), float(theirs.evaluate(questions)), abs_tol=1e-12)


def test_a_failure_that_ended_early_is_censored_at_the_limit() -> None:
    early, late = (statistics.kaplan_meier([(5, True), (ended, False)], 40) for ended in (2, 40))
    assert early == late and early.restricted_mean(41) == Fraction(5 + 41, 2)


def test_a_subject_left_out(golden: dict[str, Any]) -> None:
    wanted = golden["separated_analyses"]["leave_one_subject_out_typical"]
    found = statistics.leave_one_subject_out(trials(golden["cases"]["e11_typical"]["trials"]))
    assert all(close(float(each), other) for each, other in zip(found.values(), wanted, strict=True))
    assert statistics.leave_one_subject_out({"S": [1, 2]}) == {}


def test_what_shared_answers_do_to_the_width(golden: dict[str, Any]) -> None:
    for name, by_trials in golden["separated_analyses"]["reuse_width_multiplier"].items():
        for trials_name, wanted in by_trials.items():
            assert close(statistics.reuse_width_factor(float(name.partition("=")[2]), int(trials_name.partition("=")[2])), wanted)


def test_agreement_of_the_answerers() -> None:
    rows = [("YES", "YES", "YES")] * 6 + [("NO", "NO", "NO")] * 2 + [("YES", "NO", "YES"), ("YES", "NO", "NO"), ("NO", "YES", "UNKNOWN")]
    found = statistics.agreement(rows)
    assert (found.reviewed, found.agreed, found.judged, found.kept, found.reviewers, found.neither, found.changed) == (11, 8, 3, 1, 1, 1, 2)
    chance = Fraction(8 * 7 + 3 * 4, 121)
    assert found.kappa == float((Fraction(8, 11) - chance) / (1 - chance))
    assert statistics.agreement([]).kappa is None and statistics.agreement([("YES", "YES", "YES")]).kappa is None


def test_self_consistency() -> None:
    found = statistics.self_consistency([("a", "YES"), ("a", "YES"), ("a", "NO"), ("b", "NO"), ("c", "NO"), ("c", "NO")])
    assert (found.questions, found.alike, found.pairs, found.pairs_alike) == (2, 1, 4, 2)


@pytest.mark.parametrize("number", range(len(coverage.SCENARIOS)))
def test_the_coverage_that_is_published_is_what_a_simulation_gives(number: int) -> None:
    found = coverage.simulate(coverage.SCENARIOS[number], 4_000, seed=number)
    stated = coverage.COVERAGE[number]
    assert abs(found.covered - stated.covered) < 4 * math.sqrt(stated.covered * (1 - stated.covered) / 4_000) + 0.002
    assert abs(found.worse - stated.worse) < 0.03 and abs(found.mean_width - stated.mean_width) < 0.2


def test_rare_failures_cover_as_badly_in_a_simulation_by_others(golden: dict[str, Any]) -> None:
    """Other noise, another generator: the order of magnitude, and which way it misses, must be the same."""
    theirs = golden["coverage_simulation"]["scenarios"]["rare_failures_2pct"]["methods"]["welch_satterthwaite"]
    (ours,) = [found for scenario, found in zip(coverage.SCENARIOS, coverage.COVERAGE, strict=True) if scenario.fail == 0.02]
    assert abs(ours.covered - theirs["coverage"]) < 0.07 and ours.worse > 0.9 * (1 - ours.covered) and theirs["miss_true_above"] > 0.3
