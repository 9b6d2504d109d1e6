"""Which addresses pages may be fetched from. Pure: it resolves nothing; whoever connects asks again about what a name resolved to.

Only http and https, only the public internet, no user's name in the address, no spelling of a host that clients read differently.
"""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from yarl import URL

from deep20ray_actors.addresses import usable_address

_PORTS = frozenset({80, 443})
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
# Names kept for special use, but for "example", which leads nowhere, and those that networks use within. What a name resolves to is
# judged besides.
_PRIVATE_ENDS = frozenset(
    {
        *("localhost", "local", "internal", "test", "invalid", "arpa", "onion", "alt"),
        *("intranet", "private", "localdomain", "lan", "home", "corp", "mail", "cluster", "svc", "consul"),
    }
)
_GLOBAL_V6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
# What the standard library, in one version or another, takes for global although it leads elsewhere: protocol assignments, relays
# and tunnels to an IPv4 address of the sender's choice, sinks for what should not have been asked, documentation; and the one public
# address at which a cloud's own host serves its guests.
_SPECIAL_V4 = tuple(
    IPv4Network(text)
    for text in ("192.0.0.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.175.48.0/24", "168.63.129.16/32")
)
_SPECIAL_V6 = tuple(IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"))


def refusal(url: URL | str, *, loopback: bool = False) -> str | None:
    """Why an address isn't fetched from, in a few words; None if it may be, as far as the address itself says.

    Args:
        url: the address; as text, an http(s) address of 2,000 characters at most.
        loopback: whether this machine's own addresses may be fetched from, on any port.
    """
    parsed = parse(url) if isinstance(url, str) else url
    if parsed is None or parsed.scheme not in ("http", "https") or not parsed.raw_host:
        return "its address is not an http(s) address"
    port = parsed.port or 0
    if parsed.raw_user is not None or "@" in parsed.raw_authority:
        return "its address holds a user's name"
    literal = _literal(parsed.raw_host)
    if literal is None and not _named(parsed.raw_host, loopback):
        return "its address has no public host name"
    if literal is not None and not reachable(literal, port, loopback=loopback):
        return "its address is not on the public internet"
    # With loopback, a name's port is judged again once it is resolved.
    if port not in _PORTS and not loopback:
        return "its address has a port other than 80 and 443"
    return None


def parse(text: str) -> URL | None:
    """The address as the client will read it; None if it is none."""
    if usable_address(text) is None:
        return None
    try:
        return URL(text)
    except ValueError:
        return None


def reachable(address: str, port: int, *, loopback: bool = False) -> bool:
    """Whether a connection may go to this IP address and port."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if loopback and found.is_loopback:
        return True
    return port in _PORTS and public(found)


def public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an IP address is one of the public internet. One that wraps an IPv4 address for NAT64 is judged by that."""
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        if address in _NAT64:
            return public(IPv4Address(int(address) & 0xFFFFFFFF))
        return address in _GLOBAL_V6 and address.is_global and not any(address in network for network in _SPECIAL_V6)
    if address.is_multicast or address.is_reserved or address.is_unspecified or any(address in network for network in _SPECIAL_V4):
        return False
    return address.is_global


def _literal(host: str) -> str | None:
    """The host if it is an IP address in its one canonical spelling."""
    try:
        found = ip_address(host)
    except ValueError:
        return None
    return host if str(found) == host else None


def _named(host: str, loopback: bool) -> bool:
    """Whether it can be a public host's name: not one label, and not one that any client takes for a number."""
    labels = host.removesuffix(".").split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels) or _NUMBER.fullmatch(labels[-1]):
        return False
    return loopback or (len(labels) > 1 and labels[-1] not in _PRIVATE_ENDS)
