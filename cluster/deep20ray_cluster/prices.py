"""What a call cost, in integer micro-dollars, by the prices that the plan froze. Pure and exact; it knows no list of prices.

An unknown price or meter makes an unknown cost, which is None and never 0. What the provider itself says it charged wins.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from deep20ray_actors.outcomes import Usage

_METERS = (
    ("input_fresh", "input"),
    ("input_cache_read", "cache_read"),
    ("input_cache_write_5m", "cache_write_5m"),
    ("input_cache_write_1h", "cache_write_1h"),
    ("output_visible", "output"),
    ("output_reasoning", "output"),
)
"""Each meter of ``Usage`` and the rate that it is paid at."""
INPUT_RATES = ("input", "cache_read", "cache_write_5m", "cache_write_1h")


@dataclass(frozen=True, slots=True)
class Rate:
    """US dollars per million tokens, which is micro-dollars per token. ``above`` holds (input tokens, price), ascending."""

    base: Fraction
    above: tuple[tuple[int, Fraction], ...] = ()

    def at(self, input_tokens: int) -> Fraction:
        """The price of each token of a call with so many input tokens, cached ones included."""
        return next((price for start, price in reversed(self.above) if input_tokens > start), self.base)

    def dearest(self, input_tokens: int) -> Fraction:
        """The highest price that a call with at most so many input tokens can pay."""
        return max([self.base, *(price for start, price in self.above if input_tokens > start)])


@dataclass(frozen=True, slots=True)
class UnitPrices:
    """One model's prices. ``search`` is US dollars per thousand searches by the provider's own tool, or None where unknown."""

    rates: Mapping[str, Rate]
    search: Fraction | None = None

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> "UnitPrices":
        """From an entry of the plan's ``prices``; see ``price_list``."""
        rates = {name: _rate(written) for name, written in entry["usd_per_mtok"].items()}
        search = entry.get("usd_per_thousand_searches")
        return cls(rates, None if search is None else exact(search))


def prices_of(document: Mapping[str, Any], role: Mapping[str, Any]) -> UnitPrices | None:
    """The prices that a plan's document holds for one of its role entries, a run's ``guesser`` or a ``support`` role; None if none."""
    key = ("provider", "endpoint_sha256", "requested_model")
    for entry in document["prices"]["models"]:
        if all(entry[name] == role[name] for name in key):
            return UnitPrices.of(entry)
    return None


def search_fee(document: Mapping[str, Any]) -> Fraction | None:
    """US dollars per thousand searches of the stand-alone back-end; None where unknown, or where there is none."""
    search = document["prices"]["search"]
    return None if search is None or search["usd_per_thousand"] is None else exact(search["usd_per_thousand"])


def cost_of(document: Mapping[str, Any], run_id: str, call: str, usage: Usage, reported: int | None) -> int | None:
    """Cost of any call of a run in micro-dollars.

    Args:
        document: the plan's.
        call: its kind, as the journal names it.
        usage: its meters.
        reported: micro-dollars that the provider says it charged.
    """
    if reported is not None:
        return reported
    if call == "pages":
        return 0
    if is_search(call):
        return searched_cost(usage.searches, search_fee(document))
    return call_cost(usage, prices_of(document, role_entry_of(document, run_id, call)), None)


def is_search(call: str) -> bool:
    """Whether a call is one of the stand-alone back-end."""
    return call == "search" or call.startswith("search-")


def role_entry_of(document: Mapping[str, Any], run_id: str, call: str) -> Mapping[str, Any]:
    """The configuration that a call of a model was made with. Search queries are written by the Oracle's model."""
    if call == "guesser":
        entry: Mapping[str, Any] = next(run for run in document["runs"] if run["run_id"] == run_id)["guesser"]
        return entry
    support: Mapping[str, Any] = document["support"]["oracle" if call == "queries" else call]
    return support


def call_cost(usage: Usage, price: UnitPrices | None, reported: int | None) -> int | None:
    """Cost of one model call in micro-dollars, rounded half up.

    Args:
        usage: disjoint meters, in tokens; searches are those of the provider's own tool.
        price: the model's unit prices, if they are known.
        reported: what the provider itself says it charged; it wins.
    """
    if reported is not None:
        return reported
    counts = [(getattr(usage, meter), rate) for meter, rate in _METERS]
    if price is None or any(count is None for count, _ in counts):
        return None
    inputs = sum(count for count, rate in counts if rate in INPUT_RATES)
    cost = Fraction(0)
    for count, name in counts:
        if count:
            if name not in price.rates:
                return None
            cost += price.rates[name].at(inputs) * count
    if usage.searches:
        if price.search is None:
            return None
        cost += price.search * 1000 * usage.searches
    return int(cost + Fraction(1, 2))


def searched_cost(searches: int, fee: Fraction | None) -> int | None:
    """Cost of searches in micro-dollars, rounded half up; ``fee`` is US dollars per thousand."""
    if not searches:
        return 0
    return None if fee is None else int(fee * 1000 * searches + Fraction(1, 2))


def total(costs: list[int | None]) -> int | None:
    """The sum, unknown if any part is."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


@lru_cache(maxsize=4096)
def exact(text: str) -> Fraction:
    """A decimal text as the number that it is."""
    return Fraction(text)


def _rate(written: str | Mapping[str, Any]) -> Rate:
    if isinstance(written, str):
        return Rate(exact(written))
    return Rate(exact(written["base"]), tuple((step["input_tokens"], exact(step["usd"])) for step in written["above"]))
