"""Web addresses that came from outside: which may be kept, and which are kept out. Pure.

The benchmark's own publications, the original's included, are always kept out: a subject's answers stand in them.
"""

import re
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

BENCHMARK_MARKS = ("deep20ray", "deep20bench", "deep-20-bench", "mindalyze-com")
"""An address that holds one of these is one of the benchmark's own publications."""
_LENGTH_MAX = 2000
_MARK = re.compile(r"[?&]utm_source=openai(?=$|#)")


def usable_address(value: object) -> str | None:
    """The value if it is an http(s) address with a host, printable, without spaces and at most 2,000 characters long; else None."""
    if not isinstance(value, str) or not 0 < len(value) <= _LENGTH_MAX or not value.isprintable() or " " in value:
        return None
    try:
        parts = urlsplit(value)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return None
    return value if known else None


def plain_address(value: object) -> object:
    """The value without the mark that OpenAI's search adds to a page's address; the page is the same."""
    return _MARK.sub("", value) if isinstance(value, str) else value


def excluded(url: str, domains: Iterable[str]) -> bool:
    """Whether an address is one of the benchmark's own, or under one of ``domains`` ("host" or "host/path", subdomains included).

    What is no address once its percent signs are read is excluded too.
    """
    lowered = unquote(url).lower()
    if any(mark in lowered for mark in BENCHMARK_MARKS):
        return True
    try:
        parts = urlsplit(lowered)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return True
    for domain in domains:
        name, _, path = domain.lower().partition("/")
        under = host == name or host.endswith("." + name)
        if under and (not path or (parts.path.strip("/") + "/").startswith(path.strip("/") + "/")):
            return True
    return False
