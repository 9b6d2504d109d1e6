"""How a role's calls are made: frozen values that the driver resolves and hands to an actor, which never reads the environment."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from deep20ray.answers import Role, Token


@dataclass(frozen=True, slots=True)
class LiteralCredential:
    """A key that the command line read. Not shown in ``repr``."""

    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class FileCredential:
    """The absolute path of a file that the actor itself reads. It must not be readable by group or others."""

    path: str


CredentialRef = LiteralCredential | FileCredential | None


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. ``wire`` bounds one wire try, ``call`` a whole logical call, its tries and the waits between them included."""

    connect: float = 10.0
    wire: float = 300.0
    call: float = 900.0


@dataclass(frozen=True, slots=True)
class Sampling:
    """Only what is set is sent."""

    temperature: float | None = None
    top_p: float | None = None


@dataclass(frozen=True, slots=True)
class PromptTexts:
    """A prompt's texts; ``guide`` and ``reminder`` are the Guesser's, ``queries`` the Oracle's, for writing search queries."""

    system: str
    guide: str | None = None
    reminder: str | None = None
    queries: str | None = None


class Backend(StrEnum):
    """The search back-ends that are spoken to, named as a sweep file's kinds of search."""

    SEARXNG = "searxng"
    BRAVE = "brave"
    TAVILY = "tavily"


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """Where the Oracle searches. ``base_url`` is without the back-end's own path, such as ``/search``."""

    base_url: str
    backend: Backend = Backend.SEARXNG
    credential: CredentialRef = None
    """None for SearXNG, and for Tavily's keyless mode."""
    max_results: int = 5
    max_text: int = 2000
    """Characters of a result's text that are kept."""
    excluded_domains: tuple[str, ...] = ()
    """Domains (with their subdomains), or domain/path prefixes, whose results are dropped, besides the benchmark's own."""
    timeouts: Timeouts = Timeouts(wire=30.0, call=180.0)
    attempts: int = 4


@dataclass(frozen=True, slots=True)
class FetchConfig:
    """How pages are fetched for the Oracle."""

    max_text: int = 4000
    """Characters of a page's text that are kept."""
    max_bytes: int = 2_000_000
    """A longer page, as sent or decompressed, is not read."""
    redirects: int = 5
    excluded_domains: tuple[str, ...] = ()
    """As a ``SearchConfig``'s; they hold for every address on the way."""
    seconds: float = 20.0
    """For one page, its redirects and the reading of its text included."""
    user_agent: str = "deep20ray"
    """As sites see it; the same for every page of a sweep."""
    allow_loopback: bool = False
    """For tests: loopback addresses may be fetched from."""


@dataclass(frozen=True, slots=True)
class NativeSearch:
    """The provider's own web search, given to the Oracle as a tool."""

    max_searches: int
    """The hard ceiling, where the provider has one."""
    excluded_domains: tuple[str, ...] = ()
    max_text: int = 2000
    """Characters of a source's text that are kept."""
    max_resumptions: int = 4
    """How often a paused turn is gone on with."""


class Dialect(StrEnum):
    """The protocols that are spoken, named as a sweep file's account kinds."""

    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    OPENROUTER = "openrouter"


@dataclass(frozen=True, slots=True)
class AnthropicSettings:
    """Anthropic's alone."""

    auth: Literal["x-api-key", "bearer"] = "x-api-key"
    version: str = "2023-06-01"
    """The ``anthropic-version`` header."""
    thinking: Literal["adaptive", "disabled"] | None = None
    """Only what is set is sent."""
    search_version: Literal["web_search_20250305", "web_search_20260209", "web_search_20260318"] = "web_search_20250305"
    """The type of the web search tool. The later two are called directly, never out of code that the model writes."""


@dataclass(frozen=True, slots=True)
class RouteConfig:
    """One role's way to one model."""

    route: str
    role: Role
    base_url: str
    """With its version path and without a final slash; the dialect adds its own path, such as ``/chat/completions``."""
    model: str
    """The requested model."""
    prompt: PromptTexts
    tokens: tuple[Token, ...]
    """The edition's answer tokens, for the answer schema."""
    max_output_tokens: int
    dialect: Dialect = Dialect.OPENAI_CHAT
    anthropic: AnthropicSettings = AnthropicSettings()
    upstreams: tuple[str, ...] = ()
    """OpenRouter's alone: the providers behind it that may serve the model; empty for any."""
    credential: CredentialRef = None
    sampling: Sampling = Sampling()
    effort: str | None = None
    output_limit_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    send_seed: bool = True
    timeouts: Timeouts = Timeouts()
    attempts: int = 5
    search: SearchConfig | None = None
    """This and the next two are the Oracle's alone."""
    fetch: FetchConfig | None = None
    native: NativeSearch | None = None
