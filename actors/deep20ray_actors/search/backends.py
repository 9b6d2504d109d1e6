"""Every search back-end that is spoken to, as a table: how a request is built, how a reply is read, which header its key goes in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from deep20ray_actors.config import Backend, SearchConfig
from deep20ray_actors.messages import SearchMessage
from deep20ray_actors.providers.transport import bearer
from deep20ray_actors.providers.wire import Reading, WireReply, WireRequest
from deep20ray_actors.search import brave, searxng, tavily


@dataclass(frozen=True, slots=True)
class Engine:
    """One back-end: pure functions. Equal arguments give equal requests, byte for byte."""

    build: Callable[[SearchConfig, SearchMessage], WireRequest]
    read: Callable[[WireReply, SearchConfig, datetime], Reading]
    authorize: Callable[[str], tuple[str, str]] = bearer


BACKENDS: Mapping[Backend, Engine] = {
    Backend.SEARXNG: Engine(searxng.build, searxng.read),
    Backend.BRAVE: Engine(brave.build, brave.read, brave.authorize),
    Backend.TAVILY: Engine(tavily.build, tavily.read),
}
