"""The one place that sends, and the only retry loop. It takes a request, a reader of replies, and a lease for each wire try, whose wait
it keeps; it knows no protocol.

One client an actor: no proxy or other setting from the environment, no redirects, no cookies (they would tie calls together),
explicit timeouts, no limit on connections (the leases are the limit), a cap on the size of a reply.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import aiohttp
import httpx
from yarl import URL

from deep20ray.canonical import Digest
from deep20ray_actors.config import Timeouts
from deep20ray_actors.leases import Lease
from deep20ray_actors.outcomes import Malformed, Rejected, Throttled, Transport, Usage
from deep20ray_actors.providers.wire import WAIT_MAX, Reading, WireReply, WireRequest

REPLY_MAX = 8 * 1024 * 1024
"""Bytes of a reply's body."""
_BACKOFF_FIRST = 0.5
_BACKOFF_MAX = 8.0


@dataclass(slots=True)
class Trail:
    """What a call left on the wire so far; it stays true when the call is cancelled."""

    request_digest: Digest | None = None
    seed_sent: bool = False
    tries: int = 0
    throttles: int = 0
    unbilled: int = 0
    resumptions: int = 0
    """How often a paused turn was gone on with."""
    spent: Usage | None = None
    """What the paused parts of a turn used."""
    headers: Mapping[str, str] | None = None
    """Of the last wire try's reply, if it had one."""


Ask = Callable[[Reading, float], Awaitable[Lease]]
"""Asks for the lease of another wire try: what the last one brought, and how many seconds it must wait at least."""


def bearer(key: str) -> tuple[str, str]:
    """The header that most servers want a key in."""
    return "authorization", f"Bearer {key}"


@dataclass(frozen=True, slots=True)
class Way:
    """How one call is sent: its credential and the header for it, its timeouts, how often it may be tried, how a reply is read."""

    credential: str | None = field(repr=False)
    timeouts: Timeouts
    attempts: int
    read: Callable[[WireReply], Reading]
    authorize: Callable[[str], tuple[str, str]] = bearer


class HttpTransport:
    """The client. Make it anywhere, use it in one event loop, close it there."""

    def __init__(self, *, sleep: Callable[[float], Awaitable[None]], jitter: Callable[[], float], reply_max: int = REPLY_MAX) -> None:
        """``sleep`` takes seconds; ``jitter`` gives a number from 0 up to 1 that shortens a wait by up to a quarter."""
        self._sleep = sleep
        self._jitter = jitter
        self._reply_max = reply_max
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: WireRequest, lease: Lease, way: Way, trail: Trail, ask: Ask) -> Reading:
        """One logical call: as many wire tries as it takes and ``way`` allows. A reading that isn't to be retried ends it.

        Args:
            lease: the gate's permission for the first try; without one there is no call.
            ask: gets the permission for each later one.
        """
        # The first request's: what goes on with a paused turn is a function of it and of the replies.
        trail.request_digest = trail.request_digest or request.digest
        trail.seed_sent = request.seed_sent
        attempt = 0
        while True:
            if lease.after > 0:
                await self._sleep(lease.after)
            attempt += 1
            trail.tries += 1
            trail.headers = None
            reading = await self._try(request, way, trail)
            if isinstance(reading.outcome, Throttled):
                trail.throttles += 1
            trail.unbilled += reading.unbilled or isinstance(reading.outcome, Throttled)
            if not reading.retry or attempt >= way.attempts:
                return reading
            if (reading.wait or 0.0) > WAIT_MAX:
                return _too_long(reading)
            lease = await ask(reading, max(reading.wait or 0.0, self._backoff(attempt)))

    async def close(self) -> None:
        """Closes the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _backoff(self, attempt: int) -> float:
        return float(min(_BACKOFF_MAX, _BACKOFF_FIRST * 2 ** min(attempt - 1, 10)) * (1 - 0.25 * self._jitter()))

    async def _try(self, request: WireRequest, way: Way, trail: Trail) -> Reading:
        try:
            async with asyncio.timeout(way.timeouts.wire):
                reply = await self._fetch(request, way)
        except TimeoutError:
            return Reading(Transport(f"no whole reply came within {way.timeouts.wire:g} s, the time of one wire try"), retry=True)
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, ValueError):
            return Reading(Rejected("base_url is not an http(s) address; correct it in the sweep file"))
        except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError) as error:
            return Reading(Transport(_words(error)), retry=True, unbilled=_unconnected(error))
        if reply is None:
            # Another try would be as long, and would be paid for again.
            return Reading(Malformed(f"the reply is longer than {self._reply_max} bytes"))
        trail.headers = reply.headers
        reading = way.read(reply)
        return replace(reading, unbilled=True) if reply.status >= 400 else reading

    async def _fetch(self, request: WireRequest, way: Way) -> WireReply | None:
        """The whole reply, or None if it is too long."""
        if self._session is None:
            self._session = _session()
        headers = dict(request.headers)
        if way.credential is not None:
            name, value = way.authorize(way.credential)
            headers[name] = value
        # Encoded already: what the request's digest says is what goes out.
        url = URL(request.base_url + request.path, encoded=True)
        sent = self._session.request(
            request.method, url, headers=headers, data=request.body or None, allow_redirects=False, timeout=_timeout(way.timeouts)
        )
        async with sent as response:
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > self._reply_max:
                    return None
            fields: dict[str, str] = {}
            for name, value in response.headers.items():
                key = name.lower()
                fields[key] = f"{fields[key]}, {value}" if key in fields else value
            return WireReply(response.status, fields, bytes(body))


@lru_cache(maxsize=64)
def _timeout(times: Timeouts) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(sock_connect=min(times.connect, times.wire), sock_read=times.wire)


def _session() -> aiohttp.ClientSession:
    context = httpx.create_ssl_context(trust_env=False)
    connector = aiohttp.TCPConnector(limit=0, limit_per_host=0, ssl=context, keepalive_timeout=30.0)
    session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False)
    # aiohttp sends a GET again by itself when the connection breaks, uncounted; it has no public switch for that.
    session._retry_connection = False  # noqa: SLF001
    return session


def _too_long(reading: Reading) -> Reading:
    status = getattr(reading.outcome, "status", None)
    words = f"the provider asks to wait {reading.wait:.0f} s (status {status}), longer than a call waits; resume later"
    return Reading(Throttled(words, status, reading.wait))


def _unconnected(error: BaseException) -> bool:
    """Whether nothing was sent, because no connection was made."""
    return isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)


def _words(error: BaseException) -> str:
    """What happened, in our own words: library messages may hold addresses or content."""
    for kind, words in _WORDS:
        if isinstance(error, kind):
            return words
    return "the connection failed; resume when the server is reachable"


_WORDS: tuple[tuple[type[BaseException], str], ...] = (
    (aiohttp.ServerDisconnectedError, "the server closed the connection without a reply"),
    (aiohttp.ClientConnectorCertificateError, "the server's certificate is not trusted"),
    (aiohttp.ClientConnectorSSLError, "no TLS connection could be made; check that base_url's scheme is right"),
    (aiohttp.ClientConnectorError, "the server can't be reached; check base_url and that it runs"),
    (aiohttp.ConnectionTimeoutError, "connecting took longer than the connect timeout"),
    (aiohttp.SocketTimeoutError, "no reply came within the read timeout"),
    (aiohttp.ClientPayloadError, "the connection was closed in mid-reply"),
    (TimeoutError, "the connection timed out"),
)
