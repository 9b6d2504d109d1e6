"""The sweep file: TOML in, frozen and checked settings out. Unknown keys are errors; it reads no environment and opens no socket.

Credentials are references (``env:NAME`` or ``file:PATH``), never values.
"""

import tomllib
from collections.abc import Iterator
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, Strict, StrictBool, ValidationError, field_validator, model_validator

from deep20ray.answers import Policy, Role
from deep20ray.reuse import ReusePolicy
from deep20ray_cluster.errors import SweepError
from deep20ray_cluster.settings import CREDENTIAL, MaxCost, Search, Settings, ShortText, Slug, Usd, base_url_of

SUPPORT_ROLES = (Role.ORACLE, Role.REVIEWER, Role.JUDGE, Role.VALIDATOR)


class SweepHead(Settings):
    """``[sweep]``: what is played."""

    name: Slug
    edition: str
    cohort: str
    """A built-in cohort's name, or the path of a cohort file, relative to the sweep file."""
    seed: Annotated[str, Field(min_length=1, max_length=128)]
    policy: Policy | None = None
    rounds: Annotated[int, Strict(), Field(ge=1, le=100)] | None = None
    """Fewer or more rounds than the edition's make a diagnostic run."""
    subjects: tuple[str, ...] | None = None
    """A subset of subject ids, for diagnostic runs."""
    max_trials: Annotated[int, Strict(), Field(ge=1, le=10_000)] = 64
    """Trials in play at once."""
    trial_seconds: Annotated[float, Strict(), Field(gt=0, le=604_800)] = 14_400
    prices_file: Annotated[str, Field(min_length=1)] | None = None
    """A file of prices that several sweeps share; a path relative to the sweep file."""
    max_cost_usd: MaxCost | None = None
    """The budget of the whole sweep."""
    workers_per_role: Annotated[int, Strict(), Field(ge=1, le=64)] | None = None
    """Actors of each role; without it one, or on a cluster one on every node up to eight."""
    results: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    """Where sealed runs are copied to: a URI that pyarrow's filesystems know, or a folder's path."""
    results_private: StrictBool = False
    """Whether the private archives are copied too."""
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


class Account(Settings):
    """``[accounts.NAME]``: where calls go, with which credential, how many at once and how patiently."""

    kind: Literal["openai-chat", "openai-responses", "anthropic", "gemini", "openrouter", "simulator"]
    base_url: str | None = None
    api_key: Annotated[str, Field(pattern=CREDENTIAL)] | None = None
    max_concurrency: Annotated[int, Strict(), Field(ge=1, le=10_000)] = 32
    requests_per_minute: Annotated[int, Strict(), Field(ge=1)] | None = None
    tokens_per_minute: Annotated[int, Strict(), Field(ge=1)] | None = None
    input_tokens_per_minute: Annotated[int, Strict(), Field(ge=1)] | None = None
    output_tokens_per_minute: Annotated[int, Strict(), Field(ge=1)] | None = None
    max_share: Annotated[float, Strict(), Field(gt=0, le=1)] = 1.0
    """The part of its limits, told or learned, that the sweep may use."""
    adaptive: StrictBool = True
    """Whether concurrency and pace also follow what the provider pushes back."""
    output_limit_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    anthropic_auth: Literal["x-api-key", "bearer"] = "x-api-key"
    anthropic_version: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")] = "2023-06-01"
    anthropic_search: Literal["web_search_20250305", "web_search_20260209", "web_search_20260318"] = "web_search_20250305"
    """The version of the search tool, for an Oracle with its provider's own search."""
    upstreams: tuple[ShortText, ...] = ()
    """OpenRouter's alone: the only providers behind it that may serve; empty for any."""
    attempts: Annotated[int, Strict(), Field(ge=1, le=20)] = 5
    connect_seconds: Annotated[float, Strict(), Field(gt=0, le=600)] = 10
    try_seconds: Annotated[float, Strict(), Field(gt=0, le=3600)] = 300
    call_seconds: Annotated[float, Strict(), Field(gt=0, le=7200)] = 900

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
        return None if value is None else base_url_of(value)


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


class Model(Settings):
    """What a role is played by. A sampling setting that is not given is not sent."""

    account: str
    model: ShortText
    temperature: Annotated[float, Strict(), Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Strict(), Field(gt=0, le=1)] | None = None
    effort: Annotated[str, Field(pattern=r"^[a-z]{1,16}$")] | None = None
    thinking: Literal["adaptive", "disabled"] | None = None
    """Anthropic's alone."""
    max_output_tokens: Annotated[int, Strict(), Field(ge=16, le=1_000_000)] = 8192
    send_seed: StrictBool = True
    limit_group: Slug | None = None
    """Models of one account that share its limits with each other, and with no model of another group."""


class Contestant(Model):
    """``[[models]]``: a model under test."""

    id: Slug
    name: ShortText | None = None
    seed: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    """This run's own seed, instead of the sweep's."""
    max_cost_usd: MaxCost | None = None
    """The budget of this run: of all calls of its trials, the support roles' included."""


class Price(Settings):
    """``[prices."MODEL"]``: US dollars per million tokens, and per thousand searches by the provider's own tool."""

    input_usd_per_mtok: Usd
    output_usd_per_mtok: Usd
    cache_read_usd_per_mtok: Usd | None = None
    cache_write_usd_per_mtok: Usd | None = None
    """Of entries that live five minutes."""
    cache_write_1h_usd_per_mtok: Usd | None = None
    search_usd_per_thousand: Usd | None = None


class PricesFile(Settings):
    """A file of prices: the same tables as a sweep file's."""

    prices: dict[str, Price]


class Support(Settings):
    """``[support.ROLE]`` for each of the four."""

    oracle: Model
    reviewer: Model
    judge: Model
    validator: Model

    def of(self, role: Role) -> Model:
        """The settings of one support role."""
        model: Model = getattr(self, role.value)
        return model


class Sweep(Settings):
    """A whole sweep file."""

    sweep: SweepHead
    accounts: dict[Slug, Account]
    search: Search
    support: Support
    models: Annotated[tuple[Contestant, ...], Field(min_length=1)]
    prices: Annotated[dict[str, Price], Field(default_factory=dict)]

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
        place = ".".join(part if part.isprintable() else ascii(part) for part in parts)
        message = _words(first["type"], parts[-1] if parts else "", first["msg"])
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise SweepError(f"{where}: {f'{place}: ' if place else ''}{message}{more}") from None


def _words(kind: str, key: str, text: str) -> str:
    match kind:
        case "extra_forbidden":
            alike = get_close_matches(key, {name for each in Settings.__subclasses__() for name in _names(each)}, n=1)
            return f"unknown key{f', do you mean {alike[0]}?' if alike else ''}; see docs/sweep-file.md"
        case "missing":
            return "it is missing; see docs/sweep-file.md"
        case "string_pattern_mismatch" if key == "api_key":
            return 'it must be "env:NAME" or "file:PATH", never the key itself'
        case "string_pattern_mismatch" if key in ("name", "id"):
            return "it must be of lower-case letters, digits and hyphens, 64 at most"
        case _:
            return text.removeprefix("Value error, ")


def _names(settings: type[Settings]) -> Iterator[str]:
    yield from settings.model_fields
    for deeper in settings.__subclasses__():
        yield from _names(deeper)
