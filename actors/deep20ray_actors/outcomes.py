"""What can become of a call: one closed sum type, and the record of how it went. Only these values leave an actor, never an exception.

Delivered (the provider completed something; never sent again)      Completed, Refused, Truncated, Empty; Found for a search,
                                                                    Fetched for pages
Fault (nothing that may be played; never an answer or a score)      Throttled, QuotaExhausted, Transport, ServerFault, Malformed,
                                                                    Rejected, Credentials

A fault's ``detail`` is one line of our own words, with a status and known error codes at most: it never quotes a message, a reply
or a credential, because its cause may be published.
"""

from dataclasses import dataclass
from typing import Literal, TypeGuard

from deep20ray.canonical import Digest
from deep20ray_actors.leases import Lease, Seen
from deep20ray_actors.messages import Message, ResultItem


@dataclass(frozen=True, slots=True)
class Source:
    """A page that a provider's own search returned. ``text`` is what the tool gave of it, cut; empty if nothing."""

    url: str
    title: str
    text: str
    whole: bool
    """Whether ``text`` is the page's, rather than a few passages of it."""


@dataclass(frozen=True, slots=True)
class Browsed:
    """What a provider's own search did within a reply."""

    searches: int
    """That worked, hits or not."""
    sources: tuple[Source, ...]
    barred: bool
    """Whether it returned a page of an excluded domain, which the model may then have read."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A normal stop with visible text, exactly as it came. ``browsed``: an Oracle's that was given its provider's search."""

    text: str
    browsed: Browsed | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The model refused or a filter cut it; ``text`` is what was visible, if anything."""

    text: str | None


@dataclass(frozen=True, slots=True)
class Truncated:
    """The reply ended by its length limit or in another way that isn't a normal stop. Nothing is ever read out of reasoning."""

    text: str | None
    reason: Literal["length", "other"]
    reasoning_only: bool
    """Ended by length before any visible text."""


@dataclass(frozen=True, slots=True)
class Empty:
    """A normal stop without visible text."""


@dataclass(frozen=True, slots=True)
class Found:
    """A search that worked, hits or not."""

    results: tuple[ResultItem, ...]


EXCLUDED = "the page, or an address that leads to it, is excluded"
"""The ``problem`` of a page that must not be used at all."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page. ``text`` is its readable text, cut; empty where it could not be read, and ``problem`` then says why in our words."""

    url: str
    """As it was asked for."""
    final_url: str | None
    """After redirects; None if it could not be reached."""
    text: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """Every page that was asked for, in order, readable or not."""

    pages: tuple[Page, ...]


@dataclass(frozen=True, slots=True)
class Throttled:
    """Too many requests, still so after all attempts, or asked to wait longer than a call may."""

    detail: str
    status: int | None = None
    retry_after: float | None = None
    """Seconds that the provider asked for, if it did."""


@dataclass(frozen=True, slots=True)
class QuotaExhausted:
    """The account has no credit or quota left; waiting seconds doesn't help."""

    detail: str
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Transport:
    """No whole reply came: connection, timeout or the call's deadline."""

    detail: str
    status: int | None = None


@dataclass(frozen=True, slots=True)
class ServerFault:
    """The provider failed: 5xx, or the same inside a reply."""

    detail: str
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Malformed:
    """A reply that isn't what the protocol says, or a completion that used tools it was not given."""

    detail: str
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """The request itself was refused; sending it again can't help."""

    detail: str
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credential is missing, unusable or not accepted."""

    detail: str
    status: int | None = None


Delivered = Completed | Refused | Truncated | Empty
Fault = Throttled | QuotaExhausted | Transport | ServerFault | Malformed | Rejected | Credentials
Outcome = Delivered | Found | Fetched | Fault

FAULTS = (Throttled, QuotaExhausted, Transport, ServerFault, Malformed, Rejected, Credentials)


def is_fault(outcome: Outcome) -> TypeGuard[Fault]:
    """Whether it is infrastructure rather than something delivered."""
    return isinstance(outcome, FAULTS)


@dataclass(frozen=True, slots=True)
class Usage:
    """Disjoint meters in tokens; None where the provider didn't say, which is never 0. Then searches and pages, counted."""

    input_fresh: int | None = None
    input_cache_read: int | None = None
    input_cache_write_5m: int | None = None
    input_cache_write_1h: int | None = None
    output_visible: int | None = None
    output_reasoning: int | None = None
    searches: int = 0
    pages: int = 0


@dataclass(frozen=True, slots=True)
class Audit:
    """How one logical call went, its wire tries included."""

    request_digest: Digest | None
    """Of method, path, headers but Host and credentials, and body; None if no request was built."""
    requested_model: str | None
    served_model: str | None
    fingerprint: str | None
    finish_reason: str | None
    seed_sent: bool
    """Whether the sampling seed was in the request body."""
    usage: Usage
    wire_tries: int
    throttles: int
    """Wire tries that were answered by "too many requests"."""
    latency_ms: int
    """From the first wire try to the outcome, waits between tries included."""
    reasoning: str | None
    """Private."""
    reported_cost_microusd: int | None
    """What the provider itself said it charged."""
    unbilled: int = 0
    """Wire tries that nobody charged for: throttled, answered by an error's status, or never connected."""
    resumptions: int = 0
    """How often a paused turn was gone on with, within this call; ``usage`` is the sum."""


@dataclass(frozen=True, slots=True)
class Call:
    """One logical call. ``slot`` is the sender's opaque number; ``lease`` is for its first wire try."""

    slot: int
    route: str
    message: Message
    seed: int | None
    lease: Lease


@dataclass(frozen=True, slots=True)
class CallResult:
    """What became of the call of that slot."""

    slot: int
    outcome: Outcome
    audit: Audit
    seen: Seen | None = None
    """What its last wire try tells the gate; None if nothing was sent. It is no part of any record."""
