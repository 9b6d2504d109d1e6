"""Web addresses that came from outside: which may be kept, and which are kept out. Pure.

The benchmark's own publications, the original's included, are always kept out: a subject's answers stand in them. An address is
judged in every spelling that a client could read it as, so that a hostile spelling of an excluded one is excluded too.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator
from urllib.parse import unquote, urlsplit

import idna

BENCHMARK_MARKS = ("deep20ray", "deep20bench", "deep-20-bench", "mindalyze-com")
"""An address that holds one of these, however its words are joined, is one of the benchmark's own publications."""
_LENGTH_MAX = 2000
_ROUNDS = 4
"""Of percent-decoding: an address is encoded again for each redirect that carries it."""
_JOINTS = re.compile(r"[-_.+~\s]")
_EMBEDDED = re.compile(r"https?:/+")
_MARK = re.compile(r"[?&]utm_source=openai(?=$|#)")


def usable_address(value: object) -> str | None:
    """The value if it is an http(s) address with a host, printable and at most 2,000 characters long; else None.

    Spaces, backslashes and a user's name before the host, which clients read in different ways, make it none.
    """
    if not isinstance(value, str) or not 0 < len(value) <= _LENGTH_MAX or not value.isprintable() or " " in value or "\\" in value:
        return None
    try:
        parts = urlsplit(value)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return None
    return value if known else None


def plain_address(value: object) -> object:
    """The value without the mark that OpenAI's search adds to a page's address; the page is the same."""
    return _MARK.sub("", value) if isinstance(value, str) else value


def host_of(url: str) -> str | None:
    """The host of a usable address, in lower case and without a leading ``www.``; None of any other."""
    return (urlsplit(url).hostname or "").removeprefix("www.") if usable_address(url) else None


def excluded(url: str, domains: Iterable[str]) -> bool:
    """Whether an address is one of the benchmark's own, or under one of ``domains`` ("host" or "host/path", subdomains included).

    An address that carries such a one, as an archive's or a redirector's does, counts as that one. What is no address once its
    percent signs are read is excluded too. Never raises.
    """
    barred = [_domain(domain) for domain in domains]
    for spelling in _spellings(url):
        joined = _JOINTS.sub("", spelling)
        if any(_JOINTS.sub("", mark) in joined for mark in BENCHMARK_MARKS):
            return True
        places = list(_places(spelling))
        if None in places or any(_under(place, domain) for place in places if place is not None for domain in barred):
            return True
    return False


def _spellings(url: str) -> Iterator[str]:
    """The address in lower case as it stands, and percent-decoded again and again; with a slash for a backslash, as browsers read it."""
    for _ in range(_ROUNDS):
        folded = unicodedata.normalize("NFKC", url).lower()
        # Invisible and control characters are dropped by whoever follows the address.
        folded = "".join(each for each in folded if unicodedata.category(each) not in ("Cc", "Cf"))
        yield folded
        if "\\" in folded:
            yield folded.replace("\\", "/")
        decoded = unquote(url)
        if decoded == url:
            return
        url = decoded


def _places(spelling: str) -> Iterator[tuple[str, str] | None]:
    """Host and path of the address, None if it is no address, then of every address that it carries."""
    for start in [0, *(match.start() for match in _EMBEDDED.finditer(spelling) if match.start())]:
        tail = _EMBEDDED.sub(lambda match: match[0].rstrip("/") + "//", spelling[start:], count=1)
        try:
            parts = urlsplit(tail)
            yield _ascii(parts.hostname or ""), _path(parts.path.split(";")[0])
        except ValueError:
            if start == 0:
                yield None


def _under(place: tuple[str, str], domain: tuple[str, str]) -> bool:
    (host, path), (name, start) = place, domain
    return bool(name) and (host == name or host.endswith("." + name)) and (start == "/" or (path + "/").startswith(start + "/"))


def _domain(text: str) -> tuple[str, str]:
    """Host and path of a domain as a sweep file says it."""
    name, _, path = text.strip().lower().split("://", 1)[-1].partition("/")
    return _ascii(name.removeprefix("*.").strip(".")), _path(path)


def _path(text: str) -> str:
    return posixpath.normpath("/" + text.strip("/"))


def _ascii(host: str) -> str:
    """The host as it goes on the wire: a name in any script has one ASCII form."""
    host = host.rstrip(".")
    if host.isascii():
        return host
    try:
        return idna.encode(host, uts46=True).decode()
    except UnicodeError:
        return host
