"""A chat completion's usage as disjoint meters. Pure. What a provider didn't say, or said inconsistently, is None and never 0."""

from decimal import Decimal, InvalidOperation
from typing import Any

from deep20ray_actors.outcomes import Usage

_LIMIT = 2**53


def read_usage(usage: object) -> Usage:
    """Meters of a ``usage`` object.

    Cached and cache-writing tokens are part of ``prompt_tokens``, reasoning is part of ``completion_tokens``. Where the total is
    given without such details, all of it is charged as fresh input or visible output. This protocol has no one-hour cache writes.
    """
    if not isinstance(usage, dict):
        return Usage()
    prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    read, write = _part(usage, "prompt_tokens_details", "cached_tokens"), _part(usage, "prompt_tokens_details", "cache_write_tokens")
    reasoning = _part(usage, "completion_tokens_details", "reasoning_tokens")
    searches = searches_of(usage)
    sums = prompt is not None and read is not None and write is not None and read + write <= prompt
    splits = completion is not None and reasoning is not None and reasoning <= completion
    return Usage(
        input_fresh=_left(prompt, read, write) if sums else None,
        input_cache_read=read if sums else None,
        input_cache_write_5m=write if sums else None,
        input_cache_write_1h=0 if sums else None,
        output_visible=_left(completion, reasoning) if splits else None,
        output_reasoning=reasoning if splits else None,
        searches=searches,
    )


def searches_of(usage: object) -> int:
    """Web searches that the provider itself ran, by any of the names it goes by; 0 where none is reported."""
    if not isinstance(usage, dict):
        return 0
    counts = [_count(usage.get("num_search_queries"))]
    for place in ("server_tool_use", "server_tool_use_details"):
        inner = usage.get(place)
        if isinstance(inner, dict):
            counts += [_count(value) for key, value in inner.items() if key != "tool_calls_requested"]
    return max((count for count in counts if count is not None), default=0)


def cost_microusd(usage: object) -> int | None:
    """The provider's own ``cost`` (US dollars) in micro-dollars, rounded half to even; None if absent or not a price."""
    cost: Any = usage.get("cost") if isinstance(usage, dict) else None
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    try:
        micro = Decimal(str(cost)) * 1_000_000
        return int(micro.to_integral_value()) if micro.is_finite() and 0 <= micro < _LIMIT else None
    except InvalidOperation:
        return None


def _left(total: int | None, *parts: int | None) -> int:
    return (total or 0) - sum(part or 0 for part in parts)


def _part(usage: dict[str, Any], place: str, name: str) -> int | None:
    details = usage.get(place)
    if details is None:
        return 0
    if not isinstance(details, dict):
        return None
    value = details.get(name)
    return 0 if value is None else _count(value)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LIMIT else None
