"""What a gate is told, what a call weighs, and what a gate says when something changed. Values, nothing else."""

from dataclasses import dataclass
from typing import Any, Literal

METERS = ("requests", "tokens", "input_tokens", "output_tokens")
"""What providers count in a minute; tokens are input and output together."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an operator says of one gate. Rates are per minute; None is not told."""

    concurrency: int
    """The ceiling of calls in flight."""
    requests: int | None = None
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    share: float = 1.0
    """The part of every rate, told or learned, that this gate may use."""
    adaptive: bool = True
    """Whether throttling slows it down, and success speeds it up, beyond what it was told."""


@dataclass(frozen=True, slots=True)
class Weight:
    """A call before it is sent: the bytes of its input, and the most tokens of its output."""

    input_bytes: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Used:
    """What a call used, in tokens; None where nobody knows."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Something about a gate changed: its operator's settings, what it learned of its limits, a decrease, or a pause."""

    gate: str
    what: Literal["retuned", "learned", "slowed", "paused"]
    facts: dict[str, Any]
