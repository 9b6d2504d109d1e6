"""Every dialect that is spoken, as a table: how a request is built, how a reply is read, which header its key goes in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from deep20ray.answers import Role
from deep20ray_actors.config import Dialect, NativeSearch, RouteConfig
from deep20ray_actors.messages import ChatMessage
from deep20ray_actors.providers import anthropic, chat, gemini, openrouter, responses
from deep20ray_actors.providers.transport import bearer
from deep20ray_actors.providers.wire import Reading, WireReply, WireRequest


@dataclass(frozen=True, slots=True)
class Resumption:
    """How a turn that the provider paused is gone on with: pure functions of all that it held so far, a reading's ``paused``."""

    build: Callable[[WireRequest, tuple[Any, ...]], WireRequest]
    """Out of the turn's first request."""
    read: Callable[[WireReply, Role, datetime, NativeSearch | None, tuple[Any, ...]], Reading]
    """Of the whole turn; the usage is that of the last reply alone."""


@dataclass(frozen=True, slots=True)
class Speech:
    """One dialect: pure functions. ``build`` raises RouteRefused where a prompt can't render a message.

    ``read`` takes what the call was given to search with: the route's native search for a ResearchMessage, else None.
    """

    build: Callable[[RouteConfig, ChatMessage, int | None], WireRequest]
    read: Callable[[WireReply, Role, datetime, NativeSearch | None], Reading]
    authorize: Callable[[RouteConfig, str], tuple[str, str]] = lambda _route, key: bearer(key)
    resumption: Resumption | None = None
    """None where no turn is ever paused."""


DIALECTS: Mapping[Dialect, Speech] = {
    Dialect.OPENAI_CHAT: Speech(chat.build, chat.read),
    Dialect.OPENAI_RESPONSES: Speech(responses.build, responses.read),
    Dialect.ANTHROPIC: Speech(anthropic.build, anthropic.read, anthropic.authorize, Resumption(anthropic.go_on, anthropic.read)),
    Dialect.GEMINI: Speech(gemini.build, gemini.read, gemini.authorize),
    Dialect.OPENROUTER: Speech(openrouter.build, openrouter.read),
}

NATIVE_SEARCH = frozenset({Dialect.OPENAI_RESPONSES, Dialect.ANTHROPIC, Dialect.GEMINI, Dialect.OPENROUTER})
"""The dialects whose provider can search by itself."""
SEARCH_CAPPED = frozenset({Dialect.OPENAI_RESPONSES, Dialect.ANTHROPIC, Dialect.OPENROUTER})
"""Those of them whose requests say how many searches there may be at most. A turn that goes on after a pause is another request."""
