"""Connections that go only where they may: a name is resolved once, every address of it is judged, and those very addresses are
connected to, so that a second resolution can't lead elsewhere.

Nothing of the environment: no proxy, no certificate store but the client library's own; no cookies, no connection is used twice.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from deep20ray_actors.search.policy import reachable

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""A host's IP addresses. Raises OSError where there are none."""


class AddressRefused(OSError):
    """The name resolved to an address that may not be connected to."""


def system_resolver(threads: Executor) -> Resolve:
    """The machine's own resolver, in threads of its own: a lookup that hangs must not hold up the process's other work."""

    async def resolve(host: str) -> Sequence[str]:
        lookup = partial(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
        infos = await asyncio.get_running_loop().run_in_executor(threads, lookup)
        return list(dict.fromkeys(str(info[4][0]) for info in infos))

    return resolve


def session(resolve: Resolve, context: ssl.SSLContext, *, loopback: bool) -> aiohttp.ClientSession:
    """A client for one call's pages. Bodies come as they were sent, compressed or not."""
    connector = aiohttp.TCPConnector(
        limit=0,
        ssl=context,
        force_close=True,
        use_dns_cache=False,
        resolver=_Judging(resolve, loopback),
        socket_factory=partial(_socket, loopback),
    )
    client = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None),
    )
    # aiohttp sends a GET again by itself when the connection breaks; it has no public switch for that.
    client._retry_connection = False  # noqa: SLF001
    return client


class _Judging(AbstractResolver):
    """Every address of a name must be allowed: one private address among public ones is an attack, or as good as one."""

    def __init__(self, resolve: Resolve, loopback: bool) -> None:
        self._resolve = resolve
        self._loopback = loopback

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
        """The name's addresses, judged."""
        addresses = await self._resolve(host)
        if not addresses:
            raise OSError("no addresses")
        if not all(reachable(address, port, loopback=self._loopback) for address in addresses):
            raise AddressRefused("not on the public internet")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in addresses
            if family in (socket.AF_UNSPEC, socket.AF_INET6 if ":" in address else socket.AF_INET)
        ]

    async def close(self) -> None:
        """Holds nothing."""


def _socket(loopback: bool, info: tuple[Any, ...]) -> socket.socket:
    """A socket for one connection. The last word: what is judged here is the address itself, however the client came by it."""
    family, kind, proto, _, target = info
    if not reachable(str(target[0]), int(target[1]), loopback=loopback):
        raise AddressRefused("not on the public internet")
    return socket.socket(family, kind, proto)
