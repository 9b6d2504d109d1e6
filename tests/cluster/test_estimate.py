"""What a sweep is said to take: bounds that no game passes, means that are those of the games they were learned from."""

import io
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep20ray.actions import Ask, Guess
from deep20ray.answers import Role, Token
from deep20ray.errors import UsageError
from deep20ray.game import Exchange, View
from deep20ray_actors.messages import EvidenceItem, GuesserMessage, JudgeMessage, OracleMessage, ResultItem, ValidatorMessage
from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.signing import new_key, sign_run
from deep20ray_artifacts.verify import verify_run
from deep20ray_cluster.budget import quote_terms
from deep20ray_cluster.cli_plan import ask_first
from deep20ray_cluster.estimate import Estimate, estimate
from deep20ray_cluster.folder import make_folder
from deep20ray_cluster.habits import RECORDED, kind_of, learned
from deep20ray_cluster.plan import Plan, load_cohort, resolve
from deep20ray_cluster.price_list import load_prices
from deep20ray_cluster.sweep import parse_sweep

from .command import Ended
from .test_seal import journal_of, make_plan, sealed
from .worlds import sweep_text

Command = Callable[..., Ended]
PRICES = "".join(
    f'\n[prices."{role}"]\ninput_usd_per_mtok = 1\noutput_usd_per_mtok = 10\n'
    for role in ("guesser", "oracle", "reviewer", "judge", "validator")
)


def plan_of(text: str) -> Plan:
    sweep = parse_sweep(text, "sweep.toml")
    return resolve(sweep, load_cohort(sweep, Path()), datetime(2026, 12, 1, tzinfo=UTC), load_prices(sweep, Path("none")))


def priced(**search: object) -> Plan:
    text = sweep_text("http://127.0.0.1:9", rounds=2) + PRICES
    plan = plan_of(text)
    settings = plan.sweep.search.model_copy(update=search)
    return plan_of_sweep(plan, search=settings)


def plan_of_sweep(plan: Plan, **more: object) -> Plan:
    return replace(plan, sweep=plan.sweep.model_copy(update=more))


def by_call(found: Estimate) -> dict[str, tuple[int, int, int]]:
    (run,) = found.runs
    return {call.call: (call.least, call.expected, call.most) for call in run.calls}


def test_bounds_and_means_follow_from_the_rules() -> None:
    plan = priced(query_target=2, max_queries=3, fetch_pages=1)
    trials = len(plan.runs[0].trials)
    limit = plan.edition.question_limit
    calls = by_call(estimate(plan, replace(RECORDED, asks=10.0, guesses=3.0, violations=1.0, unknown=0.1, judged=0.5)))
    each = {name: (least / trials, expected / trials, most / trials) for name, (least, expected, most) in calls.items()}
    assert each == {
        "guesser": (1, 14, limit + 1),
        "queries": (0, 10, 3 * limit),
        "search": (0, 20, 3 * limit),
        "pages": (0, 10, limit),
        "oracle": (0, 10, 3 * limit),
        "reviewer": (0, 9, 3 * limit),
        "judge": (0, 4.5, 3 * limit),
        "validator": (0, 3, 3 * (limit + 1)),
    }


def test_an_unknown_price_makes_an_unknown_cost() -> None:
    plan = plan_of(sweep_text("http://127.0.0.1:9", rounds=2))
    found = estimate(plan, RECORDED)
    assert found.cost("p50") is None and found.cost("worst") is None and found.missing_prices and not found.may_pass(0)


any_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(any_text, any_text, st.integers(0, 39), st.data())
def test_no_call_can_cost_more_than_the_worst(question: str, other: str, turn: int, data: st.DataObject) -> None:
    plan = priced(query_target=0, fetch_pages=0, max_results=2, page_chars=500)
    worst = {call.call: (call.worst_microusd or 0) / call.most for call in estimate(plan, RECORDED).runs[0].calls}
    subject = data.draw(st.sampled_from(plan.cohort.subjects))
    question, terms = question[:500], quote_terms(plan)
    evidence = tuple(EvidenceItem(number=n, url="https://example.org/" + "x" * 1900, excerpt=(other * 1000)[:1000]) for n in (1, 2, 3))
    results = [ResultItem(number=n, url="https://e.org/", title=other[:300], text=(other * 500)[:500]) for n in (1, 2)]
    assert terms[None, Role.JUDGE].quote(JudgeMessage.of(subject.trusted, question, evidence)).total <= worst["judge"]
    assert terms[None, Role.ORACLE].quote(OracleMessage.of(subject.trusted, question, results)).total <= worst["oracle"]
    guess = Guess(other[:200], other[:400])
    assert terms[None, Role.VALIDATOR].quote(ValidatorMessage.of(subject.trusted, guess)).total <= worst["validator"]
    run = plan.runs[0].id
    view = View(subject.category, "0" * 12, (Exchange(Ask(question).canonical, Token.UNKNOWN),) * turn)
    # A Guesser's calls grow: the last one is dearer than their mean.
    whole = [terms[run, Role.GUESSER].quote(GuesserMessage.of(replace(view, history=view.history[:n]))).total for n in range(turn + 1)]
    assert sum(whole) <= worst["guesser"] * (plan.edition.question_limit + 1)


async def test_what_is_learned_is_what_was_played(tmp_path: Path) -> None:
    plan = make_plan()
    journal = await journal_of(plan, tmp_path / "journal.sqlite")
    folder = sealed(plan, make_folder(tmp_path / "out"), journal)
    journal.close()
    key = new_key(tmp_path, "k", throwaway=False)
    sign_run(folder, key.private)
    run = verify_run(folder, [load_public(key.public)])
    trials = [row for row in run.tables["trials"].to_pylist() if row["status"] == "scored"]
    habits = learned([run], len(trials))
    assert habits.learned_from == (folder.name,)
    assert habits.asks * len(trials) == pytest.approx(sum(row["asks"] for row in trials))
    made = Counter(kind_of(row["call"]) for row in run.tables["usage"].to_pylist() if row["state"] == "terminal")
    same = plan_of_sweep(plan, sweep=plan.sweep.sweep)
    per_trial = {call: expected / len(same.runs[0].trials) for call, (_, expected, _) in by_call(estimate(same, habits)).items()}
    for call in ("guesser", "oracle", "validator"):
        assert per_trial[call] == pytest.approx(made[call] / len(trials), rel=0.1), call
    assert set(habits.calls) <= set(made)


def test_the_time_follows_the_limit_that_is_told() -> None:
    plan = priced()
    name = plan.sweep.models[0].account
    account = plan.sweep.accounts[name].model_copy(update={"requests_per_minute": 1, "max_share": 0.5})
    slow = plan_of_sweep(plan, accounts={**plan.sweep.accounts, name: account})
    found = estimate(slow, RECORDED)
    calls = by_call(found)["guesser"][1]
    assert found.bound_by == f"{name}, requests a minute" and found.seconds >= calls * 120


def test_who_may_spend_much_is_asked_first(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plan = priced()
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(UsageError, match="say --yes"):
        ask_first(plan, 0.0001, yes=False)
    ask_first(plan, 0.0001, yes=True)
    ask_first(plan, 1_000_000, yes=False)
    assert capsys.readouterr().err.count("calls with") == 3


def test_the_demo_is_planned_without_a_call_and_never_asked_about(deep20ray: Command) -> None:
    told = json.loads(deep20ray("plan", "--json").out)
    assert [run["model"] for run in told["runs"]] == ["sim-gain", "sim-average", "sim-sloppy", "sim-hasty"]
    done = deep20ray("plan")
    assert done.code == 0 and "120 trials" in done.out and "made up" in done.out
    assert "needs --trust" in deep20ray("plan", "--like", "nowhere").complaint
