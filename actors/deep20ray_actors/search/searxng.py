"""SearXNG's JSON search. Pure: a request out of a query, a reading out of a reply."""

from datetime import datetime
from urllib.parse import urlencode

from deep20ray_actors.config import SearchConfig
from deep20ray_actors.messages import SearchMessage
from deep20ray_actors.outcomes import Found, Malformed, Rejected, ServerFault
from deep20ray_actors.providers.jsontext import NotJson, json_object
from deep20ray_actors.providers.wire import Reading, WireReply, WireRequest, read_error
from deep20ray_actors.search.results import HEADERS, ONE_SEARCH, Row, kept


def build(config: SearchConfig, message: SearchMessage) -> WireRequest:
    """The request of one search."""
    return WireRequest("GET", config.base_url.rstrip("/"), "/search?" + urlencode({"q": message.query, "format": "json"}), HEADERS)


def read(reply: WireReply, config: SearchConfig, now: datetime) -> Reading:
    """What a reply means. No hits is a success; no hits because the engines behind it failed is not."""
    if reply.status == 403:
        return Reading(Rejected("the search server refuses JSON (status 403); add json to its search.formats", 403))
    if reply.status != 200:
        return read_error(reply.status, reply.headers, None, now)
    try:
        body = json_object(reply.body)
    except NotJson:
        return Reading(Malformed("the search reply is not JSON; check search.base_url", reply.status), retry=True)
    if body.get("error"):
        return read_error(reply.status, reply.headers, body["error"], now)
    rows = body.get("results")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return Reading(Malformed("the search reply holds no list of results; check search.base_url", reply.status), retry=True)
    if not rows and body.get("unresponsive_engines"):
        return Reading(ServerFault("no search engine behind the search server answered", reply.status), retry=True)
    found = kept((Row(row.get("url"), row.get("title"), row.get("content")) for row in rows), config)
    return Reading(Found(found), usage=ONE_SEARCH)
