"""Web addresses that came from outside: which may be kept, and which are kept out. Pure.

The benchmark's own publications, the original's included, are always kept out: a subject's answers stand in them. An address is
judged in every spelling that a client could read it as, so that a hostile spelling of an excluded one is excluded too. The time it
takes to judge one grows with its length, not faster.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from urllib.parse import unquote, urlsplit

import idna

BENCHMARK_MARKS = ("deep20ray", "deep20bench", "deep-20-bench", "mindalyze-com")
"""An address that holds one of these, however its words are joined, is one of the benchmark's own publications."""
_LENGTH_MAX = 2000
_ROUNDS = 4
"""Of percent-decoding: an address is encoded again for each redirect that carries it."""
_JOINTS = re.compile(r"[-_.+~\s]")
_EMBEDDED = re.compile(r"https?:/+")
_EMBEDDED_WHOLE = 8
"""So many embedded addresses are read to the end of what carries them, later ones to the next."""
_HOST_MAX = 253
_PATH_END = re.compile(r"[?&#;]")
_DASHED_HOSTS = ("translate.goog", "translated.turbopages.org", "cdn.ampproject.org")
"""Their leading label is the host of the page that they carry: a dash for each dot, two for each dash."""
_MARK = re.compile(r"[?&]utm_source=openai(?=$|#)")


def usable_address(value: object) -> str | None:
    """The value if it is an http(s) address with a host, printable and at most 2,000 characters long; else None.

    Spaces, backslashes, a percent sign in the host and a user's name before it, which clients read in different ways, make it none.
    """
    if not isinstance(value, str) or not 0 < len(value) <= _LENGTH_MAX or not value.isprintable() or " " in value or "\\" in value:
        return None
    try:
        parts = urlsplit(value)
        # Some clients fold look-alike characters before they read it.
        hosts = [parts.hostname, urlsplit(unicodedata.normalize("NFKC", value)).hostname]
    except ValueError:
        return None
    return value if parts.scheme in ("http", "https") and all(hosts) and not re.search("[@%]", parts.netloc) else None


def plain_address(value: object) -> object:
    """The value without the mark that OpenAI's search adds to a page's address; the page is the same."""
    return _MARK.sub("", value) if isinstance(value, str) else value


def host_of(url: str) -> str | None:
    """The host of a usable address, in lower case and without a leading ``www.``; None of any other."""
    return (urlsplit(url).hostname or "").removeprefix("www.") if usable_address(url) else None


def excluded(url: str, domains: Iterable[str]) -> bool:
    """Whether an address is one of the benchmark's own, or under one of ``domains`` ("host" or "host/path", subdomains included).

    An address that carries such a one, as an archive's, a redirector's or a translator's does, counts as that one, whether it names
    the scheme of what it carries or not. A leading "www." of a domain doesn't count. Never raises.
    """
    barred = _barred(tuple(domains))
    for spelling in _spellings(url):
        joined = _JOINTS.sub("", spelling)
        if any(_JOINTS.sub("", mark) in joined for mark in BENCHMARK_MARKS):
            return True
        places = chain(_places(spelling), _bare(spelling, barred.named))
        if any(_under(place, domain) for place in places for domain in barred.domains):
            return True
    return False


@dataclass(frozen=True, slots=True)
class _Barred:
    domains: tuple[tuple[str, str], ...]
    """Host and path of each."""
    named: re.Pattern[str] | None
    """One of their hosts where an address could name it without a scheme."""


@lru_cache(maxsize=64)
def _barred(domains: tuple[str, ...]) -> _Barred:
    pairs = tuple(pair for pair in map(_domain, domains) if pair[0])
    names = {spelling for host, _ in pairs for spelling in (host, _unicode(host))}
    either = "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))
    # Within a word it is another name, and before a dot a part of one.
    return _Barred(pairs, re.compile(rf"(?:^|(?<=[/=.:]))({either})\.?(?::[0-9]+)?(?=[/?&#:]|\Z)") if names else None)


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


def _places(spelling: str) -> Iterator[tuple[str, str]]:
    """Host and path of the address, then of every address that it carries, scheme and all."""
    starts = [0, *(match.start() for match in _EMBEDDED.finditer(spelling) if match.start())]
    for number, (start, end) in enumerate(pairwise([*starts, len(spelling)])):
        carried = spelling[start:] if number < _EMBEDDED_WHOLE else spelling[start:end]
        try:
            parts = urlsplit(_EMBEDDED.sub(lambda match: match[0].rstrip("/") + "//", carried, count=1))
            host, path = _ascii(parts.hostname or ""), _path(parts.path.split(";")[0])
        except ValueError:
            continue
        yield host, path
        label, _, rest = host.partition(".")
        if rest in _DASHED_HOSTS:
            yield "-".join(part.replace("-", ".") for part in label.split("--")), path


def _bare(spelling: str, named: re.Pattern[str] | None) -> Iterator[tuple[str, str]]:
    """Host and path of what the address names without a scheme, each up to the next."""
    found = [] if named is None else list(named.finditer(spelling))
    for match, end in zip(found, [*(match.start() for match in found[1:]), len(spelling)], strict=False):
        yield _ascii(match[1]), _path(_PATH_END.split(spelling[match.end() : end], maxsplit=1)[0])


def _under(place: tuple[str, str], domain: tuple[str, str]) -> bool:
    (host, path), (name, start) = place, domain
    return (host == name or host.endswith("." + name)) and (start == "/" or (path + "/").startswith(start + "/"))


def _domain(text: str) -> tuple[str, str]:
    """Host and path of a domain as a sweep file says it."""
    name, _, path = text.strip().lower().split("://", 1)[-1].partition("/")
    name = name.removeprefix("*.").strip(".")
    bare = name.removeprefix("www.")
    return _ascii(bare if "." in bare else name), _path(path)


def _path(text: str) -> str:
    return posixpath.normpath("/" + text.strip("/"))


def _ascii(host: str) -> str:
    """The host as it goes on the wire: a name in any script has one ASCII form."""
    host = host.rstrip(".")
    if host.isascii() or len(host) > _HOST_MAX:
        return host
    try:
        return idna.encode(host, uts46=True).decode()
    except UnicodeError:
        return host


def _unicode(host: str) -> str:
    """The host as people write it."""
    try:
        return idna.decode(host)
    except UnicodeError:
        return host
