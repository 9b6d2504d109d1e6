"""Numbers, money and times as text, the same in every locale and time zone."""

from datetime import UTC, datetime

NONE = "\u2013"
"""An en dash: there is no value."""

TOKEN_LABELS = {"YES": "Yes", "RATHER_YES": "Rather yes", "RATHER_NO": "Rather no", "NO": "No", "UNKNOWN": "Unknown"}

REASONS = {
    "success": "Found",
    "limit_exhausted": "Question limit reached",
    "guesser_protocol_failure": "Broke the action contract",
    "validator_unknown": "Guess could not be ruled on",
}

VIOLATION_LABELS = {
    "not_json": "not one JSON object",
    "wrong_action": "not an accepted action",
    "output_limit": "cut off by the output limit",
    "empty": "empty reply",
    "incomplete": "did not end normally",
    "refused": "refused",
}

REDACTED_LABELS = {
    "question": "question",
    "guess_name": "guess",
    "guess_description": "description of the guess",
    "url": "address",
    "excerpt": "excerpt",
    "text": "text of the violation",
}
ROLE_LABELS = {
    "guesser": "Guesser",
    "queries": "Search queries",
    "search": "Search",
    "pages": "Pages read",
    "oracle": "Oracle",
    "reviewer": "Reviewer",
    "judge": "Judge",
    "validator": "Validator",
}


def number(value: float | None, digits: int = 2) -> str:
    """Fixed digits with a true minus sign; an en dash for none."""
    return NONE if value is None else f"{value:.{digits}f}".replace("-", "\u2212")


def whole(value: int | None) -> str:
    """Thousands apart; "unknown" for none."""
    return "unknown" if value is None else f"{value:,}"


def percent(share: float | None) -> str:
    """A share as per cent, with one digit unless it is exactly 0 or 1, so that 99.96 % never reads as 100 %."""
    if share is None:
        return NONE
    if share in (0, 1):
        return f"{share:.0%}"
    return f"{min(max(share * 100, 0.1), 99.9):.1f}%"


def usd(microusd: int | None) -> str:
    """Micro-dollars as dollars, with enough digits to see small sums."""
    if microusd is None:
        return "unknown"
    dollars = microusd / 1_000_000
    if microusd == 0 or dollars >= 1:
        return f"${dollars:,.2f}" if microusd else "$0"
    digits = 3 if dollars >= 0.1 else 4 if dollars >= 0.001 else 6
    return f"${dollars:.{digits}f}"


def usd_short(microusd: int) -> str:
    """A round sum for the tick of an axis: no trailing zeros."""
    return f"${microusd / 1_000_000:,.6f}".rstrip("0").rstrip(".")


def duration(milliseconds: int | None) -> str:
    """Hours, minutes and seconds, as coarse as is useful."""
    if milliseconds is None:
        return "unknown"
    if milliseconds < 10_000:
        return f"{milliseconds / 1000:.1f} s"
    seconds = round(milliseconds / 1000)
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def day(time: datetime | None) -> str:
    """ISO date in UTC."""
    return NONE if time is None else time.astimezone(UTC).strftime("%Y-%m-%d")


def moment(time: datetime | None) -> str:
    """Date and time in UTC."""
    return NONE if time is None else time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def iso(time: datetime | None) -> str:
    """RFC 3339 with milliseconds; empty for none."""
    return "" if time is None else time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
