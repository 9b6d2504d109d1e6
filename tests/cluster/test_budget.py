"""Budgets: what they need to know first, who waits for whom, and what the journal says was spent."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

import deep20ray_cohorts
from deep20ray.answers import Role
from deep20ray_actors.messages import GuesserMessage, Message, PagesMessage, SearchMessage
from deep20ray_actors.outcomes import (
    CallResult,
    Completed,
    Fetched,
    Found,
    Outcome,
    QuotaExhausted,
    ServerFault,
    Throttled,
    Transport,
    Usage,
)
from deep20ray_cluster.budget import Budget, Closed, Ticket, Withheld, check_budget, missing_prices
from deep20ray_cluster.errors import SweepError
from deep20ray_cluster.gates import Gate
from deep20ray_cluster.journal import Event, Kind
from deep20ray_cluster.limits import Limits
from deep20ray_cluster.line import Line, RunDesk
from deep20ray_cluster.plan import Plan, resolve
from deep20ray_cluster.pools import Lost
from deep20ray_cluster.records import reply_body
from deep20ray_cluster.spending import spending
from deep20ray_cluster.sweep import parse_sweep
from deep20ray_cluster.table import Draining
from deep20ray_cluster.worst_case import Quote

from .fakes import audit
from .worlds import ROLES, sweep_text

PRICES = "".join(f'\n[prices."{role}"]\ninput_usd_per_mtok = 1\noutput_usd_per_mtok = 10\n' for role in ROLES)
SECOND = '\n[[models]]\nid = "second"\naccount = "guesser"\nmodel = "guesser"\n'
MESSAGE = GuesserMessage(category="thing", variation="v")
SEARCH = SearchMessage(query="x")


def plan(head: str = "", more: str = PRICES, change: Callable[[str], str] = lambda text: text) -> Plan:
    text = change(sweep_text("http://127.0.0.1:9", head=head)) + more
    return resolve(parse_sweep(text, "s.toml"), deep20ray_cohorts.load("core-1.1"), datetime(2026, 12, 1, tzinfo=UTC))


def result(usage: Usage, outcome: Outcome | None = None, tries: int = 1, unbilled: int = 0) -> CallResult:
    return CallResult(0, outcome or Completed("x"), replace(audit(usage), wire_tries=tries, unbilled=unbilled))


def budget(made: Plan, *events: Event) -> Budget:
    found = Budget.of(made, events)
    assert found is not None
    return found


async def worst_case() -> int:
    """Of the Guesser's first call, in micro-dollars."""
    made = plan(head="max_cost_usd = 1000")
    return (await held(budget(made), made.runs[0].id)).hold.amount


async def held(of: Budget, run: str, message: Message = MESSAGE) -> Ticket:
    ticket = await of.hold(run, Role.GUESSER if message is MESSAGE else Role.ORACLE, message)
    assert ticket is not None
    return ticket


WORST = asyncio.run(worst_case())
"""About 0.34 dollars: 4 tries of 8192 tokens out."""


def dollars(microusd: int) -> str:
    return f"max_cost_usd = {microusd / 1_000_000:.6f}"


# What must be known first.


def test_without_a_budget_nothing_is_asked() -> None:
    check_budget(plan(more=""))
    assert Budget.of(plan(more=""), []) is None


def test_each_missing_price_is_named_with_what_to_write() -> None:
    made = plan(more="")
    lines = missing_prices(made)
    assert len(lines) == 5 and all("write [prices." in line for line in lines)
    assert lines[0].startswith('model "guesser" on kind openai-chat (write [prices."guesser"]')
    with pytest.raises(SweepError, match='max_cost_usd: .*"guesser".*"oracle".*"reviewer".*"judge".*"validator"'):
        check_budget(plan(head="max_cost_usd = 1", more=""))
    assert missing_prices(plan()) == []


def test_a_budget_that_holds_not_one_call_is_refused() -> None:
    with pytest.raises(SweepError, match=r"\$0.01 can't hold one call of the guesser, which may cost \$0.32768"):
        check_budget(plan(more="max_cost_usd = 0.01\n" + SECOND + PRICES))
    with pytest.raises(SweepError, match="can't hold one call"):
        check_budget(plan(head="max_cost_usd = 0.2"))
    check_budget(plan(head="max_cost_usd = 0.4"))


def search(lines: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        before, _, after = text.partition("[search]\n")
        return f"{before}[search]\n{lines}\n\n[support.oracle]{after.partition('[support.oracle]')[2]}"

    return change


def test_a_search_of_unknown_price_is_missing() -> None:
    paid = 'kind = "brave"\napi_key = "env:B"'
    assert missing_prices(plan(change=search(paid))) == ["search of kind brave (write usd_per_thousand under [search])"]
    assert missing_prices(plan(change=search(paid + "\nusd_per_thousand = 3"))) == []
    assert missing_prices(plan(change=search('kind = "tavily"'))) == []


def native(text: str) -> str:
    account = 'kind = "openai-chat"\nbase_url = "http://127.0.0.1:9/oracle/v1"'
    assert account in text
    return search('kind = "native"')(text.replace(account, account.replace("openai-chat", "openai-responses")))


def test_a_providers_own_search_can_not_be_bounded() -> None:
    with_fee = PRICES.replace('[prices."oracle"]', '[prices."oracle"]\nsearch_usd_per_thousand = 10')
    assert missing_prices(plan(change=native)) == ['search by model "oracle" (write search_usd_per_thousand under [prices."oracle"])']
    assert missing_prices(plan(change=native, more=with_fee)) == []
    check_budget(plan(change=native))
    with pytest.raises(SweepError, match="kind native"):
        check_budget(plan(head="max_cost_usd = 1", change=native, more=with_fee))


def test_a_models_budget_asks_for_its_own_prices_alone() -> None:
    unpriced = SECOND.replace('model = "guesser"', 'model = "unpriced"')
    budgeted = "max_cost_usd = 1\n" + unpriced
    check_budget(plan(more=budgeted + PRICES))
    with pytest.raises(SweepError, match="unpriced"):
        check_budget(plan(more=unpriced + "max_cost_usd = 1\n" + PRICES))


# Holding and settling.


async def test_who_finds_no_room_waits_for_calls_in_flight_and_goes_on_where_they_were_cheap() -> None:
    made = plan(head=dollars(WORST * 3 // 2))
    run, of = made.runs[0].id, budget(made)
    first = await held(of, run)
    second = asyncio.create_task(held(of, run))
    await asyncio.sleep(0)
    assert not second.done()
    of.settle(first, result(Usage(100, 0, 0, 0, 10, 0)), sent=True)
    assert (await second).hold.amount == WORST
    assert of.ledger.total.spent == 200


async def test_who_finds_no_room_with_nothing_in_flight_is_turned_away_and_so_are_all_others() -> None:
    made = plan(head=dollars(WORST * 3 // 2))
    run, of = made.runs[0].id, budget(made)
    first = await held(of, run)
    others = [asyncio.create_task(held(of, run)) for _ in range(3)]
    await asyncio.sleep(0)
    of.settle(first, None, sent=True)
    ends = await asyncio.gather(*others, return_exceptions=True)
    withheld = [end for end in ends if isinstance(end, Withheld)]
    assert len(withheld) == 1 and withheld[0].run is None and withheld[0].amount == WORST
    assert [type(end) for end in ends if end is not withheld[0]] == [Closed, Closed]
    assert of.reached == withheld[0].reason and of.reached.startswith("the budget of $") and not of.open(run)
    assert of.ledger.total.spent == WORST, "a lost call counts in full"


async def test_a_call_that_was_never_sent_costs_nothing() -> None:
    made = plan(head=dollars(WORST))
    of = budget(made)
    for _ in range(3):
        of.settle(await held(of, made.runs[0].id), None, sent=False)
    assert of.ledger.total.spent == of.ledger.total.held == 0


async def test_a_models_budget_closes_that_model_alone() -> None:
    made = plan(more="max_cost_usd = 0.33\n" + SECOND + PRICES)
    one, two = (run.id for run in made.runs)
    of = budget(made)
    with pytest.raises(Withheld) as error:
        await of.hold(one, Role.GUESSER, MESSAGE)
    assert error.value.run == one and str(error.value).startswith("the budget of $0.33 of model scripted is reached: $0 is spent, and the")
    assert of.open(two) and not of.open(one)
    assert await of.hold(two, Role.GUESSER, MESSAGE) is None, "no budget is set for it"


async def test_searches_cost_their_fee_and_pages_nothing() -> None:
    made = plan(head="max_cost_usd = 0.5", change=search('kind = "brave"\napi_key = "env:B"\nusd_per_thousand = 5\nattempts = 2'))
    run, of = made.runs[0].id, budget(made)
    ticket = await held(of, run, SEARCH)
    assert ticket.hold.amount == 10_000
    of.settle(ticket, result(Usage(0, 0, 0, 0, 0, 0, searches=1), Found(())), sent=True)
    of.settle(await held(of, run, SEARCH), result(Usage(), ServerFault("500"), tries=2), sent=True)
    assert of.ledger.total.spent == 5000 + 10_000
    assert (await held(of, run, PagesMessage(urls=("http://example.org",)))).hold.amount == 0


async def test_stopping_ends_every_wait() -> None:
    made = plan(head=dollars(WORST * 3 // 2))
    run, of = made.runs[0].id, budget(made)
    await held(of, run)
    second = asyncio.create_task(held(of, run))
    await asyncio.sleep(0)
    of.stop()
    with pytest.raises(Closed):
        await second
    assert of.reached is None


# The line.


class Pool:
    """Answers as told."""

    def __init__(self, answer: CallResult | Lost) -> None:
        self.answer = answer
        self.calls = 0

    async def ready(self) -> None: ...

    async def ask(self, call: Any, seconds: float, lease: Any) -> CallResult | Lost:
        self.calls += 1
        await asyncio.sleep(0)
        return self.answer


def desk(of: Budget, made: Plan, pool: Pool) -> tuple[RunDesk, Gate]:
    gate = Gate("guesser", Limits(2), clock=lambda: 0.0)
    line = Line({Role.GUESSER: pool}, {"guesser": gate}, {(Role.GUESSER, "g0"): "guesser"}, {"guesser": 1.0}, of)  # type: ignore[dict-item]
    return RunDesk(line, made.runs[0].id), gate


async def test_a_call_is_journalled_with_its_worst_case_and_settled_by_its_reply() -> None:
    made = plan(head=dollars(WORST))
    of = budget(made)
    told: list[dict[str, Any]] = []

    async def before(**facts: Any) -> None:
        told.append(facts)

    at, _ = desk(of, made, Pool(result(Usage(100, 0, 0, 0, 10, 0))))
    await at.call(Role.GUESSER, "g0", MESSAGE, 1, before)
    assert told == [{"budget": Quote(WORST // 4, 4).body}]
    assert (of.ledger.total.spent, of.ledger.total.held) == (200, 0)
    with pytest.raises(Withheld):
        await at.call(Role.GUESSER, "g0", MESSAGE, 1, before)
    with pytest.raises(Draining):
        await at.call(Role.GUESSER, "g0", MESSAGE, 1, before)
    assert len(told) == 1 and not at.line.open(at.run)


@pytest.mark.parametrize(
    ("answer", "spent"),
    [
        (Lost(), WORST),
        (result(Usage(), Throttled("429"), 4, 4), 0),
        (result(Usage(), ServerFault("x"), 2), WORST // 2),
        (result(Usage(), QuotaExhausted("x"), 2, 1), WORST // 4),
    ],
)
async def test_lost_and_failed_calls_stay_at_what_they_may_have_cost(answer: CallResult | Lost, spent: int) -> None:
    made = plan(head=dollars(WORST))
    of = budget(made)

    async def before(**_: Any) -> None: ...

    at, _ = desk(of, made, Pool(answer))
    await at.call(Role.GUESSER, "g0", MESSAGE, 1, before)
    assert of.ledger.total.spent == spent


async def test_a_call_that_gets_no_lease_gives_its_hold_back() -> None:
    made = plan(head=dollars(WORST))
    of = budget(made)

    async def before(**_: Any) -> None:
        raise AssertionError("it was not sent")

    at, gate = desk(of, made, Pool(Lost()))
    gate.shut()
    with pytest.raises(Draining):
        await at.call(Role.GUESSER, "g0", MESSAGE, 1, before)
    assert of.ledger.total.spent == of.ledger.total.held == 0


# What the journal says.


def event(made: Plan, kind: Kind, call: str = "guesser", body: dict[str, Any] | None = None, turn: int = 1, attempt: int = 1) -> Event:
    trial = made.runs[0].trials[0]
    return Event(trial.run_id, trial.id, attempt, turn, kind, call, 0, 1, {"message_sha256": "00"} | (body or {}))


def begun(made: Plan, **place: Any) -> Event:
    return event(made, "started", body={"budget": Quote(100, 4).body}, **place)


def reply(made: Plan, answer: CallResult, **place: Any) -> Event:
    return event(made, "reply", body=reply_body(made.digest, answer), **place)


def test_every_attempts_calls_count_and_what_is_open_or_lost_in_full() -> None:
    made = plan()
    cheap = result(Usage(100, 0, 0, 0, 10, 0))
    events = [
        begun(made),
        reply(made, cheap),
        begun(made, turn=2),
        event(made, "lost", turn=2),
        begun(made, turn=3),
        reply(made, result(Usage(), ServerFault("x"), tries=2), turn=3),
        begun(made, turn=3, attempt=2),
        reply(made, cheap, turn=3, attempt=2),
        begun(made, turn=4, attempt=2),
    ]
    found = spending(made.document, events)
    assert dict(found.spent) == {made.runs[0].id: 200 + 400 + 200 + 200 + 400}
    assert not found.unknown


def test_what_was_lost_without_a_budget_can_not_be_counted_and_is_refused() -> None:
    made = plan(head="max_cost_usd = 1")
    bare = event(made, "started")
    assert budget(made, bare, reply(made, result(Usage(100, 0, 0, 0, 10, 0)))).ledger.total.spent == 200
    with pytest.raises(SweepError, match="1 calls that were made without a budget have an unknown cost"):
        Budget.of(made, [bare])
    other = plan(more=SECOND + "max_cost_usd = 1\n" + PRICES)
    assert Budget.of(other, [event(other, "started")]) is not None, "it was another model's"


def test_what_costs_nothing_or_was_charged_by_nobody_never_hinders_a_budget_that_is_set_later() -> None:
    made = plan(head="max_cost_usd = 1")
    pages = CallResult(0, Fetched(()), audit(Usage(0, 0, 0, 0, 0, 0, pages=3)))
    refused = result(Usage(), Transport("x"), tries=4, unbilled=4)
    for events in (
        [event(made, "started", call="pages"), reply(made, pages, call="pages")],
        [event(made, "started", call="pages")],
        [event(made, "started", call="search-2"), reply(made, result(Usage(), ServerFault("x"), tries=4), call="search-2")],
        [event(made, "started", call="search"), event(made, "lost", call="search")],
        [event(made, "started"), reply(made, refused)],
    ):
        assert budget(made, *events).ledger.total.spent == 0
    late = [event(made, "started"), reply(made, result(Usage(100, 0, 0, 0, 10, 0), tries=2, unbilled=1))]
    assert budget(made, *late).ledger.total.spent == 200


def test_what_was_withheld_stays_so_until_the_limit_is_raised_or_the_call_was_made() -> None:
    def after(head: str, *more: Event) -> Budget:
        made = plan(head=head)
        refused = event(made, "withheld", body={"worst_microusd": 900_000})
        return budget(made, begun(made), reply(made, result(Usage(200_000, 0, 0, 0, 0, 0))), refused, *more)

    closed = after("max_cost_usd = 1")
    assert (
        closed.reached == "the budget of $1 is reached: $0.2 is spent, and the next call may cost $0.9"
        and closed.ledger.total.spent == 200_000
    )
    assert after("max_cost_usd = 1.1").reached is None
    assert after("max_cost_usd = 1", begun(plan(), turn=2), reply(plan(), result(Usage(1, 0, 0, 0, 0, 0)), turn=2)).reached is None
