"""Checks a built site as a stranger would: only what stands in its folder counts. It reads and changes nothing.

Every file is the one that the manifest names; every link and fragment leads somewhere within the site; ids are unique; tags are closed;
nothing is inline or from elsewhere; pages keep their budgets; texts that must not be published are in no byte.
"""

import json
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from deep20ray.canonical import sha256
from deep20ray_publisher.errors import InputMissing
from deep20ray_publisher.render import CSP
from deep20ray_publisher.tree import MANIFEST

EPISODE_BYTES = 60 * 1024
BOARD_BYTES = 150 * 1024
_VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr", "path", "circle"})


class _Page(HTMLParser):
    """What is asked of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: list[str] = []
        self.links: list[str] = []
        self.faults: list[str] = []
        self.policy = False
        self._open: list[str] = []
        self.feed(text)
        self.close()
        if self._open:
            self.faults.append(f"<{self._open[-1]}> isn't closed")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if len(values) < len(attrs):
            self.faults.append(f"<{tag}> has an attribute twice")
        if tag not in _VOID:
            self._open.append(tag)
        for name, value in attrs:
            if name == "style" or name.startswith("on"):
                self.faults.append(f"<{tag}> has the inline attribute {name}")
            elif name == "id":
                self.ids.append(value or "")
            elif name in ("href", "src"):
                self.links.append(value or "")
                if (name == "src" or (tag == "link" and values.get("rel") != "canonical")) and urlsplit(value or "").netloc:
                    self.faults.append(f"<{tag}> loads something from elsewhere")
        if tag in ("style", "iframe", "object", "embed", "form") or (tag == "script" and not values.get("src")):
            self.faults.append(f"<{tag}> doesn't belong on a page")
        self.policy |= tag == "meta" and values.get("content") == CSP

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")
            self._open = []


def check_site(root: Path, forbidden: Sequence[str] = ()) -> Iterator[str]:
    """One line per fault.

    Args:
        forbidden: texts that must be in no file, such as canaries that were planted where private things are.

    Raises:
        InputMissing: a folder without a site's manifest.
    """
    files = _manifest(root)
    yield from _check_files(root, files)
    pages: dict[str, _Page] = {}
    for path in sorted(files):
        if not (root / path).is_file():
            continue
        data = (root / path).read_bytes()
        for text in forbidden:
            if text.encode() in data:
                yield f"{path}: it holds a forbidden text"
        if path.endswith(".html"):
            yield from _check_budget(path, len(data))
            pages[path] = _Page(data.decode())
    for path, page in pages.items():
        yield from _check_page(path, page, pages, files)


def _manifest(root: Path) -> dict[str, str]:
    try:
        manifest: Any = json.loads((root / MANIFEST).read_bytes())
        return {str(path): str(digest) for path, digest in manifest["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputMissing(f"{root} holds no {MANIFEST}; give the folder of a built site") from None


def _check_files(root: Path, files: dict[str, str]) -> Iterator[str]:
    there = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()} - {MANIFEST}
    yield from (f"{path}: it isn't in the manifest" for path in sorted(there - files.keys()))
    for path, digest in sorted(files.items()):
        if path not in there:
            yield f"{path}: it is missing"
        elif sha256((root / path).read_bytes()) != digest:
            yield f"{path}: it isn't the file that was built"


def _check_budget(path: str, size: int) -> Iterator[str]:
    parts = path.split("/")
    board = len(parts) == 3 and parts[2] == "index.html"
    episode = len(parts) == 5 and parts[2] == "runs" and parts[4] not in ("index.html", "provenance.html")
    limit = BOARD_BYTES if board else EPISODE_BYTES if episode else None
    if limit is not None and size > limit:
        yield f"{path}: {size:,} bytes, over its budget of {limit:,}"


def _check_page(path: str, page: _Page, pages: dict[str, _Page], files: dict[str, str]) -> Iterator[str]:
    yield from (f"{path}: {fault}" for fault in page.faults)
    if not page.policy:
        yield f"{path}: it has not the site's content security policy"
    if len(page.ids) != len(set(page.ids)):
        yield f"{path}: an id stands twice"
    for target in page.links:
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            continue
        found = _resolve(path, unquote(parts.path))
        if found not in files:
            yield f"{path}: a link leads to {target}, which isn't there"
        elif parts.fragment and parts.fragment not in (pages[found].ids if found in pages else ()):
            yield f"{path}: a link leads to {target}, which has no such place"


def _resolve(page: str, target: str) -> str:
    if not target:
        return page
    parts = page.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            parts = parts[:-1] if parts else [".."]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
