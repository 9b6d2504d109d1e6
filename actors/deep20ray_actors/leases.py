"""What passes between a gate and a transport: leases, and what each wire try says of the limits. Nothing here says anything of a trial.

Every wire try needs a lease of its own: the first one comes with its call, each later one is asked for by an ``Again`` and comes as a
``Grant``. Waits are relative, because two hosts' clocks differ.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Lease:
    """Permission for one wire try on an account, ``after`` that many seconds."""

    account: str
    number: int
    after: float = 0.0


@dataclass(frozen=True, slots=True)
class Stand:
    """Where one limit stands, as a reply's headers say; None for what they don't."""

    limit: int | None = None
    """In a minute."""
    remaining: int | None = None
    reset: float | None = None
    """Seconds until all of it is there again."""


@dataclass(frozen=True, slots=True)
class Standing:
    """All limits that a reply's headers name."""

    requests: Stand | None = None
    tokens: Stand | None = None
    input_tokens: Stand | None = None
    output_tokens: Stand | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What one wire try tells its gate.

    served: the provider took it; throttled: too many requests; overloaded: the provider has no room for anyone; failed: anything else.
    """

    kind: Literal["served", "throttled", "overloaded", "failed"]
    wait: float | None = None
    """Seconds that the provider asked to wait."""
    standing: Standing | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """The call of that slot wants another wire try, ``wait`` seconds from now at the earliest."""

    slot: int
    seen: Seen
    wait: float


@dataclass(frozen=True, slots=True)
class Grant:
    """The lease that the call of that slot asked for."""

    slot: int
    lease: Lease
