"""Every dialect that is spoken, as a table: how a request is built, how a reply is read, which header its key goes in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from deep20ray.answers import Role
from deep20ray_actors.config import Dialect, RouteConfig
from deep20ray_actors.messages import ChatMessage
from deep20ray_actors.providers import anthropic, chat, gemini, openrouter, responses
from deep20ray_actors.providers.transport import bearer
from deep20ray_actors.providers.wire import Reading, WireReply, WireRequest


@dataclass(frozen=True, slots=True)
class Speech:
    """One dialect: pure functions. ``build`` raises RouteRefused where a prompt can't render a message."""

    build: Callable[[RouteConfig, ChatMessage, int | None], WireRequest]
    read: Callable[[WireReply, Role, datetime], Reading]
    authorize: Callable[[RouteConfig, str], tuple[str, str]] = lambda _route, key: bearer(key)


DIALECTS: Mapping[Dialect, Speech] = {
    Dialect.OPENAI_CHAT: Speech(chat.build, chat.read),
    Dialect.OPENAI_RESPONSES: Speech(responses.build, responses.read),
    Dialect.ANTHROPIC: Speech(anthropic.build, anthropic.read, anthropic.authorize),
    Dialect.GEMINI: Speech(gemini.build, gemini.read, gemini.authorize),
    Dialect.OPENROUTER: Speech(openrouter.build, openrouter.read),
}
