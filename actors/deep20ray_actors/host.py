"""One role's calls, without Ray: batches in, closed outcomes out, and between them requests for leases of further wire tries.

Calls of a batch start a few at a time with a yield between, so that a batch doesn't move in lockstep. Whatever goes wrong inside
a call becomes a fault here, at one boundary; no exception, cause or history leaves it. A call is forgotten once it is collected.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from deep20ray.answers import Role
from deep20ray_actors import credentials
from deep20ray_actors.config import CredentialRef, FetchConfig, NativeSearch, RouteConfig, SearchConfig
from deep20ray_actors.errors import CredentialUnusable, RouteRefused
from deep20ray_actors.leases import Again, Grant, Lease
from deep20ray_actors.messages import (
    ChatMessage,
    GuesserMessage,
    JudgeMessage,
    Message,
    OracleMessage,
    PagesMessage,
    QueriesMessage,
    ResearchMessage,
    ReviewerMessage,
    SearchMessage,
    ValidatorMessage,
)
from deep20ray_actors.outcomes import Audit, Call, CallResult, Credentials, Fault, Fetched, Rejected, Transport, Usage, is_fault
from deep20ray_actors.providers.delivery import search_given
from deep20ray_actors.providers.dialects import DIALECTS, NATIVE_SEARCH, Resumption
from deep20ray_actors.providers.standing import seen_of
from deep20ray_actors.providers.transport import HttpTransport, Trail, Way
from deep20ray_actors.providers.usage import summed
from deep20ray_actors.providers.wire import Reading, WireReply
from deep20ray_actors.requests import pages_digest
from deep20ray_actors.search.backends import BACKENDS
from deep20ray_actors.search.pages import PageFetcher

_TYPES: Mapping[Role, tuple[type[Message], ...]] = {
    Role.GUESSER: (GuesserMessage,),
    Role.ORACLE: (QueriesMessage, SearchMessage, PagesMessage, OracleMessage, ResearchMessage),
    Role.REVIEWER: (ReviewerMessage,),
    Role.JUDGE: (JudgeMessage,),
    Role.VALIDATOR: (ValidatorMessage,),
}
_FEED = 4
"""Calls started before the loop gets a turn."""
_PAGES_MARGIN = 30.0
"""Seconds beyond what the fetcher itself takes for pages: it ends by itself, so this is for what should not happen."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Time and chance, from outside."""

    clock: Callable[[], float]
    """Monotonic seconds."""
    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]]
    jitter: Callable[[], float]
    """From 0 up to 1."""


class RoleHost:
    """Runs the calls of one role in one event loop.

    Raises:
        RouteRefused: no routes, a route of another role, a search or fetch configured for anyone but the Oracle, or a native search
            for a dialect without one.
    """

    def __init__(
        self,
        role: Role,
        routes: Mapping[str, RouteConfig],
        surroundings: Surroundings,
        transport: HttpTransport,
        fetcher: PageFetcher | None = None,
        place: str = "this host",
    ) -> None:
        """``fetcher``: how pages are fetched; made when it is first needed, if not given. The host closes it and the transport.
        ``place``: where it runs, for people."""
        _check_routes(role, routes)
        self.role = role
        self._routes = dict(routes)
        self._around = surroundings
        self._transport = transport
        self._fetcher = fetcher
        self._place = place
        self._keys: dict[str, str | None] = {}
        self._search_keys: dict[CredentialRef, str | None] = {}
        self._queue: deque[Call] = deque()
        self._feeder: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._asking: dict[int, asyncio.Future[Lease]] = {}
        self._finished: list[CallResult | Again] = []
        self._news = asyncio.Event()

    async def submit(self, calls: Sequence[Call | Grant]) -> None:
        """Takes a batch over and returns at once. A grant that nobody waits for any more is dropped."""
        for item in calls:
            if isinstance(item, Call):
                self._queue.append(item)
            elif (asked := self._asking.pop(item.slot, None)) is not None and not asked.done():
                asked.set_result(item.lease)
        if self._queue and (self._feeder is None or self._feeder.done()):
            self._feeder = asyncio.create_task(self._feed())

    async def collect(self, wait_seconds: float) -> list[CallResult | Again]:
        """Everything that finished or wants another try since the last time, in that order; waits that long for the first."""
        if not self._finished and wait_seconds > 0:
            self._news.clear()
            try:
                async with asyncio.timeout(wait_seconds):
                    await self._news.wait()
            except TimeoutError:
                return []
        results, self._finished = self._finished, []
        return results

    async def close(self) -> None:
        """Drops what runs, without results, and closes the connections."""
        self._queue.clear()
        tasks = [*self._running, *([self._feeder] if self._feeder else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._finished = []
        if self._fetcher is not None:
            self._fetcher.close()
        await self._transport.close()

    async def _feed(self) -> None:
        while self._queue:
            for _ in range(min(_FEED, len(self._queue))):
                call = self._queue.popleft()
                task = asyncio.create_task(self._run(call))
                self._running.add(task)
                task.add_done_callback(partial(self._ended, call.slot))
            await asyncio.sleep(0)

    async def _run(self, call: Call) -> None:
        trail, started = Trail(), self._around.clock() + call.lease.after
        reading = await self._boundary(call, trail)
        route = self._routes.get(call.route)
        searching = isinstance(call.message, SearchMessage | PagesMessage)
        audit = Audit(
            request_digest=trail.request_digest,
            requested_model=None if route is None or searching else route.model,
            served_model=reading.served_model,
            fingerprint=reading.fingerprint,
            finish_reason=reading.finish_reason,
            seed_sent=trail.seed_sent,
            usage=_used(trail, reading),
            wire_tries=trail.tries,
            throttles=trail.throttles,
            latency_ms=max(0, round((self._around.clock() - started) * 1000)),
            reasoning=reading.reasoning,
            reported_cost_microusd=reading.reported_cost_microusd,
            unbilled=trail.unbilled,
            resumptions=trail.resumptions,
        )
        seen = seen_of(reading.outcome, reading.wait, trail.headers, self._around.now()) if trail.tries else None
        self._tell(CallResult(call.slot, reading.outcome, audit, seen))

    def _tell(self, news: CallResult | Again) -> None:
        self._finished.append(news)
        self._news.set()

    async def _again(self, slot: int, trail: Trail, reading: Reading, wait: float) -> Lease:
        """The lease of another wire try, from whoever collects."""
        asked: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        self._asking[slot] = asked
        self._tell(Again(slot, seen_of(reading.outcome, reading.wait, trail.headers, self._around.now()), wait))
        try:
            return await asked
        finally:
            self._asking.pop(slot, None)

    def _ended(self, slot: int, task: asyncio.Task[None]) -> None:
        """A call that broke outside its boundary is answered all the same, or its trial would wait for ever."""
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            fault = Rejected(f"internal error in the {self.role.value}'s actor: {type(error).__name__}")
            self._tell(CallResult(slot, fault, Audit(None, None, None, None, None, False, Usage(), 0, 0, 0, None, None)))

    async def _boundary(self, call: Call, trail: Trail) -> Reading:
        """The one place where an exception of any kind becomes a fault. Its detail names the kind of error and never its text."""
        route = self._routes.get(call.route)
        if route is None:
            return _fault(Rejected("no such route; the driver and the actor were given different routes"))
        if type(call.message) not in _TYPES[self.role]:
            return _fault(Rejected(f"not a message for the {self.role.value}; nothing was sent"))
        seconds = route.timeouts.call
        if isinstance(call.message, SearchMessage) and route.search is not None:
            seconds = route.search.timeouts.call
        if isinstance(call.message, PagesMessage) and route.fetch is not None:
            seconds = 2 * route.fetch.seconds + _PAGES_MARGIN
        try:
            async with asyncio.timeout(seconds):
                return await self._perform(call, route, trail)
        except TimeoutError:
            return _fault(Transport(f"the call's deadline of {seconds:g} s passed after {trail.tries} wire tries"))
        except CredentialUnusable:
            whose = "the search's api_key" if isinstance(call.message, SearchMessage) else f"the {self.role.value}'s api_key"
            why = f"its file on {self._place} is missing, malformed or open to others; see its mode and content there"
            return _fault(Credentials(f"{whose} can't be used: {why}"))
        except Exception as error:  # noqa: BLE001  the documented boundary
            return _fault(Rejected(f"internal error in the {self.role.value}'s actor: {type(error).__name__}"))

    async def _perform(self, call: Call, route: RouteConfig, trail: Trail) -> Reading:
        message = call.message
        if isinstance(message, SearchMessage):
            if route.search is None:
                return _fault(Rejected(f"route {route.route} has no search configured; add [search] to the sweep file"))
            return await self._search(message, route.search, call, trail)
        if isinstance(message, PagesMessage):
            if route.fetch is None:
                return _fault(Rejected(f"route {route.route} fetches no pages; set search.fetch_pages"))
            return await self._pages(message, route.fetch, trail)
        if isinstance(message, ResearchMessage) and route.native is None:
            return _fault(Rejected(f"route {route.route} has no search of its provider's; set the Oracle's native search"))
        return await self._chat(message, call, route, trail)

    async def _chat(self, message: ChatMessage, call: Call, route: RouteConfig, trail: Trail) -> Reading:
        """One turn of a model's, gone on with where its provider pauses it: within the same call and deadline."""
        speech, native = DIALECTS[route.dialect], search_given(route, message)
        request = speech.build(route, message, call.seed)
        way = Way(
            self._key(route),
            route.timeouts,
            route.attempts,
            lambda reply: speech.read(reply, self.role, self._around.now(), native),
            lambda key: speech.authorize(route, key),
        )
        ask = partial(self._again, call.slot, trail)
        reading = await self._transport.send(request, call.lease, way, trail, ask)
        while reading.paused is not None and native is not None and trail.resumptions < native.max_resumptions:
            if speech.resumption is None:
                break
            trail.spent, trail.resumptions = _used(trail, reading), trail.resumptions + 1
            again = partial(self._resumed, speech.resumption, native, reading.paused)
            request_again = speech.resumption.build(request, reading.paused)
            reading = await self._transport.send(request_again, await ask(reading, 0.0), replace(way, read=again), trail, ask)
        return reading

    def _resumed(self, resumption: Resumption, native: NativeSearch, earlier: tuple[Any, ...], reply: WireReply) -> Reading:
        return resumption.read(reply, self.role, self._around.now(), native, earlier)

    async def _search(self, message: SearchMessage, config: SearchConfig, call: Call, trail: Trail) -> Reading:
        engine = BACKENDS[config.backend]
        request = engine.build(config, message)
        way = Way(
            self._search_key(config),
            config.timeouts,
            config.attempts,
            lambda reply: engine.read(reply, config, self._around.now()),
            engine.authorize,
        )
        return await self._transport.send(request, call.lease, way, trail, partial(self._again, call.slot, trail))

    async def _pages(self, message: PagesMessage, config: FetchConfig, trail: Trail) -> Reading:
        if self._fetcher is None:
            self._fetcher = PageFetcher()
        trail.request_digest = pages_digest(message)
        trail.tries = 1
        pages = await self._fetcher.fetch(message.urls, config)
        read = sum(page.problem is None for page in pages)
        return Reading(Fetched(pages), usage=Usage(0, 0, 0, 0, 0, 0, pages=read))

    def _key(self, route: RouteConfig) -> str | None:
        if route.route not in self._keys:
            self._keys[route.route] = credentials.read(route.credential)
        return self._keys[route.route]

    def _search_key(self, config: SearchConfig) -> str | None:
        if config.credential not in self._search_keys:
            self._search_keys[config.credential] = credentials.read(config.credential)
        return self._search_keys[config.credential]


def _fault(fault: Fault) -> Reading:
    return Reading(fault)


def _used(trail: Trail, reading: Reading) -> Usage:
    """What the call used: the paused parts of its turn included, and nothing for a fault that says nothing of it."""
    if trail.spent is None:
        return reading.usage
    silent = is_fault(reading.outcome) and reading.usage == Usage()
    return trail.spent if silent else summed(trail.spent, reading.usage)


def _check_routes(role: Role, routes: Mapping[str, RouteConfig]) -> None:
    if not routes:
        raise RouteRefused(f"the {role.value}'s actor has no routes; give it at least one")
    for name, route in routes.items():
        if route.role is not role or name != route.route:
            raise RouteRefused(
                f"route {name!r} is the {route.role.value}'s, not the {role.value}'s; each actor gets its own role's routes alone"
            )
        if route.search is not None and role is not Role.ORACLE:
            raise RouteRefused(f"route {name!r}: only the Oracle searches; leave the {role.value}'s search out")
        if (route.fetch is not None or route.native is not None) and role is not Role.ORACLE:
            raise RouteRefused(f"route {name!r}: only the Oracle searches; leave the {role.value}'s fetch and native search out")
        if route.native is not None and route.dialect not in NATIVE_SEARCH:
            raise RouteRefused(f"route {name!r}: {route.dialect.value} has no search of its own; take another kind, or another search")
