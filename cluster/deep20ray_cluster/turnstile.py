"""The turnstile: who may send now, under all of an account's limits at once. Pure, on an injected clock; no asyncio inside.

Starts are given in order, a little ahead (``AHEAD``), each with the seconds it must still wait where it is sent: so as many as fall
into that time are given in one block, and neither this process's pace nor a mailbox's bunches them. Wire tries after the first one come
before new calls. Three clocks hold starts back, and none of them moves another: what a reply asked for, the controller's cooldown
(which holds no start, only its own next decrease), and the account's pause. Only relative waits leave it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from deep20ray_actors.leases import Seen
from deep20ray_cluster.controller import Controller
from deep20ray_cluster.limits import METERS, Change, Limits, Used, Weight
from deep20ray_cluster.meters import Charge, Meter

AHEAD = 0.05
"""Seconds."""
ASKED_MAX = 600.0
"""Seconds: the longest wait that one reply may ask of all."""
_ROUNDED = 10.0
"""Seconds. Providers round shorter waits up to whole seconds: the call that was throttled keeps all of it, the others a second less."""
_BYTES_A_TOKEN = 4.0
_NEWEST = 0.05
"""The weight of the newest call in what a token takes of bytes."""

Measure = Callable[[], Weight]
"""What a call weighs; asked only where tokens are limited."""


@dataclass(slots=True, eq=False)
class Ticket:
    """One call's place, from try to try."""

    measure: Measure = Weight
    due: float = float("-inf")
    at: float | None = None
    """When its try in flight starts; None while it waits."""
    weight: Weight | None = None
    charges: dict[str, Charge] = field(default_factory=dict)
    tries: int = 0

    @property
    def new(self) -> bool:
        """Whether its call hasn't begun."""
        return not self.tries


class Turnstile:
    """One gate's core. ``record`` is told what changes."""

    def __init__(self, name: str, limits: Limits, clock: Callable[[], float], record: Callable[[Change], None] = lambda _: None) -> None:
        self.name = name
        self.limits = limits
        self.in_flight = 0
        self._clock = clock
        self._record = record
        self._meters = {meter: Meter(tokens=meter != "requests") for meter in METERS}
        self._controller = Controller(limits.concurrency)
        self._new: deque[Ticket] = deque()
        self._retries: list[tuple[float, int, Ticket]] = []
        self._count = 0
        self._last = float("-inf")
        self._asked = float("-inf")
        self._paused = float("-inf")
        self._bytes_a_token = _BYTES_A_TOKEN
        self._apply(limits)

    @property
    def width(self) -> int:
        """Calls that may be in flight now."""
        return min(self.limits.concurrency, self._controller.window) if self.limits.adaptive else self.limits.concurrency

    @property
    def waiting(self) -> int:
        """Calls that wait for a start."""
        return len(self._new) + len(self._retries)

    def rates(self) -> dict[str, float]:
        """What starts are spaced by, per minute, where anything is known."""
        self._pace(self._clock())
        return {name: meter.rate * 60 for name, meter in self._meters.items() if meter.rate is not None}

    def enter(self, ticket: Ticket) -> None:
        """A new call wants to start."""
        self._new.append(ticket)

    def again(self, ticket: Ticket, seen: Seen, wait: float) -> None:
        """A try has ended, and its call wants another one, ``wait`` seconds from now at the earliest."""
        self._end(ticket, seen, Used())
        self._count += 1
        ticket.due = self._clock() + wait
        heappush(self._retries, (ticket.due, self._count, ticket))

    def leave(self, ticket: Ticket, seen: Seen | None = None, used: Used = Used()) -> None:  # noqa: B008  it is frozen
        """A call has ended, or waits no longer. ``seen`` is None if nobody knows what became of it."""
        if ticket.at is not None:
            self._end(ticket, seen, used)
        elif ticket in self._new:
            self._new.remove(ticket)
        else:
            self._retries = sorted(entry for entry in self._retries if entry[2] is not ticket)

    def grants(self) -> list[tuple[Ticket, float]]:
        """Those who may start now, each with the seconds that it must still wait."""
        now, given = self._clock(), []
        self._pace(now)
        while self.in_flight < self.width and (ticket := self._next(now)) is not None:
            at = self._earliest(ticket, now)
            if at > now + AHEAD:
                break
            self._start(ticket, at)
            given.append((ticket, max(0.0, at - now)))
        return given

    def wait(self) -> float | None:
        """Seconds until ``grants`` may have something by itself; None if that takes an end of a call, or a new one."""
        heads = [ticket for _, _, ticket in self._retries[:1]] + ([self._new[0]] if self._new else [])
        if not heads or self.in_flight >= self.width:
            return None
        now = self._clock()
        return max(0.0, min(self._earliest(ticket, now) for ticket in heads) - now - AHEAD / 2)

    def pause(self, seconds: float) -> None:
        """No call starts for that long: an operator, or a quota, says so. A shorter pause never shortens a longer one."""
        self._paused = max(self._paused, self._clock() + seconds)
        self._controller.held(self._paused)
        self._tell("paused", seconds=round(seconds, 3))

    def unpause(self) -> None:
        """Ends a pause. What a reply asked for stands."""
        self._paused = float("-inf")

    def retune(self, limits: Limits) -> None:
        """Other settings from now on."""
        if limits != self.limits:
            before = self.limits
            self._apply(limits)
            names = [name for name in Limits.__slots__ if getattr(before, name) != getattr(limits, name)]
            self._tell("retuned", **{name: getattr(limits, name) for name in names})

    def _apply(self, limits: Limits) -> None:
        self.limits = limits
        self._controller.ceiling = limits.concurrency
        for name, meter in self._meters.items():
            meter.told, meter.share = getattr(limits, name), limits.share
        self._known()

    def _known(self) -> None:
        if self._meters["requests"].limit is not None:
            self._controller.forget()

    def _pace(self, now: float) -> None:
        self._meters["requests"].pace = self._controller.pace(now) if self.limits.adaptive else None

    def _next(self, now: float) -> Ticket | None:
        """A call whose next try is due, else the oldest new one."""
        if self._retries and self._retries[0][0] <= now + AHEAD:
            return self._retries[0][2]
        return self._new[0] if self._new else None

    def _earliest(self, ticket: Ticket, now: float) -> float:
        at = max(now, ticket.due, self._last, self._asked, self._paused)
        weights = self._weights(ticket)
        # What fits under one meter at a time fits under it later too, so the latest of all is right for all.
        return max(self._meters[name].earliest(weight, at) for name, weight in weights.items())

    def _weights(self, ticket: Ticket) -> dict[str, float]:
        weights: dict[str, float] = {"requests": 1.0}
        limited = [name for name in METERS[1:] if self._meters[name].limit is not None]
        if limited:
            ticket.weight = ticket.weight or ticket.measure()
            given, most = ticket.weight.input_bytes / self._bytes_a_token, float(ticket.weight.output_tokens)
            each = {"tokens": given + most, "input_tokens": given, "output_tokens": most}
            weights |= {name: each[name] for name in limited}
        return weights

    def _start(self, ticket: Ticket, at: float) -> None:
        if self._retries and self._retries[0][2] is ticket:
            heappop(self._retries)
        else:
            self._new.popleft()
        self.in_flight += 1
        ticket.at = self._last = at
        ticket.tries += 1
        ticket.charges = {name: self._meters[name].charge(weight, at) for name, weight in self._weights(ticket).items()}
        self._controller.started(at)

    def _end(self, ticket: Ticket, seen: Seen | None, used: Used) -> None:
        now, started, ticket.at = self._clock(), ticket.at, None
        assert started is not None
        match None if seen is None else seen.kind:
            case "served":
                assert seen is not None
                self._controller.served(full=self.in_flight >= self.width)
                self._learn(ticket, seen, now)
                self._settle(ticket, used)
            case "throttled" | "overloaded" as kind:
                assert seen is not None
                self._pushed_back(ticket, seen, now, started, throttled=kind == "throttled")
            case _:
                pass  # it may have been counted: its reservation stands
        self.in_flight -= 1

    def _learn(self, ticket: Ticket, seen: Seen, now: float) -> None:
        if seen.standing is None:
            return
        learned = {}
        for name, meter in self._meters.items():
            stand = getattr(seen.standing, name)
            if stand is not None and meter.told_by(stand, ticket.charges.get(name), now):
                learned[name] = stand.limit
        if learned:
            self._known()
            self._tell("learned", **learned)

    def _settle(self, ticket: Ticket, used: Used) -> None:
        given, made = used.input_tokens, used.output_tokens
        if given and ticket.weight is not None and ticket.weight.input_bytes:
            self._bytes_a_token += _NEWEST * (max(1.0, ticket.weight.input_bytes / given) - self._bytes_a_token)
        each = {"tokens": None if given is None or made is None else given + made, "input_tokens": given, "output_tokens": made}
        for name, tokens in each.items():
            if tokens is not None and name in ticket.charges:
                self._meters[name].settle(ticket.charges[name], tokens, typical=True)

    def _pushed_back(self, ticket: Ticket, seen: Seen, now: float, started: float, *, throttled: bool) -> None:
        for name, charge in ticket.charges.items():
            if name != "requests":
                self._meters[name].settle(charge, 0.0, typical=False)
        limit = self._meters["requests"].limit
        known = None if limit is None else limit / 60
        if self._controller.congested(now, started, self.in_flight, seen.wait, known, throttled=throttled) and self.limits.adaptive:
            pace = self._controller.pace(now)
            self._tell("slowed", concurrency=self.width, requests=None if pace is None else round(pace * 60, 3))
        if throttled and seen.wait:
            wait = min(seen.wait, ASKED_MAX)
            self._asked = max(self._asked, now + (wait if wait > _ROUNDED else max(0.0, wait - 1)))
            self._controller.held(self._asked)

    def _tell(self, what: Any, **facts: Any) -> None:
        self._record(Change(self.name, what, facts))
