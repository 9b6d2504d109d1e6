"""The sweep file: TOML in, frozen and checked settings out. Unknown keys are errors; it reads no environment and opens no socket.

Credentials are references (``env:NAME`` or ``file:PATH``), never values.
"""

import re
import tomllib
from collections.abc import Iterator
from difflib import get_close_matches
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from deep20ray.answers import Policy, Role
from deep20ray.reuse import ReusePolicy
from deep20ray_cluster.errors import SweepError

SUPPORT_ROLES = (Role.ORACLE, Role.REVIEWER, Role.JUDGE, Role.VALIDATOR)
_SLUG = r"^[a-z0-9][a-z0-9-]{0,63}$"
Slug = Annotated[str, Field(pattern=_SLUG)]
ShortText = Annotated[str, Field(min_length=1, max_length=200)]
Domain = Annotated[str, Field(pattern=r"^[A-Za-z0-9.-]+(/[^\s]*)?$", max_length=200)]
"""``host`` or ``host/path``."""
_Usd = Annotated[float, Field(ge=0, le=100_000)]
MaxCost = Annotated[float, Field(gt=0, le=10_000_000)]
"""US dollars."""
_CREDENTIAL = r"^(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$"


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class SweepHead(_Settings):
    """``[sweep]``: what is played."""

    name: Slug
    edition: str
    cohort: str
    """A built-in cohort's name, or the path of a cohort file, relative to the sweep file."""
    seed: Annotated[str, Field(min_length=1, max_length=128)]
    policy: Policy | None = None
    rounds: Annotated[int, Field(ge=1, le=100)] | None = None
    """Fewer or more rounds than the edition's make a diagnostic run."""
    subjects: tuple[str, ...] | None = None
    """A subset of subject ids, for diagnostic runs."""
    max_trials: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Trials in play at once."""
    trial_seconds: Annotated[float, Field(gt=0, le=604_800)] = 14_400
    prices_file: Annotated[str, Field(min_length=1)] | None = None
    """A file of prices that several sweeps share; a path relative to the sweep file."""
    max_cost_usd: MaxCost | None = None
    """The budget of the whole sweep."""
    reuse: ReusePolicy = ReusePolicy.OFF
    """How far back an answer may come from."""
    reuse_archive: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Signed runs' folders, relative to the sweep file, for the policy ``archive``."""
    reuse_trust: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """The public keys that may have signed them, likewise."""
    reuse_cutoff: datetime | None = None
    """Answers of the archive that were given later aren't used; the moment of planning without it."""

    @model_validator(mode="after")
    def _archived(self) -> "SweepHead":
        given = self.reuse_archive or self.reuse_trust or self.reuse_cutoff is not None
        if self.reuse is not ReusePolicy.ARCHIVE and given:
            raise ValueError('reuse_archive, reuse_trust and reuse_cutoff are settings of reuse = "archive"')
        if self.reuse is ReusePolicy.ARCHIVE and not (self.reuse_archive and self.reuse_trust):
            raise ValueError('reuse = "archive" needs reuse_archive, signed runs\' folders, and reuse_trust, the keys that may have signed')
        if self.reuse_cutoff is not None and self.reuse_cutoff.tzinfo is None:
            raise ValueError("reuse_cutoff needs its zone, as in 2026-12-01T00:00:00Z")
        return self


class Account(_Settings):
    """``[accounts.NAME]``: where calls go, with which credential, how many at once and how patiently."""

    kind: Literal["openai-chat", "openai-responses", "anthropic", "gemini", "openrouter", "simulator"]
    base_url: str | None = None
    api_key: Annotated[str, Field(pattern=_CREDENTIAL)] | None = None
    max_concurrency: Annotated[int, Field(ge=1, le=10_000)] = 32
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    output_limit_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    anthropic_auth: Literal["x-api-key", "bearer"] = "x-api-key"
    anthropic_version: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")] = "2023-06-01"
    anthropic_search: Literal["web_search_20250305", "web_search_20260209", "web_search_20260318"] = "web_search_20250305"
    """The version of the search tool, for an Oracle with its provider's own search."""
    upstreams: tuple[ShortText, ...] = ()
    """OpenRouter's alone: the only providers behind it that may serve; empty for any."""
    attempts: Annotated[int, Field(ge=1, le=20)] = 5
    connect_seconds: Annotated[float, Field(gt=0, le=600)] = 10
    try_seconds: Annotated[float, Field(gt=0, le=3600)] = 300
    call_seconds: Annotated[float, Field(gt=0, le=7200)] = 900

    @model_validator(mode="after")
    def _addressed(self) -> "Account":
        if self.kind != "simulator" and self.base_url is None:
            raise ValueError(f"it needs base_url, for example {_EXAMPLES[self.kind]}")
        if self.kind == "simulator" and (self.base_url is not None or self.api_key is not None):
            raise ValueError("the embedded simulator takes neither base_url nor api_key")
        for name, kinds in _KINDS_OF.items():
            if name in self.model_fields_set and self.kind not in kinds:
                raise ValueError(f"{name} is a setting of kind {' or '.join(kinds)}, not of {self.kind}")
        return self

    @field_validator("base_url")
    @classmethod
    def _url(cls, value: str | None) -> str | None:
        return None if value is None else _base_url(value)


_EXAMPLES = {
    "openai-chat": "http://127.0.0.1:8000/v1",
    "openai-responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
    "openrouter": "https://openrouter.ai/api/v1",
}
_KINDS_OF = {
    "output_limit_field": ("openai-chat", "openrouter", "simulator"),
    "anthropic_auth": ("anthropic",),
    "anthropic_version": ("anthropic",),
    "anthropic_search": ("anthropic",),
    "upstreams": ("openrouter",),
}


_SEEDLESS = ("openai-responses", "anthropic")
NATIVE_KINDS = ("openai-responses", "anthropic", "gemini", "openrouter")
"""Accounts whose provider has a web search of its own to give to the Oracle."""


class Search(_Settings):
    """``[search]``: where the Oracle searches, and what it reads."""

    kind: Literal["searxng", "brave", "tavily", "native", "simulator"]
    base_url: str | None = None
    api_key: Annotated[str, Field(pattern=_CREDENTIAL)] | None = None
    query_target: Annotated[int, Field(ge=0, le=10)] = 2
    """Queries that the Oracle's model is asked to write for a question, about; 0 for the program's own one."""
    max_queries: Annotated[int, Field(ge=1, le=10)] = 4
    """The ceiling that no question passes."""
    fetch_pages: Annotated[int, Field(ge=0, le=10)] = 3
    """Pages that are fetched and read for a question."""
    page_chars: Annotated[int, Field(ge=200, le=50_000)] = 4000
    page_seconds: Annotated[float, Field(gt=0, le=300)] = 20
    user_agent: Annotated[str, Field(pattern=r"^[!-~][ -~]{0,199}$")] = "deep20ray"
    """As the sites of fetched pages see it; some want to be told whom to write to."""
    max_results: Annotated[int, Field(ge=1, le=10)] = 5
    excluded_domains: tuple[Domain, ...] = ()
    """Besides the benchmark's own publications, which are always left out."""
    max_concurrency: Annotated[int, Field(ge=1, le=10_000)] = 32
    attempts: Annotated[int, Field(ge=1, le=20)] = 4
    try_seconds: Annotated[float, Field(gt=0, le=600)] = 30
    usd_per_thousand: Annotated[float, Field(ge=0, le=100_000)] | None = None
    """What a thousand searches cost."""
    allow_loopback: bool = False
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
        return None if value is None else _base_url(value)

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


class Model(_Settings):
    """What a role is played by. A sampling setting that is not given is not sent."""

    account: str
    model: ShortText
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    effort: Annotated[str, Field(pattern=r"^[a-z]{1,16}$")] | None = None
    thinking: Literal["adaptive", "disabled"] | None = None
    """Anthropic's alone."""
    max_output_tokens: Annotated[int, Field(ge=16, le=1_000_000)] = 8192
    send_seed: bool = True


class Contestant(Model):
    """``[[models]]``: a model under test."""

    id: Slug
    name: ShortText | None = None
    seed: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    """This run's own seed, instead of the sweep's."""
    max_cost_usd: MaxCost | None = None
    """The budget of this run: of all calls of its trials, the support roles' included."""


class Price(_Settings):
    """``[prices."MODEL"]``: US dollars per million tokens, and per thousand searches by the provider's own tool."""

    input_usd_per_mtok: _Usd
    output_usd_per_mtok: _Usd
    cache_read_usd_per_mtok: _Usd | None = None
    cache_write_usd_per_mtok: _Usd | None = None
    """Of entries that live five minutes."""
    cache_write_1h_usd_per_mtok: _Usd | None = None
    search_usd_per_thousand: _Usd | None = None


class PricesFile(_Settings):
    """A file of prices: the same tables as a sweep file's."""

    prices: dict[str, Price]


class Support(_Settings):
    """``[support.ROLE]`` for each of the four."""

    oracle: Model
    reviewer: Model
    judge: Model
    validator: Model

    def of(self, role: Role) -> Model:
        """The settings of one support role."""
        model: Model = getattr(self, role.value)
        return model


class Sweep(_Settings):
    """A whole sweep file."""

    sweep: SweepHead
    accounts: dict[Slug, Account]
    search: Search
    support: Support
    models: Annotated[tuple[Contestant, ...], Field(min_length=1)]
    prices: dict[str, Price] = {}

    @model_validator(mode="after")
    def _consistent(self) -> "Sweep":
        ids = [model.id for model in self.models]
        for id_ in ids:
            if ids.count(id_) > 1:
                raise ValueError(f"two models have the id {id_!r}")
        for model in (*self.models, *(self.support.of(role) for role in SUPPORT_ROLES)):
            if model.account not in self.accounts:
                raise ValueError(f"model {model.model!r} names account {model.account!r}, which is not under [accounts]")
            if "send_seed" in model.model_fields_set and self.accounts[model.account].kind in _SEEDLESS:
                kind = self.accounts[model.account].kind
                raise ValueError(f"model {model.model!r}: accounts of kind {kind} have no seed; leave send_seed out")
            if model.thinking is not None and self.accounts[model.account].kind != "anthropic":
                raise ValueError(f"model {model.model!r}: thinking is a setting of accounts of kind anthropic; use effort")
        played = {model.model for model in (*self.models, *(self.support.of(role) for role in SUPPORT_ROLES))}
        for name in self.prices:
            if name not in played:
                raise ValueError(f"prices.{name}: no role is played by a model of that name; correct it, or put it into a prices_file")
        oracle = self.accounts[self.support.oracle.account].kind
        if self.search.kind == "native" and oracle not in NATIVE_KINDS:
            raise ValueError(f"search.kind native needs an Oracle's account of kind {' or '.join(NATIVE_KINDS)}, not {oracle}")
        return self

    @property
    def simulated(self) -> bool:
        """Whether any part of it is played by the embedded simulator."""
        used = {model.account for model in self.models} | {self.support.of(role).account for role in SUPPORT_ROLES}
        return self.search.kind == "simulator" or any(self.accounts[name].kind == "simulator" for name in used)


def read_sweep(path: Path) -> tuple[Sweep, str]:
    """A sweep file's settings and its text.

    Raises:
        SweepError: unreadable, not TOML, an unknown key or a bad value; one line that says where.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise SweepError(f"{path}: can't be read ({reason}); give the path of a sweep file") from None
    return parse_sweep(text, str(path)), text


def parse_sweep(text: str, where: str) -> Sweep:
    """Settings out of a sweep file's text; ``where`` names it in errors.

    Raises:
        SweepError: as for ``read_sweep``.
    """
    return _parsed(Sweep, text, where)


def parse_prices(text: str, where: str) -> dict[str, Price]:
    """Prices by model out of a prices file's text; ``where`` names it in errors.

    Raises:
        SweepError: as for ``read_sweep``.
    """
    return _parsed(PricesFile, text, where).prices


_File = TypeVar("_File", Sweep, PricesFile)


def _parsed(kind: type[_File], text: str, where: str) -> _File:
    try:
        values = tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, and a number with too many digits
        raise SweepError(f"{where}: not valid TOML: {error}") from None
    except RecursionError:
        raise SweepError(f"{where}: nested too deep; see docs/sweep-file.md") from None
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False, include_input=False)
        # A misspelt key leaves another one missing; what is misspelt says more.
        first = min(errors, key=lambda each: each["type"] != "extra_forbidden")
        parts = [str(part) for part in first["loc"]]
        place = ".".join(part if part.isprintable() else ascii(part) for part in parts) or "file"
        message = _words(first["type"], parts[-1] if parts else "", first["msg"])
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise SweepError(f"{where}: {place}: {message}{more}") from None


def _words(kind: str, key: str, text: str) -> str:
    match kind:
        case "extra_forbidden":
            alike = get_close_matches(key, {name for each in _Settings.__subclasses__() for name in _names(each)}, n=1)
            return f"unknown key{f', do you mean {alike[0]}?' if alike else ''}; see docs/sweep-file.md"
        case "missing":
            return "it is missing; see docs/sweep-file.md"
        case _:
            return text.removeprefix("Value error, ")


def _names(settings: type[_Settings]) -> Iterator[str]:
    yield from settings.model_fields
    for deeper in settings.__subclasses__():
        yield from _names(deeper)


_URL = re.compile(r"^https?://[A-Za-z0-9.\[\]:_-]+(/[A-Za-z0-9._~/-]*)?$")


def _base_url(value: str) -> str:
    if not _URL.fullmatch(value):
        raise ValueError("base_url must be http(s)://host[:port]/path, without user, query or fragment")
    return value.rstrip("/")
