"""Model and web text made safe to show: every character that a reader could not see is shown as its code point.

Nothing here trusts its input: model replies, names and addresses are data. Text is never parsed as markup and never shortened in
silence. Addresses become links only if they are plain http(s) addresses whose whole text a reader can check.
"""

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import urlsplit

from markupsafe import Markup, escape

_MARKS_PER_BASE = 3
"""Combining marks beyond these are shown as code points, so that a pile of them can't cover its neighbours."""

# Printable by category, invisible in fact: fillers, the combining grapheme joiner, variation selectors, the blank Braille cell.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MARK_CATEGORIES = frozenset({"Mn", "Me"})

_URL = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+(?:[/?#][A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]*)?", re.IGNORECASE)
_URL_LIMIT = 2048


def visible(text: str) -> Markup:
    """Escaped text for an HTML body, with hidden characters as boxed code points. Line breaks and tabs stay."""
    if text.isascii() and text.isprintable():
        return escape(text)
    return Markup("").join(
        Markup('<span class="cp">U+{:04X}</span>').format(ord(part)) if hidden else escape(part) for part, hidden in _split(text)
    )


def visible_plain(text: str) -> str:
    """The same as plain text, for titles, attributes and CSV: ``[U+202E]``. Not escaped."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"[U+{ord(part):04X}]" if hidden else part for part, hidden in _split(text))


def _split(text: str) -> list[tuple[str, bool]]:
    """Runs of shown text and single hidden characters, in order."""
    if text.replace("\n", "").replace("\t", "").isprintable() and text.isascii():
        return [(text, False)]
    parts: list[tuple[str, bool]] = []
    start = marks = 0
    for index, char in enumerate(text):
        category = unicodedata.category(char)
        marks = marks + 1 if category in _MARK_CATEGORIES else 0
        if char in "\n\t" or not (category in _HIDDEN_CATEGORIES or marks > _MARKS_PER_BASE or _BLANK.match(char)):
            continue
        if start < index:
            parts.append((text[start:index], False))
        parts.append((char, True))
        start = index + 1
    if start < len(text):
        parts.append((text[start:], False))
    return parts


@dataclass(frozen=True, slots=True)
class Link:
    """An address as shown. ``href`` is None where it must not be followed."""

    text: str
    href: str | None
    host: str | None


def link(url: str) -> Link:
    """Decides whether an address may be a link: http(s), plain ASCII of RFC 3986, a host, no user name, 2,048 characters at most."""
    if len(url) > _URL_LIMIT or not _URL.fullmatch(url):
        return Link(url, None, None)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return Link(url, None, None)
    if not host or "@" in parts.netloc:
        return Link(url, None, None)
    return Link(url, url, host)


_SLUG = re.compile(r"[a-z0-9][a-z0-9.-]{0,99}")
_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{name}{number}" for name in ("com", "lpt") for number in range(1, 10))})


def slug(signed_id: str) -> str | None:
    """The path segment of a signed id, or None where it has none: lower case, letters, digits, dots, hyphens."""
    text = signed_id.lower()
    if not _SLUG.fullmatch(text) or text.split(".")[0] in _RESERVED or text.endswith("."):
        return None
    return text


_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How a formula begins, in half and full width."""


def spreadsheet_text(text: str) -> str:
    """Free text for a CSV cell: hidden characters shown, and nothing that a spreadsheet would run as a formula."""
    shown = visible_plain(text)
    return "'" + shown if shown[:1] in ("\t", "\n") or shown.lstrip()[:1] in _FORMULA else shown
