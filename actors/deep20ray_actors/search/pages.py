"""Pages fetched for the Oracle: each address on its own, so that a bad page is one problem and never the call's.

Every address on the way, the first and each redirect, is judged before anything is sent to it: where it leads (``policy``,
``dialling``) and whether it is excluded. What is sent tells no two runs apart: a constant user agent, no cookies, no referrer.
"""

import asyncio
import os
import ssl
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import aiohttp
import httpx
from yarl import URL

from deep20ray_actors.addresses import excluded
from deep20ray_actors.config import FetchConfig
from deep20ray_actors.outcomes import EXCLUDED, Page
from deep20ray_actors.search.dialling import AddressRefused, Resolve, session, system_resolver
from deep20ray_actors.search.policy import parse, refusal
from deep20ray_actors.search.readers import ReaderEnded, Readers

_KINDS = ("text/html", "application/xhtml+xml", "text/plain")
_HEADERS = {"accept": ",".join(_KINDS), "accept-encoding": "gzip"}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_LOOKUPS = 16
READERS = max(2, min(4, (os.cpu_count() or 1) // 2))
"""Reading processes of one fetcher, at most; each may take a gigabyte of memory under attack, and a tenth of that otherwise."""


class _Problem(Exception):
    """A page that can't be had, with the words for it."""

    def __init__(self, words: str, at: URL | None = None) -> None:
        super().__init__(words)
        self.words = words
        self.at = at


@dataclass(frozen=True, slots=True)
class _Loaded:
    url: URL
    kind: str
    charset: str | None
    body: bytes = field(repr=False)


class PageFetcher:
    """Fetches pages and reads their text. Make it anywhere, use it in one event loop, close it there."""

    def __init__(self, *, readers: int = READERS, resolve: Resolve | None = None, context: ssl.SSLContext | None = None) -> None:
        """How it fetches.

        Args:
            readers: processes that read text, at most.
            resolve: how names become IP addresses; by default the machine's way.
            context: whom TLS trusts; by default the client library's own certificates.
        """
        self._lookups = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="lookup")
        self._resolve = resolve or system_resolver(self._lookups)
        self._readers = Readers(readers)
        self._context = context

    async def fetch(self, urls: Sequence[str], config: FetchConfig) -> tuple[Page, ...]:
        """A page for each address, in their order; fetched all at once, within twice ``config.seconds`` in all."""
        if self._context is None:
            self._context = httpx.create_ssl_context(trust_env=False)
        async with session(self._resolve, self._context, loopback=config.allow_loopback) as client:
            results = await asyncio.gather(*(self._page(client, url, config) for url in urls), return_exceptions=True)
        return tuple(_as_page(url, result) for url, result in zip(urls, results, strict=True))

    def close(self) -> None:
        """Ends the reading processes."""
        self._readers.close()
        self._lookups.shutdown(wait=False, cancel_futures=True)

    async def _page(self, client: aiohttp.ClientSession, url: str, config: FetchConfig) -> Page:
        loop, last = asyncio.get_running_loop(), None
        try:
            async with asyncio.timeout(config.seconds) as timer:
                loaded = await _load(client, url, config)
                last = loaded.url
                left = max(0.0, (timer.when() or 0.0) - loop.time())
                # Waiting for other pages to be read is not this page's time, but has an end too.
                timer.reschedule(loop.time() + config.seconds)
                async with self._readers.one() as reader:
                    timer.reschedule(loop.time() + left)
                    text = await reader.read(loaded.body, loaded.kind, loaded.charset, config.max_text)
        except _Problem as problem:
            return Page(url, None if problem.at is None else str(problem.at), "", problem.words)
        except ReaderEnded:
            return Page(url, None if last is None else str(last), "", "its text could not be read with the time and memory allowed")
        except TimeoutError:
            return Page(url, None if last is None else str(last), "", f"it took longer than {config.seconds:g} s")
        return Page(url, str(loaded.url), text, None if text else "it holds no readable text")


async def _load(client: aiohttp.ClientSession, url: str, config: FetchConfig) -> _Loaded:
    """The page's bytes, its redirects followed.

    Raises:
        _Problem: with the last address that was judged fit, or the excluded one.
    """
    if excluded(url, config.excluded_domains):
        raise _Problem(EXCLUDED, parse(url))
    here = _judged(parse(url), None, config)
    for _ in range(config.redirects + 1):
        try:
            async with client.get(here, headers={**_HEADERS, "user-agent": config.user_agent}, allow_redirects=False) as response:
                if response.status not in _REDIRECTS:
                    return await _received(response, here, config)
                target = _target(here, response.headers.get("location"))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _Problem(_words(error), here) from None
        here = _judged(target, here, config)
    raise _Problem(f"it redirects more than {config.redirects} times", here)


def _target(here: URL, location: str | None) -> URL | None:
    """Where a redirect leads; None if to no http(s) address."""
    if location is None:
        return None
    try:
        return parse(str(here.join(URL(location.strip()))))
    except ValueError:
        return None


def _judged(url: URL | None, before: URL | None, config: FetchConfig) -> URL:
    """The address, if it may be fetched from."""
    if url is None:
        raise _Problem("its address is not an http(s) address" if before is None else "it redirects to what is no http(s) address", before)
    if excluded(str(url), config.excluded_domains):
        raise _Problem(EXCLUDED, url)
    why = refusal(url, loopback=config.allow_loopback)
    if why is not None:
        raise _Problem(why if before is None else f"it redirects to an address that is not fetched from: {why}", before)
    return url


async def _received(response: aiohttp.ClientResponse, url: URL, config: FetchConfig) -> _Loaded:
    if response.status != 200:
        raise _Problem(f"its server answers with status {response.status}", url)
    if response.content_type not in _KINDS:
        raise _Problem("it is neither HTML nor plain text", url)
    body = _Body(response.headers.get("content-encoding", "identity").strip().lower(), config.max_bytes, url)
    if (response.content_length or 0) > config.max_bytes:
        raise _Problem(f"it is longer than {config.max_bytes} bytes", url)
    async for chunk in response.content.iter_any():
        body.add(chunk)
    return _Loaded(url, response.content_type, response.charset, body.whole())


class _Body:
    """Collects a body that may be compressed, and never holds more of it than it may be long."""

    def __init__(self, encoding: str, limit: int, url: URL) -> None:
        if encoding not in ("identity", "", "gzip", "x-gzip", "deflate"):
            raise _Problem("it is compressed in a way that was not asked for", url)
        self._inflate = None if encoding in ("identity", "") else zlib.decompressobj(zlib.MAX_WBITS | 32)
        self._limit = limit
        self._url = url
        self._sent = 0
        self._bytes = bytearray()

    def add(self, chunk: bytes) -> None:
        """The next bytes as they came."""
        self._sent += len(chunk)
        if self._inflate is not None:
            try:
                # One byte more than may be tells a body that is too long from one that just fits.
                chunk = self._inflate.decompress(chunk, self._limit - len(self._bytes) + 1)
            except zlib.error:
                raise _Problem("its compression is broken", self._url) from None
        self._bytes += chunk
        if max(self._sent, len(self._bytes)) > self._limit:
            raise _Problem(f"it is longer than {self._limit} bytes", self._url)

    def whole(self) -> bytes:
        """All of it."""
        if self._inflate is not None and not self._inflate.eof:
            raise _Problem("its compression is broken", self._url)
        return bytes(self._bytes)


def _as_page(url: str, result: Page | BaseException) -> Page:
    """What a page's task came to. One that broke is that page's problem; a cancelled one is the whole call's."""
    if isinstance(result, Page):
        return result
    if isinstance(result, Exception):
        return Page(url, None, "", f"internal error: {type(result).__name__}")
    raise result


def _words(error: Exception) -> str:
    """What happened, in our own words: a library's may hold anything."""
    if isinstance(error, AddressRefused) or isinstance(getattr(error, "os_error", None), AddressRefused):
        return "its host is not on the public internet"
    for kind, words in _WORDS:
        if isinstance(error, kind):
            return words
    return "the connection failed"


_WORDS: tuple[tuple[type[Exception], str], ...] = (
    (aiohttp.ClientConnectorDNSError, "its host's name can't be resolved"),
    (aiohttp.ClientConnectorCertificateError, "its server's certificate is not trusted"),
    (aiohttp.ClientConnectorSSLError, "no TLS connection could be made"),
    (aiohttp.ClientConnectorError, "its server can't be reached"),
    (aiohttp.ClientPayloadError, "the connection was closed in mid-page"),
    (aiohttp.ServerDisconnectedError, "its server closed the connection without a reply"),
    (aiohttp.InvalidURL, "its address is not an http(s) address"),
    (aiohttp.ClientResponseError, "its server's reply is not HTTP"),
    # A name that can't be a host's, such as one with an empty label.
    (UnicodeError, "its host's name can't be resolved"),
    (ValueError, "its server's reply is not HTTP"),
)
