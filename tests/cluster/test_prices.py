"""Costs: exact, in integer micro-dollars, and unknown where anything that counts is unknown."""

from fractions import Fraction
from typing import Any

import pytest

from deep20ray_actors.outcomes import Usage
from deep20ray_cluster.prices import Rate, UnitPrices, call_cost, cost_of, prices_of, searched_cost, total


def prices(search: str | None = None, **rates: Any) -> UnitPrices:
    entry = {"usd_per_mtok": rates} | ({} if search is None else {"usd_per_thousand_searches": search})
    return UnitPrices.of(entry)


PRICE = prices(input="2", output="10", cache_read="2")
STEPS = {"base": "3", "above": [{"input_tokens": 200, "usd": "6"}, {"input_tokens": 1000, "usd": "7.5"}]}


@pytest.mark.parametrize(
    ("usage", "price", "cost"),
    [
        (Usage(1000, 0, 0, 0, 100, 0), PRICE, 3000),
        (Usage(1000, 0, 0, 0, 100, 50), PRICE, 3500),
        (Usage(0, 1000, 0, 0, 0, 0), PRICE, 2000),
        (Usage(0, 1000, 0, 0, 0, 0), prices(input="2", output="10", cache_read="0.2"), 200),
        (Usage(0, 1000, 0, 0, 0, 0), prices(input="2", output="10", cache_read="0"), 0),
        (Usage(0, 0, 0, 0, 0, 0), PRICE, 0),
        (Usage(1, 10, 100, 1000, 0, 0), prices(input="2", cache_read="0.2", cache_write_5m="2.5", cache_write_1h="4"), 2 + 2 + 250 + 4000),
        # Halves go up; a tenth of a dollar is exactly a tenth.
        (Usage(5, 0, 0, 0, 0, 0), prices(input="0.1", output="0"), 1),
        (Usage(4, 0, 0, 0, 0, 0), prices(input="0.1", output="0"), 0),
        (Usage(3, 0, 0, 0, 0, 0), prices(input="0.1", output="0.3"), 0),
        (Usage(10**9, 0, 0, 0, 10**9, 0), prices(input="0.1", output="0.2"), 300_000_000),
        # A step counts all input, cached too, and is for all of it; exactly at the step the lower price holds.
        (Usage(200, 0, 0, 0, 0, 0), prices(input=STEPS, cache_read="0.5"), 600),
        (Usage(200, 1, 0, 0, 0, 0), prices(input=STEPS, cache_read="0"), 1200),
        (Usage(1001, 0, 0, 0, 10, 0), prices(input=STEPS, output={"base": "1", "above": [{"input_tokens": 200, "usd": "2"}]}), 7528),
        # A thousand searches at ten dollars.
        (Usage(0, 0, 0, 0, 0, 0, searches=3), prices(search="10", input="1"), 30_000),
        (Usage(0, 0, 0, 0, 0, 0, searches=1), prices(search="0", input="1"), 0),
    ],
)
def test_a_call_costs_what_its_meters_cost(usage: Usage, price: UnitPrices, cost: int) -> None:
    assert call_cost(usage, price, None) == cost


@pytest.mark.parametrize(
    ("usage", "price"),
    [
        (Usage(1000, 0, 0, 0, 100, 0), None),
        (Usage(), PRICE),
        (Usage(None, 0, 0, 0, 100, 0), PRICE),
        (Usage(1000, 0, 0, 0, None, 0), PRICE),
        (Usage(1000, None, 0, 0, 100, 0), PRICE),
        (Usage(1000, 0, 0, 0, 100, None), PRICE),
        (Usage(0, 0, 1, 0, 0, 0), PRICE),
        (Usage(0, 0, 0, 1, 0, 0), prices(input="1", output="1", cache_write_5m="2")),
        (Usage(1, 0, 0, 0, 0, 0, searches=1), PRICE),
        (Usage(1, 0, 0, 0, 1, 0), prices(input="1")),
    ],
)
def test_an_unknown_price_or_meter_makes_an_unknown_cost(usage: Usage, price: UnitPrices | None) -> None:
    assert call_cost(usage, price, None) is None


def test_what_the_provider_charged_wins() -> None:
    assert call_cost(Usage(None, None, None, None, None, None), None, 17) == 17
    assert call_cost(Usage(1000, 0, 0, 0, 100, 0), PRICE, 0) == 0


def test_a_search_costs_its_fee_and_a_failed_one_nothing() -> None:
    assert searched_cost(1, Fraction(5)) == 5000
    assert searched_cost(3, Fraction("0.0005")) == 2
    assert searched_cost(1, None) is None
    assert searched_cost(0, None) == 0


def test_a_sum_with_an_unknown_part_is_unknown() -> None:
    assert total([1, 2, 3]) == 6
    assert total([]) == 0
    assert total([1, None, 3]) is None


def test_the_dearest_rate() -> None:
    assert Rate(Fraction(3)).dearest(10**9) == 3
    steps = Rate(Fraction(3), ((10, Fraction(2)), (20, Fraction(5))))
    assert [steps.dearest(tokens) for tokens in (10, 11, 20, 21)] == [3, 3, 3, 5]


def role(model: str, endpoint: str | None = None) -> dict[str, Any]:
    return {"provider": "openai-chat", "endpoint_sha256": endpoint, "requested_model": model}


DOCUMENT = {
    "runs": [{"run_id": "other", "guesser": role("dear")}, {"run_id": "run", "guesser": role("cheap")}],
    "support": {name: role("dear" if name == "oracle" else "unheard-of") for name in ("oracle", "reviewer", "judge", "validator")},
    "prices": {
        "models": [
            role("cheap") | {"usd_per_mtok": {"input": "1", "output": "1"}},
            role("dear", "elsewhere") | {"usd_per_mtok": {"input": "999", "output": "999"}},
            role("dear") | {"usd_per_mtok": {"input": "100", "output": "100"}},
        ],
        "search": {"source": "sweep file", "usd_per_thousand": "5"},
    },
}


@pytest.mark.parametrize(
    ("call", "usage", "cost"),
    [
        ("guesser", Usage(7, 0, 0, 0, 0, 0), 7),
        ("oracle", Usage(7, 0, 0, 0, 0, 0), 700),
        ("queries", Usage(7, 0, 0, 0, 0, 0), 700),
        ("judge", Usage(7, 0, 0, 0, 0, 0), None),
        ("search", Usage(0, 0, 0, 0, 0, 0, searches=1), 5000),
        ("search-4", Usage(0, 0, 0, 0, 0, 0, searches=2), 10_000),
        ("pages", Usage(pages=3), 0),
    ],
)
def test_each_call_is_paid_at_the_price_of_its_own_model_or_tool(call: str, usage: Usage, cost: int | None) -> None:
    assert cost_of(DOCUMENT, "run", call, usage, None) == cost
    assert cost_of(DOCUMENT, "run", call, usage, 3) == 3


def test_two_servers_with_one_model_name_are_told_apart() -> None:
    found = prices_of(DOCUMENT, role("dear", "elsewhere"))
    assert found is not None and found.rates["input"].base == 999
    assert prices_of(DOCUMENT, role("cheap", "elsewhere")) is None
