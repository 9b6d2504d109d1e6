"""What a provider's own search returned, gathered into sources. Pure; knows no protocol.

Addresses come from outside and pass the same checks as a search's results. Nothing but what the search tool itself gave becomes a
source's text: a model's own words never do.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import quote

from deep20ray_actors.addresses import excluded, plain_address, usable_address
from deep20ray_actors.config import NativeSearch
from deep20ray_actors.outcomes import Browsed, Source
from deep20ray_actors.providers.jsontext import storable

SOURCES_MAX = 100
"""Sources of one reply that are kept."""
TITLE_MAX = 300
_BETWEEN = "\n...\n"
"""Between passages, so that no excerpt runs on from one into the next."""
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)+\.?")


@dataclass(slots=True)
class _Found:
    title: str = ""
    passages: dict[str, None] = field(default_factory=dict)
    whole: bool = False


@dataclass(slots=True)
class Gathered:
    """The sources of one reply as they are met, each address once."""

    native: NativeSearch
    barred: bool = False
    _found: dict[str, _Found] = field(default_factory=dict)

    def add(self, url: object, title: object = None, text: object = None, *, whole: bool = False) -> None:
        """One mention of a page. What is no usable address is no source; an excluded one is none either and sets ``barred``.

        Args:
            url: the page's address.
            title: its title.
            text: what the tool gave of it here, if anything.
            whole: whether that is the page's text, rather than a passage.
        """
        address = usable_address(plain_address(url))
        if address is None:
            return
        if excluded(address, self.native.excluded_domains):
            self.barred = True
            return
        if address not in self._found and len(self._found) == SOURCES_MAX:
            return
        found = self._found.setdefault(address, _Found())
        if isinstance(title, str) and not found.title:
            found.title = storable(title)[:TITLE_MAX]
        if isinstance(text, str) and text.strip():
            found.passages[storable(text)] = None
            found.whole |= whole

    def named(self, names: Iterable[object]) -> bool:
        """Whether any name that stands for a page, a host or a title, is an excluded one; sets ``barred`` then.

        For pages whose address is a redirect of the provider's. An exclusion of a part of a host can't be told from a host's name.
        """
        for name in names:
            if not isinstance(name, str):
                continue
            shown = name[:TITLE_MAX].strip()
            host = _HOST.fullmatch(shown)
            standing = [f"https://title.invalid/{quote(storable(shown), safe='')}", *([f"https://{host.group()}/"] if host else [])]
            if any(excluded(address, self.native.excluded_domains) for address in standing):
                self.barred = True
                return True
        return False

    def browsed(self, searches: int) -> Browsed:
        """All of it; ``searches`` are those that worked."""
        sources = [
            Source(url, found.title, _BETWEEN.join(found.passages)[: self.native.max_text], found.whole)
            for url, found in self._found.items()
        ]
        return Browsed(searches, tuple(sources), self.barred)
