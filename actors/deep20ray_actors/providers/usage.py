"""Every dialect's usage as disjoint meters. Pure. What a provider didn't say, or said inconsistently, is None and never 0.

Where a provider states a total, the meters sum to it or are unknown. Where it gives no details, all input is fresh, all output visible.
"""

from dataclasses import fields
from decimal import Decimal, InvalidOperation
from typing import Any

from deep20ray_actors.outcomes import Usage

_LIMIT = 2**53


def read_usage(usage: object) -> Usage:
    """Of a chat completion: cached and cache-writing tokens are part of ``prompt_tokens``, reasoning is part of ``completion_tokens``.

    Some servers keep reasoning out of ``completion_tokens``; their total says so. This protocol has no one-hour cache writes.
    """
    if not isinstance(usage, dict):
        return Usage()
    return _inside(usage, ("prompt", "completion"), searches_of(usage), pages_of(usage))


def read_responses_usage(usage: object, tool_usage: object, searches: int, pages: int = 0) -> Usage:
    """Of a response: as for a chat completion, under other names.

    Args:
        usage: the body's ``usage``.
        tool_usage: the body's ``tool_usage``, whose count of searches wins where it is given.
        searches: searches among the output items.
        pages: pages that were opened among the output items.
    """
    stated = tool_usage.get("web_search") if isinstance(tool_usage, dict) else None
    number = _count(stated.get("num_requests")) if isinstance(stated, dict) else None
    counted = searches if number is None else number
    return _inside(usage, ("input", "output"), counted, pages) if isinstance(usage, dict) else Usage(searches=counted, pages=pages)


def read_anthropic_usage(usage: object) -> Usage:
    """Of a message: cache reads and writes are not part of ``input_tokens``, thinking is part of ``output_tokens``."""
    if not isinstance(usage, dict):
        return Usage()
    read, written = _plain(usage, "cache_read_input_tokens"), _plain(usage, "cache_creation_input_tokens")
    short, long = written, 0 if written is not None else None
    if isinstance(usage.get("cache_creation"), dict):
        short = _part(usage, "cache_creation", "ephemeral_5m_input_tokens")
        long = _part(usage, "cache_creation", "ephemeral_1h_input_tokens")
        if None in (short, long) or ("cache_creation_input_tokens" in usage and (short or 0) + (long or 0) != written):
            short = long = None
    output, thinking = _count(usage.get("output_tokens")), _part(usage, "output_tokens_details", "thinking_tokens")
    return _whole(
        (_count(usage.get("input_tokens")), read, short, long),
        (_less(output, thinking), thinking),
        _part(usage, "server_tool_use", "web_search_requests") or 0,
        pages_of(usage),
    )


def read_gemini_usage(usage: object, searches: int = 0) -> Usage:
    """Of a generated content: cached tokens are part of the prompt; tool results and thoughts stand beside it and the candidates.

    Counts that are 0 are left out by this provider. It reports no cache writes.

    Args:
        usage: the body's ``usageMetadata``.
        searches: queries that the grounding metadata names; the usage has no count of them.
    """
    if not isinstance(usage, dict):
        return Usage(searches=searches)
    prompt, cached = _count(usage.get("promptTokenCount")), _plain(usage, "cachedContentTokenCount")
    tools = _plain(usage, "toolUsePromptTokenCount")
    visible, thoughts = _plain(usage, "candidatesTokenCount"), _plain(usage, "thoughtsTokenCount")
    if prompt is None or not _adds_up(usage.get("totalTokenCount"), (prompt, tools, visible, thoughts)):
        return Usage(searches=searches)
    fresh = _less(prompt, cached)
    return _whole((None if fresh is None or tools is None else fresh + tools, cached, 0, 0), (visible, thoughts), searches, 0)


def summed(one: Usage, other: Usage) -> Usage:
    """The usage of two replies together; a meter that either doesn't know is unknown."""
    meters: dict[str, int | None] = {}
    for meter in fields(Usage):
        a, b = getattr(one, meter.name), getattr(other, meter.name)
        meters[meter.name] = None if a is None or b is None else a + b
    return Usage(**meters)  # type: ignore[arg-type]  # searches and pages are always counted


def _inside(usage: dict[str, Any], names: tuple[str, str], searches: int, pages: int) -> Usage:
    """Usage whose details are part of two sums, ``NAME_tokens`` and ``NAME_tokens_details``."""
    inputs, outputs = (_count(usage.get(f"{name}_tokens")) for name in names)
    read, written = (_part(usage, f"{names[0]}_tokens_details", name) for name in ("cached_tokens", "cache_write_tokens"))
    reasoning = _part(usage, f"{names[1]}_tokens_details", "reasoning_tokens")
    total = usage.get("total_tokens")
    if _adds_up(total, (inputs, outputs)):
        visible = _less(outputs, reasoning)
    else:
        visible = outputs if _adds_up(total, (inputs, outputs, reasoning)) else None
    return _whole((_less(inputs, read, written), read, written, 0), (visible, reasoning), searches, pages)


def _whole(inputs: tuple[int | None, ...], outputs: tuple[int | None, ...], searches: int, pages: int) -> Usage:
    """Meters of which each side is known whole or not at all."""
    fresh, read, short, long = inputs if None not in inputs else (None,) * 4
    visible, reasoning = outputs if None not in outputs else (None,) * 2
    return Usage(fresh, read, short, long, visible, reasoning, searches, pages)


def _adds_up(total: object, parts: tuple[int | None, ...]) -> bool:
    """Whether the parts sum to the stated total, where one is stated and all parts are."""
    stated = _count(total)
    return stated is None or None in parts or stated == sum(part or 0 for part in parts)


def searches_of(usage: object) -> int:
    """Web searches that the provider itself ran, by any of the names it goes by; 0 where none is reported."""
    if not isinstance(usage, dict):
        return 0
    counts = [_count(usage.get("num_search_queries"))]
    for place in ("server_tool_use", "server_tool_use_details"):
        inner = usage.get(place)
        if isinstance(inner, dict):
            stated = _count(inner.get("web_search_requests"))
            # A count of all tools stands for searches only where they have none of their own.
            others = [_count(value) for key, value in inner.items() if key not in ("tool_calls_requested", "web_fetch_requests")]
            counts += others if stated is None else [stated]
    return max((count for count in counts if count is not None), default=0)


def pages_of(usage: object) -> int:
    """Pages that the provider itself fetched; 0 where none is reported."""
    places = [usage.get(name) for name in ("server_tool_use", "server_tool_use_details")] if isinstance(usage, dict) else []
    counts = [_count(place.get("web_fetch_requests")) for place in places if isinstance(place, dict)]
    return max((count for count in counts if count is not None), default=0)


def cost_microusd(usage: object) -> int | None:
    """What OpenRouter says that a reply cost (US dollars) in micro-dollars, rounded half to even; None if absent or not a price.

    With a key of the account's own at the provider (``is_byok``), ``cost`` is OpenRouter's fee alone, and the provider's bill stands
    beside it.
    """
    if not isinstance(usage, dict):
        return None
    parts = [usage.get("cost")]
    if usage.get("is_byok") is True:
        details = usage.get("cost_details")
        parts.append(details.get("upstream_inference_cost") if isinstance(details, dict) else None)
    prices = [_micro(part) for part in parts]
    return None if None in prices else int(sum((price or Decimal(0) for price in prices), Decimal(0)).to_integral_value())


def _micro(dollars: object) -> Decimal | None:
    if isinstance(dollars, bool) or not isinstance(dollars, int | float):
        return None
    try:
        micro = Decimal(str(dollars)) * 1_000_000
    except InvalidOperation:
        return None
    return micro if micro.is_finite() and 0 <= micro < _LIMIT else None


def _less(total: int | None, *parts: int | None) -> int | None:
    """What is left of a sum without its parts; None where that is unknown or less than nothing."""
    if total is None or None in parts:
        return None
    left = total - sum(part or 0 for part in parts)
    return left if left >= 0 else None


def _plain(usage: dict[str, Any], name: str) -> int | None:
    """A count that is 0 where it is left out."""
    value = usage.get(name)
    return 0 if value is None else _count(value)


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
