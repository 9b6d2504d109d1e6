"""What all settings of a sweep file share, and those of its search. It opens no file and reads no environment."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict, StrictBool, field_validator, model_validator

_SLUG = r"^[a-z0-9][a-z0-9-]{0,63}$"
Slug = Annotated[str, Field(pattern=_SLUG)]
ShortText = Annotated[str, Field(min_length=1, max_length=200)]
Domain = Annotated[str, Field(pattern=r"^[A-Za-z0-9.-]+(/[^\s]*)?$", max_length=200)]
"""``host`` or ``host/path``."""
Usd = Annotated[float, Strict(), Field(ge=0, le=100_000)]
MaxCost = Annotated[float, Strict(), Field(gt=0, le=10_000_000)]
"""US dollars."""
CREDENTIAL = r"^(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$"


class Settings(BaseModel):
    """Frozen and closed; errors don't show what was put in."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


_URL = re.compile(r"^https?://[A-Za-z0-9.\[\]:_-]+(/[A-Za-z0-9._~/-]*)?$")


def base_url_of(value: str) -> str:
    """The address without a final slash; raises ValueError for one that can't be a base."""
    if not _URL.fullmatch(value):
        raise ValueError("base_url must be http(s)://host[:port]/path, without user, query or fragment")
    return value.rstrip("/")


class Search(Settings):
    """``[search]``: where the Oracle searches, and what it reads."""

    kind: Literal["searxng", "brave", "tavily", "native", "simulator"]
    base_url: str | None = None
    api_key: Annotated[str, Field(pattern=CREDENTIAL)] | None = None
    query_target: Annotated[int, Strict(), Field(ge=0, le=10)] = 2
    """Queries that the Oracle's model is asked to write for a question, about; 0 for the program's own one."""
    max_queries: Annotated[int, Strict(), Field(ge=1, le=10)] = 4
    """The ceiling that no question passes."""
    fetch_pages: Annotated[int, Strict(), Field(ge=0, le=10)] = 3
    """Pages that are fetched and read for a question."""
    page_chars: Annotated[int, Strict(), Field(ge=200, le=50_000)] = 4000
    page_seconds: Annotated[float, Strict(), Field(gt=0, le=300)] = 20
    user_agent: Annotated[str, Field(pattern=r"^[!-~][ -~]{0,199}$")] = "deep20ray"
    """As the sites of fetched pages see it; some want to be told whom to write to."""
    max_results: Annotated[int, Strict(), Field(ge=1, le=10)] = 5
    excluded_domains: tuple[Domain, ...] = ()
    """Besides the benchmark's own publications, which are always left out."""
    max_concurrency: Annotated[int, Strict(), Field(ge=1, le=10_000)] = 32
    requests_per_minute: Annotated[int, Strict(), Field(ge=1)] | None = None
    attempts: Annotated[int, Strict(), Field(ge=1, le=20)] = 4
    try_seconds: Annotated[float, Strict(), Field(gt=0, le=600)] = 30
    usd_per_thousand: Annotated[float, Strict(), Field(ge=0, le=100_000)] | None = None
    """What a thousand searches cost."""
    allow_loopback: StrictBool = False
    """For tests: pages may be fetched from this machine."""

    @model_validator(mode="before")
    @classmethod
    def _defaulted(cls, values: Any) -> Any:
        """The simulator writes no queries and has no pages."""
        if isinstance(values, dict) and values.get("kind") == "simulator":
            return {"query_target": 0, "fetch_pages": 0} | values
        return values

    @model_validator(mode="after")
    def _addressed(self) -> "Search":
        if self.kind == "simulator" and (self.query_target or self.fetch_pages):
            raise ValueError("the embedded simulator writes no queries and has no pages; leave query_target and fetch_pages out")
        for why, names in _idle(self):
            for name in self.model_fields_set.intersection(names):
                raise ValueError(f"{name} does nothing with {why}; leave it out")
        if self.query_target > self.max_queries:
            raise ValueError("query_target must not be above max_queries, the ceiling")
        if self.kind == "searxng" and self.base_url is None:
            raise ValueError("kind searxng needs base_url, the address of a SearXNG server")
        if self.kind in ("native", "simulator") and self.base_url is not None:
            raise ValueError(f"kind {self.kind} takes no base_url")
        if self.kind == "brave" and self.api_key is None:
            raise ValueError("kind brave needs api_key")
        if self.api_key is not None and self.kind not in ("brave", "tavily"):
            raise ValueError(f"kind {self.kind} takes no api_key")
        return self

    @field_validator("base_url")
    @classmethod
    def _url(cls, value: str | None) -> str | None:
        return None if value is None else base_url_of(value)

    @property
    def address(self) -> str | None:
        """Where searches are sent, without the back-end's own path; None for the simulator's and the providers' own."""
        return self.base_url or _SEARCH_ADDRESSES.get(self.kind)


def _idle(search: Search) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Settings that have no effect beside others, with the others' names."""
    if search.fetch_pages == 0:
        yield "fetch_pages = 0", ("page_chars", "page_seconds", "user_agent", "allow_loopback")
    if search.kind == "native":
        yield "kind native", ("max_results", "attempts", "try_seconds", "usd_per_thousand")
    elif search.query_target == 0:
        yield "query_target = 0", ("max_queries",)


_SEARCH_ADDRESSES = {"brave": "https://api.search.brave.com/res/v1", "tavily": "https://api.tavily.com"}
