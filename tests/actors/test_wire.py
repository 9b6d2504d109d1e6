"""Hosts against real sockets: what goes over the wire, how often, and what every kind of bad server becomes."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from deep20ray.answers import Role
from deep20ray_actors.config import FileCredential, LiteralCredential, RouteConfig, SearchConfig, Timeouts
from deep20ray_actors.errors import RouteRefused
from deep20ray_actors.messages import SearchMessage
from deep20ray_actors.outcomes import (
    CallResult,
    Completed,
    Credentials,
    Found,
    Malformed,
    QuotaExhausted,
    Refused,
    Rejected,
    ServerFault,
    Throttled,
    Transport,
)
from tests.actors.support import MESSAGES, FakeTime, call, completion, dumped, host, results_of, route

CHAT = "/v1/chat/completions"


def run(config: RouteConfig, time: FakeTime | None = None, reply_max: int = 8_000_000, message: Any = None) -> CallResult:
    """One call of a host."""

    async def one() -> CallResult:
        (result,) = await results_of(host(config.role, config, time, reply_max), [call(message or MESSAGES[config.role])])
        return result

    return asyncio.run(one())


def answers(server: HTTPServer, *responses: Response) -> list[Request]:
    """Answers with these in turn, the last one for ever; returns the list of requests as they come in."""
    seen: list[Request] = []

    def handler(request: Request) -> Response:
        request.get_data()
        seen.append(request)
        return responses[min(len(seen), len(responses)) - 1]

    server.expect_request(CHAT).respond_with_handler(handler)
    return seen


def reply(status: int = 200, body: Any = None, **headers: str) -> Response:
    data = body if isinstance(body, bytes) else dumped(completion() if body is None else body)
    return Response(data, status, {name.replace("_", "-"): value for name, value in headers.items()}, content_type="application/json")


def test_one_call_one_request_with_constant_headers(httpserver: HTTPServer) -> None:
    seen = answers(httpserver, reply(body=completion(' {"a":1}', usage={"prompt_tokens": 3, "completion_tokens": 1})))
    result = run(route(base_url=httpserver.url_for("/v1"), credential=LiteralCredential("key-1")))
    assert result.outcome == Completed(' {"a":1}')
    assert (result.slot, result.audit.wire_tries, result.audit.throttles, result.audit.seed_sent) == (1, 1, 0, True)
    (request,) = seen
    assert {name.lower(): value for name, value in request.headers.items()} == {
        "host": httpserver.url_for("")[len("http://") :].rstrip("/"),
        "accept": "application/json",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "content-length": str(len(request.data)),
        "user-agent": "deep20ray",
        "authorization": "Bearer key-1",
    }
    assert json.loads(request.data)["seed"] == 7


@pytest.mark.parametrize("role", Role)
def test_without_a_credential_no_authorization_goes_out(httpserver: HTTPServer, role: Role) -> None:
    seen = answers(httpserver, reply())
    assert run(route(role, httpserver.url_for("/v1"))).outcome == Completed("{}")
    assert "Authorization" not in seen[0].headers


def test_a_seed_that_isn_t_sent_is_recorded_as_such(httpserver: HTTPServer) -> None:
    answers(httpserver, reply())
    assert run(route(base_url=httpserver.url_for("/v1"), send_seed=False)).audit.seed_sent is False


def test_throttled_then_served(httpserver: HTTPServer) -> None:
    seen = answers(httpserver, reply(429, {"error": {}}, Retry_After="3"), reply(429, {"error": {}}, Retry_After_Ms="200"), reply())
    time = FakeTime()
    result = run(route(base_url=httpserver.url_for("/v1")), time)
    assert (
        result.outcome == Completed("{}")
        and len(seen) == result.audit.wire_tries == 3
        and result.audit.throttles == result.audit.unbilled == 2
    )
    assert time.sleeps == [3.0, 1.0] and result.audit.latency_ms == 4000
    assert len({request.data for request in seen}) == 1


def test_backoff_doubles_up_to_eight_seconds(httpserver: HTTPServer) -> None:
    answers(httpserver, reply(503, b"busy"))
    time = FakeTime()
    result = run(route(base_url=httpserver.url_for("/v1"), attempts=8), time)
    assert isinstance(result.outcome, ServerFault) and result.audit.wire_tries == 8
    assert time.sleeps == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_longer_than_a_call_s_is_left_to_the_gate(httpserver: HTTPServer, status: int) -> None:
    seen = answers(httpserver, reply(status, {"error": {}}, Retry_After="600"))
    time = FakeTime()
    outcome = run(route(base_url=httpserver.url_for("/v1")), time).outcome
    assert isinstance(outcome, Throttled) and (outcome.status, outcome.retry_after) == (status, 600.0)
    assert len(seen) == 1 and time.sleeps == []


@pytest.mark.parametrize(
    ("status", "body", "headers", "kind", "tries"),
    [
        (400, {"error": {"code": "unsupported_parameter"}}, {}, Rejected, 1),
        (401, {"error": {}}, {}, Credentials, 1),
        (429, {"error": {"code": "insufficient_quota"}}, {}, QuotaExhausted, 1),
        (500, {"error": {}}, {"x_should_retry": "false"}, ServerFault, 1),
        (500, {"error": {}}, {}, ServerFault, 3),
        (200, {"error": {"code": 502}}, {}, ServerFault, 3),
        (200, {"choices": None}, {}, Malformed, 3),
        (200, b"<html><body>login</body></html>", {}, Malformed, 3),
        (200, b'{"choices": [', {}, Malformed, 3),
        (301, b"", {"Location": "/elsewhere"}, Rejected, 1),
        (200, completion(None, "content_filter"), {}, Refused, 1),
        (200, completion("x", message={"tool_calls": [{}]}), {}, Malformed, 1),
    ],
)
def test_tries_counted_on_the_wire(httpserver: HTTPServer, status: int, body: Any, headers: dict[str, str], kind: type, tries: int) -> None:
    seen = answers(httpserver, reply(status, body, **headers))
    result = run(route(base_url=httpserver.url_for("/v1")))
    assert isinstance(result.outcome, kind)
    assert len(seen) == len(httpserver.log) == result.audit.wire_tries == tries
    assert len({request.data for request in seen}) == 1


def test_a_body_that_is_too_long_is_not_read_on(httpserver: HTTPServer) -> None:
    answers(httpserver, reply(body=completion("x" * 300_000)))
    outcome = run(route(base_url=httpserver.url_for("/v1")), reply_max=100_000).outcome
    assert isinstance(outcome, Malformed) and "longer than 100000" in outcome.detail


def test_cookies_don_t_tie_calls_together(httpserver: HTTPServer) -> None:
    seen = answers(httpserver, reply(Set_Cookie="trial=1; Path=/"))

    async def two() -> None:
        worker = host(Role.GUESSER, route(base_url=httpserver.url_for("/v1")))
        await worker.submit([call(MESSAGES[Role.GUESSER], 1)])
        while not await worker.collect(30):
            pass
        await results_of(worker, [call(MESSAGES[Role.GUESSER], 2)])

    asyncio.run(two())
    assert len(seen) == 2 and all("Cookie" not in request.headers for request in seen)
    assert seen[0].data == seen[1].data and dict(seen[0].headers) == dict(seen[1].headers)


def test_proxies_of_the_environment_are_not_used(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    answers(httpserver, reply())
    assert run(route(base_url=httpserver.url_for("/v1"))).outcome == Completed("{}")


@asynccontextmanager
async def raw_server(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[tuple[str, list[int]]]:
    """A server that does whatever ``serve`` does with a connection; its address, and a list that grows by one a connection."""
    connections: list[int] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        try:
            await reader.readuntil(b"\r\n\r\n")
            await serve(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", connections
    finally:
        server.close()


async def hang_up(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Closes without a word."""


async def half(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Closes in mid-reply."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{")
    await writer.drain()


async def babble(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speaks no HTTP."""
    writer.write(b"220 mail.example ready\r\n\r\n")
    await writer.drain()


async def wait_for_ever(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Never answers."""
    await reader.read()
    while await reader.read(1):
        pass


@pytest.mark.parametrize("serve", [hang_up, half, babble])
def test_broken_connections_are_tried_again_and_end_as_transport(serve: Any) -> None:
    async def main() -> None:
        async with raw_server(serve) as (url, connections):
            (result,) = await results_of(host(Role.JUDGE, route(Role.JUDGE, url)), [call(MESSAGES[Role.JUDGE])])
            assert isinstance(result.outcome, Transport) and result.audit.wire_tries == len(connections) == 3
            assert "127.0.0.1" not in result.outcome.detail and result.audit.usage.input_fresh is None

    asyncio.run(main())


def test_a_search_too_is_sent_by_the_one_retry_loop_alone() -> None:
    async def main() -> None:
        async with raw_server(hang_up) as (url, connections):
            config = route(Role.ORACLE, search=SearchConfig(url, attempts=2))
            (result,) = await results_of(host(Role.ORACLE, config), [call(SearchMessage(query="x"))])
            assert isinstance(result.outcome, Transport) and result.audit.wire_tries == len(connections) == 2
            assert result.audit.unbilled == 0, "the request may have arrived"

    asyncio.run(main())


def test_nobody_listens() -> None:
    result = run(route())
    assert isinstance(result.outcome, Transport) and "can't be reached" in result.outcome.detail
    assert result.audit.unbilled == result.audit.wire_tries == 3, "nothing was ever sent"


@pytest.mark.parametrize(
    ("replied", "unbilled"),
    [
        ((503, b"busy"), 3),
        ((400, {"error": {}}), 1),
        ((402, {"error": {}}), 1),
        ((200, b"<html>"), 0),
        ((200, {"error": {"code": 502}}), 0),
    ],
)
def test_an_error_s_status_is_charged_by_nobody_and_an_error_inside_a_200_may_be(
    httpserver: HTTPServer, replied: tuple[int, Any], unbilled: int
) -> None:
    answers(httpserver, reply(*replied))
    assert run(route(base_url=httpserver.url_for("/v1"))).audit.unbilled == unbilled


def test_an_address_that_is_none_is_rejected_at_once() -> None:
    result = run(route(base_url="gopher://x/v1"))
    assert isinstance(result.outcome, Rejected) and result.audit.wire_tries == 1


async def drip_for_ever(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Never silent for long, and never done."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    for _ in range(10_000):
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("server", [wait_for_ever, drip_for_ever])
@pytest.mark.parametrize(("times", "tries"), [(Timeouts(5, 0.05, 60), 3), (Timeouts(5, 60, 0.1), 1)])
def test_a_server_that_never_answers_meets_the_deadline_of_a_wire_try_or_of_the_call(server: Any, times: Timeouts, tries: int) -> None:
    """Three tries of a bounded length each, or one that the call's own deadline ends."""

    async def main() -> None:
        async with raw_server(server) as (url, _):
            (result,) = await results_of(host(Role.JUDGE, route(Role.JUDGE, url, timeouts=times)), [call(MESSAGES[Role.JUDGE])])
            assert isinstance(result.outcome, Transport) and result.audit.wire_tries == tries and result.audit.request_digest is not None
            assert ("one wire try" in result.outcome.detail) == (tries == 3)

    asyncio.run(main())


def test_one_slow_call_holds_no_other_up(httpserver: HTTPServer) -> None:
    answers(httpserver, reply())

    async def main() -> None:
        async with raw_server(wait_for_ever) as (url, _):
            fast, slow = route(base_url=httpserver.url_for("/v1")), route(base_url=url, route="slow")
            time = FakeTime().around()
            worker = host(Role.GUESSER, fast)
            worker = type(worker)(Role.GUESSER, {"r": fast, "slow": slow}, time, worker._transport)
            stuck = replace(call(MESSAGES[Role.GUESSER], 0), route="slow")
            await worker.submit([stuck, *(call(MESSAGES[Role.GUESSER], slot) for slot in range(1, 20))])
            got: list[int] = []
            while len(got) < 19:
                got += [result.slot for result in await worker.collect(30)]
            assert sorted(got) == list(range(1, 20))
            await worker.close()
            assert await worker.collect(0) == []

    asyncio.run(main())


def test_hosts_are_blind_to_each_other(httpserver: HTTPServer, tmp_path: Path) -> None:
    """The Judge's request is the same whatever the Guesser's host did, and carries nothing of its route."""
    judged: list[dict[str, Any]] = []
    httpserver.expect_request("/judge/chat/completions").respond_with_handler(lambda request: _keep(judged, request))
    key = tmp_path / "judge.key"
    key.write_text("judge-key\n")
    key.chmod(0o600)
    for world in (reply(body=completion("first world")), reply(429, {"error": {}}, Retry_After="5"), reply(200, b"<html>")):
        answers(httpserver, world)
        run(route(base_url=httpserver.url_for("/v1"), credential=LiteralCredential("guesser-key"), model="other"))
        run(route(Role.JUDGE, httpserver.url_for("/judge"), credential=FileCredential(str(key))))
    assert len(judged) == 3 and judged[0] == judged[1] == judged[2]
    assert "guesser-key" not in repr(judged) and judged[0]["headers"]["Authorization"] == "Bearer judge-key"


def _keep(into: list[dict[str, Any]], request: Request) -> Response:
    into.append({"url": request.url, "method": request.method, "headers": dict(request.headers), "body": request.get_data()})
    return reply()


def test_a_host_refuses_routes_and_messages_of_other_roles(httpserver: HTTPServer) -> None:
    with pytest.raises(RouteRefused):
        host(Role.REVIEWER, route(Role.JUDGE))
    with pytest.raises(RouteRefused):
        host(Role.GUESSER, route(search=SearchConfig("http://127.0.0.1:9")))
    seen = answers(httpserver, reply())
    for message in (MESSAGES[Role.JUDGE], MESSAGES[Role.ORACLE], SearchMessage(query="x")):
        outcome = run(route(Role.REVIEWER, httpserver.url_for("/v1")), message=message).outcome
        assert isinstance(outcome, Rejected) and "Halley" not in outcome.detail
    assert seen == []


def test_an_unknown_route_and_a_bad_credential_send_nothing(httpserver: HTTPServer, tmp_path: Path) -> None:
    seen = answers(httpserver, reply())
    bad = run(route(base_url=httpserver.url_for("/v1"), credential=FileCredential(str(tmp_path / "none"))))
    assert isinstance(bad.outcome, Credentials) and str(tmp_path) not in bad.outcome.detail and bad.audit.request_digest is None

    async def unknown() -> CallResult:
        worker = host(Role.GUESSER, route(base_url=httpserver.url_for("/v1")))
        (result,) = await results_of(worker, [replace(call(MESSAGES[Role.GUESSER]), route="other")])
        return result

    assert isinstance(asyncio.run(unknown()).outcome, Rejected) and seen == []


def test_an_unforeseen_error_inside_a_call_becomes_a_fault_without_its_text(httpserver: HTTPServer) -> None:
    class Broken(FakeTime):
        async def sleep(self, seconds: float) -> None:
            raise LookupError("it is Halley, with key-1")

    answers(httpserver, reply(500, b""))
    outcome = run(route(base_url=httpserver.url_for("/v1")), Broken()).outcome
    assert isinstance(outcome, Rejected) and "LookupError" in outcome.detail and "Halley" not in outcome.detail


def test_the_oracle_searches_without_its_model_s_key(httpserver: HTTPServer) -> None:
    page = {"url": "https://a.example/", "title": "A", "content": "text"}
    httpserver.expect_request("/search", query_string={"q": 'Halley\'s Comet is it "ice" & dust?', "format": "json"}).respond_with_json(
        {"results": [page]}
    )
    config = route(Role.ORACLE, credential=LiteralCredential("key-1"), search=SearchConfig(httpserver.url_for("").rstrip("/")))
    result = run(config, message=SearchMessage(query='Halley\'s Comet is it "ice" & dust?'))
    assert isinstance(result.outcome, Found) and result.outcome.results[0].text == "text"
    assert (result.audit.usage.searches, result.audit.requested_model, result.audit.seed_sent) == (1, None, False)
    ((request, _),) = httpserver.log
    assert "Authorization" not in request.headers and "Content-Type" not in request.headers


def test_collected_calls_are_forgotten(httpserver: HTTPServer) -> None:
    answers(httpserver, reply())

    async def main() -> None:
        worker = host(Role.GUESSER, route(base_url=httpserver.url_for("/v1")))
        await worker.submit([call(MESSAGES[Role.GUESSER])])
        assert len(await worker.collect(30)) == 1
        assert await worker.collect(0) == []
        await asyncio.sleep(0)
        assert not worker._running and not worker._queue and not worker._finished
        await worker.close()

    asyncio.run(main())
