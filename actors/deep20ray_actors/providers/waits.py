"""How long a reply asks to wait, in all the ways that providers say it. Pure.

What is said outright counts: retry-after-ms, retry-after in seconds or as a date, or a delay in the body. Where nothing is, the reset
of a limit whose remaining count is 0 does.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any

_REMAINING = re.compile(r"^(x-ratelimit|anthropic-ratelimit)-(?:remaining-)?([a-z-]+?)(?:-remaining)?$")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def asked_wait(headers: Mapping[str, str], error: object, now: datetime) -> float | None:
    """The longest wait that a reply asks for, in seconds; None if it asks for none.

    Args:
        headers: of the reply, in lower case.
        error: the body's ``error`` member, if it has one.
        now: for waits that are given as a time.
    """
    values = [_number(headers.get("retry-after-ms"), 0.001), _retry_after(headers.get("retry-after"), now)]
    values += [span(detail.get("retryDelay")) for detail in details_of(error)]
    metadata = error.get("metadata") if isinstance(error, dict) else None
    if isinstance(metadata, dict):
        values.append(_number(metadata.get("retry_after_seconds"), 1.0))
        inner = metadata.get("headers")
        if isinstance(inner, dict):
            values += [_retry_after(value, now) for key, value in inner.items() if str(key).lower() == "retry-after"]
    said = [value for value in values if value is not None]
    return max(said or _resets(headers, now), default=None)


def details_of(error: object) -> list[dict[str, Any]]:
    """The ``details`` of an error, where they are a list of objects."""
    details = error.get("details") if isinstance(error, dict) else None
    return [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []


def _resets(headers: Mapping[str, str], now: datetime) -> list[float]:
    """When each exhausted limit is whole again: ``x-ratelimit-reset-requests: 6m0s``, ``anthropic-ratelimit-tokens-reset: TIME``."""
    found = []
    for name, value in headers.items():
        match = _REMAINING.fullmatch(name) if "remaining" in name and value.strip() == "0" else None
        if match is not None:
            openai = match[1] == "x-ratelimit"
            reset = headers.get(f"{match[1]}-reset-{match[2]}" if openai else f"{match[1]}-{match[2]}-reset")
            found.append(span(reset) if openai else until(reset, now))
    return [wait for wait in found if wait is not None]


def span(value: object) -> float | None:
    """Seconds of ``22s``, ``8.5s``, ``12ms`` or ``1h2m3.5s``."""
    if not isinstance(value, str) or not re.fullmatch(f"(?:{_SPAN.pattern})+", value):
        return None
    return _number(sum(float(number) * _UNITS[unit] for number, unit in _SPAN.findall(value)), 1.0)


def until(value: object, now: datetime) -> float | None:
    """Seconds until an RFC 3339 time."""
    try:
        when = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return None if when is None else _left(when, now)


def _retry_after(value: object, now: datetime) -> float | None:
    seconds = _number(value, 1.0)
    if seconds is not None or not isinstance(value, str):
        return seconds
    try:
        return _left(parsedate_to_datetime(value), now)
    except (ValueError, TypeError, OverflowError):
        return None


def _left(when: datetime, now: datetime) -> float:
    return max(0.0, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now.timestamp())


def _number(value: object, factor: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value) * factor
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) and number >= 0 else None
