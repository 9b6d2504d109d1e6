"""Costs: exact, in integer micro-dollars, and unknown where anything that counts is unknown."""

import pytest

from deep20ray_actors.outcomes import Usage
from deep20ray_cluster.prices import call_cost, total
from deep20ray_cluster.sweep import Price

PRICE = Price(input_usd_per_mtok=2, output_usd_per_mtok=10)


@pytest.mark.parametrize(
    ("usage", "price", "cost"),
    [
        (Usage(1000, 0, 0, 0, 100, 0), PRICE, 3000),
        (Usage(1000, 0, 0, 0, 100, 50), PRICE, 3500),
        (Usage(0, 1000, 0, 0, 0, 0), PRICE, 2000),
        (Usage(0, 1000, 0, 0, 0, 0), Price(input_usd_per_mtok=2, output_usd_per_mtok=10, cache_read_usd_per_mtok=0.2), 200),
        (Usage(0, 1000, 0, 0, 0, 0), Price(input_usd_per_mtok=2, output_usd_per_mtok=10, cache_read_usd_per_mtok=0), 0),
        (Usage(0, 0, 0, 0, 0, 0), PRICE, 0),
        # Halves go up; a tenth of a dollar is exactly a tenth.
        (Usage(5, 0, 0, 0, 0, 0), Price(input_usd_per_mtok=0.1, output_usd_per_mtok=0), 1),
        (Usage(4, 0, 0, 0, 0, 0), Price(input_usd_per_mtok=0.1, output_usd_per_mtok=0), 0),
        (Usage(3, 0, 0, 0, 0, 0), Price(input_usd_per_mtok=0.1, output_usd_per_mtok=0.3), 0),
        (Usage(10**9, 0, 0, 0, 10**9, 0), Price(input_usd_per_mtok=0.1, output_usd_per_mtok=0.2), 300_000_000),
    ],
)
def test_a_call_costs_what_its_tokens_cost(usage: Usage, price: Price, cost: int) -> None:
    assert call_cost(usage, price, None) == cost


def test_an_unknown_price_or_meter_makes_an_unknown_cost() -> None:
    assert call_cost(Usage(1000, 0, 0, 0, 100, 0), None, None) is None
    assert call_cost(Usage(None, 0, 0, 0, 100, 0), PRICE, None) is None
    assert call_cost(Usage(1000, 0, 0, 0, None, 0), PRICE, None) is None


def test_what_the_provider_charged_wins() -> None:
    assert call_cost(Usage(None, None, None, None, None, None), None, 17) == 17
    assert call_cost(Usage(1000, 0, 0, 0, 100, 0), PRICE, 0) == 0


def test_a_sum_with_an_unknown_part_is_unknown() -> None:
    assert total([1, 2, 3]) == 6
    assert total([]) == 0
    assert total([1, None, 3]) is None
