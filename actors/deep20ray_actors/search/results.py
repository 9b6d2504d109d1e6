"""What every search back-end's results go through: which may come back, how much text of them, how many. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from deep20ray_actors.addresses import excluded, usable_address
from deep20ray_actors.config import SearchConfig
from deep20ray_actors.messages import ResultItem
from deep20ray_actors.outcomes import Usage
from deep20ray_actors.providers.jsontext import storable
from deep20ray_actors.providers.wire import USER_AGENT

HEADERS = {"accept": "application/json", "accept-encoding": "identity", "user-agent": USER_AGENT}
"""Of every search request."""
ONE_SEARCH = Usage(0, 0, 0, 0, 0, 0, searches=1)
"""The usage of a search that worked."""
QUERY_MAX = 400
"""Characters of a query that the hosted back-ends take."""
_TITLE_MAX = 300


@dataclass(frozen=True, slots=True)
class Row:
    """One result as a back-end gave it: whatever stood where the three belong."""

    url: Any
    title: Any
    text: Any


def kept(rows: Iterable[Row], config: SearchConfig) -> tuple[ResultItem, ...]:
    """The results that are kept, numbered from 1: each address once, ``config.max_results`` at most, their texts cut."""
    found: dict[str, ResultItem] = {}
    for row in rows:
        url = usable_address(row.url)
        if url is None or url in found or excluded(url, config.excluded_domains):
            continue
        title, text = _text(row.title, _TITLE_MAX), _text(row.text, config.max_text)
        found[url] = ResultItem(number=len(found) + 1, url=url, title=title, text=text)
        if len(found) == config.max_results:
            break
    return tuple(found.values())


def shortened(query: str) -> str:
    """The query as a hosted back-end takes it: its first 50 words, 400 characters at most."""
    return " ".join(query.split()[:50])[:QUERY_MAX].rstrip()


def _text(value: object, limit: int) -> str:
    return storable(value)[:limit] if isinstance(value, str) else ""
