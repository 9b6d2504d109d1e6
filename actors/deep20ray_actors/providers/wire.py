"""Requests and replies as values, and what an HTTP status or an embedded error code means. Pure; knows no protocol and no client.

What is retried: 408, 409, 425, 429, 5xx, connection errors, and replies that aren't what the protocol says. What never is: anything
delivered, refused requests and credentials, exhausted quota, and whatever the provider marks ``x-should-retry: false``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from deep20ray.canonical import Digest, digest_of, sha256
from deep20ray_actors.outcomes import Credentials, Fault, Outcome, QuotaExhausted, Rejected, ServerFault, Throttled, Usage
from deep20ray_actors.providers.waits import asked_wait, details_of

USER_AGENT = "deep20ray"
"""Constant, without a version: what a role's server sees must not tell two runs apart."""
WAIT_MAX = 120.0
"""Seconds. A provider that asks for more gets its Throttled at once; the account's gate then waits, not the call."""


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One HTTP request without its credential. Header names are lower case."""

    method: str
    base_url: str
    path: str
    """With its query, as it follows ``base_url``."""
    headers: Mapping[str, str]
    body: bytes = field(default=b"", repr=False)
    seed_sent: bool = False
    """Whether ``body`` holds a sampling seed."""

    @property
    def digest(self) -> Digest:
        """Digest of method, path, headers (Host and Authorization are never among them) and the body's digest."""
        target = "/" + self.base_url.split("://", 1)[-1].partition("/")[2]
        path = target.rstrip("/") + self.path
        return digest_of({"method": self.method, "path": path, "headers": dict(self.headers), "body": sha256(self.body)})


@dataclass(frozen=True, slots=True)
class WireReply:
    """One whole HTTP reply. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one reply means.

    ``retry`` says whether another wire try may help; it is False for everything delivered. ``wait`` is the provider's own wish in
    seconds, if it has one.
    """

    outcome: Outcome
    retry: bool = False
    wait: float | None = None
    usage: Usage = field(default_factory=Usage)
    served_model: str | None = None
    fingerprint: str | None = None
    finish_reason: str | None = None
    reasoning: str | None = field(default=None, repr=False)
    reported_cost_microusd: int | None = None
    unbilled: bool = False
    """Whether nobody can have been charged: no connection was made, or the reply's status was an error's."""
    paused: tuple[Any, ...] | None = field(default=None, repr=False)
    """All that a turn held so far, verbatim, if the provider paused it and it may be gone on with; ``outcome`` is what it amounts to
    if it isn't."""


_QUOTA_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "contract_spend_limit_reached",
        "enforced_spend_limit_reached",
        "billing_error",
        "insufficient_credits",
        "linked_organization_spend_limit_reached",
        "linked_organization_billing_unavailable",
    }
)
_STATUS_OF_CODE = {
    "server_error": 500,
    "internal_server_error": 500,
    "internal_error": 500,
    "api_error": 500,
    "overloaded_error": 529,
    "timeout": 504,
    "timeout_error": 504,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "too_many_requests": 429,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "permission_error": 403,
    "model_not_found": 404,
    "not_found_error": 404,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "unsupported_parameter": 400,
    "unsupported_value": 400,
    "organization_on_hold": 400,
    "request_too_large": 413,
    "ramp_limit_exceeded": 429,
    "RESOURCE_EXHAUSTED": 429,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
    "INTERNAL": 500,
    "API_KEY_INVALID": 401,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
}
_DAILY = re.compile(r"\b(?:requests|tokens) per day\b|\bper-day\b|\((?:RPD|TPD)\)|\blimit: 0(?![\d.]*[1-9])\b", re.IGNORECASE)
_PARAMETERS = frozenset(
    {"model", "messages", "temperature", "top_p", "seed", "reasoning_effort", "max_tokens", "max_completion_tokens", "response_format"}
)


def read_error(status: int, headers: Mapping[str, str], error: object, now: datetime) -> Reading:
    """What a failed reply means.

    Args:
        status: the HTTP status, or 200 where the failure stands inside the body; then its own code decides, else 500 is assumed.
        headers: of the reply.
        error: the body's ``error`` member, if the body had one. Only known codes and parameter names of it are ever shown.
        now: for a Retry-After that is a date.
    """
    codes = _codes(error)
    effective = status if status >= 300 else _embedded_status(error, codes)
    wait = asked_wait(headers, error, now)
    fault = _fault(effective, codes, error, wait)
    again = isinstance(fault, Throttled | ServerFault) and headers.get("x-should-retry", "").lower() != "false"
    return Reading(fault, retry=again, wait=wait)


def _fault(status: int, codes: tuple[str, ...], error: object, wait: float | None) -> Fault:
    shown = _shown(status, codes, error)
    if status in (402, 432, 433) or _QUOTA_CODES.intersection(codes) or (status == 429 and _daily(error)):
        return QuotaExhausted(f"no quota or credit is left on the account ({shown}); top it up or wait, then resume", status)
    if status == 429:
        return Throttled(f"too many requests ({shown}); lower max_concurrency or requests_per_minute", status, wait)
    if status == 401 or "API_KEY_INVALID" in codes or (status == 403 and not _moderated(error)):
        return Credentials(f"the credential was not accepted ({shown}); check the account's api_key", status)
    if status in (408, 409, 425) or status >= 500:
        return ServerFault(f"the provider failed ({shown}); resume later", status)
    if 300 <= status < 400:
        return Rejected(f"the provider redirects ({shown}), which is never followed; give the final base_url", status)
    advice = _ADVICE.get(status, "check base_url, model and settings")
    return Rejected(f"the provider refused the request ({shown}); {advice}", status)


_ADVICE = {
    400: "check effort, temperature, send_seed and output_limit_field",
    404: "check the model's name, and that base_url ends with the version path",
}


def _codes(error: object) -> tuple[str, ...]:
    if not isinstance(error, dict):
        return ()
    details = error.get("details")
    inner = details.get("error_code") if isinstance(details, dict) else None
    reasons = [detail.get("reason") for detail in details_of(error)]
    return tuple(value for value in (error.get("code"), error.get("type"), inner, *reasons, error.get("status")) if isinstance(value, str))


def _embedded_status(error: object, codes: tuple[str, ...]) -> int:
    code: Any = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3:
        code = int(code)
    if isinstance(code, int) and not isinstance(code, bool) and 300 <= code <= 599:
        return code
    return next((_STATUS_OF_CODE[code] for code in codes if code in _STATUS_OF_CODE), 500)


def _shown(status: int, codes: tuple[str, ...], error: object) -> str:
    known = [code for code in dict.fromkeys(codes) if code in _STATUS_OF_CODE or code in _QUOTA_CODES]
    parameter = error.get("param") if isinstance(error, dict) else None
    named = [f"parameter {parameter}"] if isinstance(parameter, str) and parameter in _PARAMETERS else []
    return ", ".join([f"status {status}", *known, *named])


def _daily(error: object) -> bool:
    """Whether the exhausted limit is a day's, or is none at all; a short wait that stands beside it is no help."""
    text = error.get("message") if isinstance(error, dict) else None
    if isinstance(text, str) and _DAILY.search(text):
        return True
    violations = [item for detail in details_of(error) for item in _list(detail.get("violations")) if isinstance(item, dict)]
    return any("PerDay" in str(item.get("quotaId")) or str(item.get("quotaValue")) == "0" for item in violations)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _moderated(error: object) -> bool:
    metadata = error.get("metadata") if isinstance(error, dict) else None
    return isinstance(metadata, dict) and ("reasons" in metadata or "flagged_input" in metadata)
