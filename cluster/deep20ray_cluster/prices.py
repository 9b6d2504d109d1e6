"""What a call cost, in integer micro-dollars, by the prices that the plan froze. An unknown price or meter makes an unknown cost."""

from fractions import Fraction

from deep20ray_actors.outcomes import Usage
from deep20ray_cluster.sweep import Price


def call_cost(usage: Usage, price: Price | None, reported: int | None) -> int | None:
    """Cost of one model call in micro-dollars, rounded half up.

    Args:
        usage: disjoint meters, in tokens.
        price: US dollars per million tokens, which is micro-dollars per token.
        reported: what the provider itself says it charged; it wins.
    """
    if reported is not None:
        return reported
    if price is None or usage.input_fresh is None or usage.output_visible is None:
        return None
    cached = Fraction(str(price.cache_read_usd_per_mtok if price.cache_read_usd_per_mtok is not None else price.input_usd_per_mtok))
    written = (usage.input_cache_write_5m or 0) + (usage.input_cache_write_1h or 0)
    if written and price.cache_write_usd_per_mtok is None:
        return None
    total = (
        Fraction(str(price.input_usd_per_mtok)) * usage.input_fresh
        + Fraction(str(price.cache_write_usd_per_mtok or 0)) * written
        + cached * (usage.input_cache_read or 0)
        + Fraction(str(price.output_usd_per_mtok)) * (usage.output_visible + (usage.output_reasoning or 0))
    )
    return int(total + Fraction(1, 2))


def total(costs: list[int | None]) -> int | None:
    """The sum, unknown if any part is."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None
