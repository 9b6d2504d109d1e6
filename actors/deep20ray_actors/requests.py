"""The digest of the request that a call makes, by its route, message and seed: what its audit must hold. Pure; nothing is sent."""

from deep20ray.canonical import Digest, digest_of
from deep20ray_actors.config import RouteConfig
from deep20ray_actors.errors import RouteRefused
from deep20ray_actors.messages import Message, PagesMessage, SearchMessage
from deep20ray_actors.providers.dialects import DIALECTS
from deep20ray_actors.providers.wire import WireRequest
from deep20ray_actors.search.backends import BACKENDS


def request_digest(route: RouteConfig, message: Message, seed: int | None) -> Digest:
    """As a call's audit holds it.

    Raises:
        RouteRefused: the route has no way for such a message.
    """
    return pages_digest(message) if isinstance(message, PagesMessage) else wire_request(route, message, seed).digest


def wire_request(route: RouteConfig, message: Message, seed: int | None) -> WireRequest:
    """The first request of a model's or a search's call. Its later tries are the same; pages are fetched in many requests.

    Raises:
        RouteRefused: as ``request_digest``.
    """
    if isinstance(message, PagesMessage):
        raise RouteRefused("pages aren't fetched in one request")
    if not isinstance(message, SearchMessage):
        return DIALECTS[route.dialect].build(route, message, seed)
    if route.search is None:
        raise RouteRefused(f"route {route.route} has no search configured")
    return BACKENDS[route.search.backend].build(route.search, message)


def pages_digest(message: PagesMessage) -> Digest:
    """What stands for the requests of one call for pages."""
    return digest_of({"method": "GET", "urls": list(message.urls)})
