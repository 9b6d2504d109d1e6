"""What a reply's headers say of its account's limits, in the two families of names that providers use. Pure.

``x-ratelimit-{limit,remaining,reset}-{requests,tokens}`` with resets as spans (``6m0s``), and
``anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-{limit,remaining,reset}`` with resets as times. A limit of 0 or less
is none: some gateways send it where they have no limit.
"""

from collections.abc import Mapping
from datetime import datetime

from deep20ray_actors.leases import Seen, Stand, Standing
from deep20ray_actors.outcomes import Outcome, ServerFault, Throttled, is_fault
from deep20ray_actors.providers.waits import span, until

_OVERLOADED = (503, 529)
_LIMIT = 2**53


def seen_of(outcome: Outcome, wait: float | None, headers: Mapping[str, str] | None, now: datetime) -> Seen:
    """What a wire try tells its gate.

    Args:
        outcome: of the try.
        wait: the provider's own wish, in seconds.
        headers: of the reply, in lower case; None if none came.
        now: for resets that are given as a time.
    """
    if isinstance(outcome, Throttled):
        return Seen("throttled", outcome.retry_after if wait is None else wait)
    if isinstance(outcome, ServerFault) and outcome.status in _OVERLOADED:
        return Seen("overloaded", wait)
    if is_fault(outcome):
        return Seen("failed", wait)
    return Seen("served", None, None if headers is None else standing_of(headers, now))


def standing_of(headers: Mapping[str, str], now: datetime) -> Standing | None:
    """Every limit that the headers (in lower case) name; None if they name none."""
    if not any("ratelimit" in name for name in headers):
        return None

    def named(kind: str) -> Stand | None:
        theirs, ours = f"anthropic-ratelimit-{kind}", "x-ratelimit"
        limit = _count(headers.get(f"{theirs}-limit", headers.get(f"{ours}-limit-{kind}")))
        remaining = _count(headers.get(f"{theirs}-remaining", headers.get(f"{ours}-remaining-{kind}")))
        reset = until(headers.get(f"{theirs}-reset"), now)
        reset = span(headers.get(f"{ours}-reset-{kind}")) if reset is None else reset
        return Stand(limit, remaining, reset) if limit else None

    stands = [named(kind) for kind in ("requests", "tokens", "input-tokens", "output-tokens")]
    return Standing(*stands) if any(stands) else None


def _count(value: str | None) -> int | None:
    text = (value or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 and int(text) < _LIMIT else None
