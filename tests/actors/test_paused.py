"""A turn that its provider pauses: gone on with inside one call, over real sockets, as often as it may be and no longer."""

import asyncio
import json
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from deep20ray.answers import Role
from deep20ray_actors.config import Dialect, LiteralCredential, NativeSearch, RouteConfig
from deep20ray_actors.messages import Message, ResearchMessage
from deep20ray_actors.outcomes import Browsed, CallResult, Completed, Malformed, Rejected, ServerFault, Source, Transport, Truncated, Usage
from deep20ray_actors.providers.dialects import DIALECTS
from tests.actors.support import MESSAGES, RECORDED, SUBJECT, FakeTime, call, dumped, host, results_of, route

RESEARCH = ResearchMessage.of(SUBJECT, "Is it alive?", 2)
NATIVE = NativeSearch(2, max_resumptions=3)


def oracle(server: HTTPServer, native: NativeSearch | None = NATIVE, **settings: Any) -> RouteConfig:
    credential = LiteralCredential("key-1")
    return route(Role.ORACLE, server.url_for("/v1"), dialect=Dialect.ANTHROPIC, native=native, credential=credential, **settings)


def run(config: RouteConfig, message: Message = RESEARCH, time: FakeTime | None = None) -> CallResult:
    async def one() -> CallResult:
        (result,) = await results_of(host(config.role, config, time), [call(message)])
        return result

    return asyncio.run(one())


def answers(server: HTTPServer, *replies: tuple[int, Any]) -> list[Request]:
    """Answers with these in turn, the last one for ever; returns the list of requests as they come in."""
    seen: list[Request] = []

    def handler(request: Request) -> Response:
        request.get_data()
        seen.append(request)
        status, body = replies[min(len(seen), len(replies)) - 1]
        return Response(body if isinstance(body, bytes) else dumped(body), status, content_type="application/json")

    server.expect_request("/v1/messages", method="POST").respond_with_handler(handler)
    return seen


def body_of(request: Request) -> Any:
    return json.loads(request.get_data())


def reply(stop: str, *blocks: dict[str, Any], usage: dict[str, Any] | None = None) -> dict[str, Any]:
    used = {"input_tokens": 10, "output_tokens": 3, "server_tool_use": {"web_search_requests": 1}} if usage is None else usage
    return {"type": "message", "role": "assistant", "model": "served", "stop_reason": stop, "content": list(blocks), "usage": used}


def use(number: int) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": f"s{number}", "name": "web_search", "input": {"query": "Kométa 😀"}}


def result_of(number: int) -> dict[str, Any]:
    hit = {"type": "web_search_result", "url": f"https://{number}.example/", "title": "T", "encrypted_content": "RU5D==", "page_age": None}
    return {"type": "web_search_tool_result", "tool_use_id": f"s{number}", "content": [hit]}


THOUGHT = {"type": "thinking", "thinking": "Hm, \ud800 half.", "signature": "c2ln/+=="}
NOVEL = {"type": "novelty", "of": [1, 2.5, 10**30, None, {"deep": ["é\u0000"]}]}
ANSWER = {"type": "text", "text": '{"answer":"NO"}'}
FIRST = reply("pause_turn", THOUGHT, NOVEL, {"type": "text", "text": "Let me look."}, use(1))
SECOND = reply("pause_turn", result_of(1), use(2))
LAST = reply("end_turn", result_of(2), ANSWER)


def test_a_paused_turn_goes_on_as_one_growing_message_within_one_call(httpserver: HTTPServer) -> None:
    seen = answers(httpserver, (200, FIRST), (200, SECOND), (200, LAST))
    config = oracle(httpserver)
    result = run(config)
    sources = tuple(Source(f"https://{number}.example/", "T", "", False) for number in (1, 2))
    assert result.outcome == Completed('{"answer":"NO"}', Browsed(2, sources, False))
    first, second, third = map(body_of, seen)
    assert second == first | {"messages": [*first["messages"], {"role": "assistant", "content": FIRST["content"]}]}
    both = [*FIRST["content"], *SECOND["content"]]
    assert third == first | {"messages": [*first["messages"], {"role": "assistant", "content": both}]}
    assert len({request.headers["X-Api-Key"] for request in seen}) == 1
    audit = result.audit
    assert (audit.wire_tries, audit.resumptions, audit.finish_reason) == (3, 2, "end_turn")
    assert audit.usage == Usage(30, 0, 0, 0, 9, 0, searches=3) and audit.reasoning == "Hm, \ufffd half."
    assert audit.request_digest == DIALECTS[Dialect.ANTHROPIC].build(config, RESEARCH, 7).digest


def test_a_pause_without_end_is_truncated_at_the_cap(httpserver: HTTPServer) -> None:
    seen = answers(httpserver, (200, reply("pause_turn", ANSWER, use(1))))
    result = run(oracle(httpserver))
    assert result.outcome == Truncated(None, "other", False)
    assert len(seen) == result.audit.wire_tries == 4 and result.audit.resumptions == 3
    assert result.audit.usage.input_fresh == 40 and result.audit.finish_reason == "pause_turn"
    assert [len(body_of(request)["messages"][-1]["content"]) for request in seen[1:]] == [2, 4, 6]


def test_no_resumption_where_none_is_allowed(httpserver: HTTPServer) -> None:
    seen = answers(httpserver, (200, FIRST))
    result = run(oracle(httpserver, NativeSearch(2, max_resumptions=0)))
    assert isinstance(result.outcome, Truncated) and len(seen) == 1 and result.audit.resumptions == 0


@pytest.mark.parametrize(
    ("status", "body", "kind", "tries"),
    [
        (529, {"type": "error", "error": {"type": "overloaded_error"}}, ServerFault, 3),
        (400, {"type": "error", "error": {"type": "invalid_request_error"}}, Rejected, 1),
        (200, b"{cut", Malformed, 3),
        (200, {"stop_reason": "end_turn", "content": None}, Malformed, 3),
    ],
)
def test_a_fault_while_going_on_is_the_outcome_and_the_pause_was_used(
    httpserver: HTTPServer, status: int, body: Any, kind: type, tries: int
) -> None:
    seen = answers(httpserver, (200, FIRST), (status, body))
    result = run(oracle(httpserver))
    assert isinstance(result.outcome, kind) and len(seen) == result.audit.wire_tries == 1 + tries
    assert (result.audit.usage, result.audit.resumptions) == (Usage(10, 0, 0, 0, 3, 0, searches=1), 1)


def test_a_fault_that_was_paid_for_counts_too(httpserver: HTTPServer) -> None:
    answers(httpserver, (200, FIRST), (200, reply("tool_use", {"type": "tool_use", "id": "t", "name": "f", "input": {}})))
    result = run(oracle(httpserver))
    assert isinstance(result.outcome, Malformed) and result.audit.usage == Usage(20, 0, 0, 0, 6, 0, searches=2)


def test_tries_of_a_continuation_send_the_same_bytes(httpserver: HTTPServer) -> None:
    seen = answers(httpserver, (200, FIRST), (503, {}), (200, LAST))
    result = run(oracle(httpserver))
    assert isinstance(result.outcome, Completed) and result.audit.wire_tries == 3
    assert seen[1].get_data() == seen[2].get_data() != seen[0].get_data()


class Late(FakeTime):
    """A clock on which the call's deadline passes as soon as anyone waits."""

    async def sleep(self, seconds: float) -> None:
        raise TimeoutError


def test_the_call_s_deadline_holds_for_the_whole_turn(httpserver: HTTPServer) -> None:
    answers(httpserver, (200, FIRST), (503, {}))
    result = run(oracle(httpserver), time=Late())
    assert isinstance(result.outcome, Transport) and "deadline" in result.outcome.detail
    assert (result.audit.usage.input_fresh, result.audit.resumptions, result.audit.wire_tries) == (10, 1, 2)


def test_a_meter_that_one_part_leaves_out_is_unknown(httpserver: HTTPServer) -> None:
    answers(httpserver, (200, FIRST), (200, reply("end_turn", result_of(1), ANSWER, usage={"input_tokens": 5})))
    assert run(oracle(httpserver)).audit.usage == Usage(15, 0, 0, 0, None, None, searches=1)


def test_what_json_can_t_hold_is_not_sent_back(httpserver: HTTPServer) -> None:
    huge = dumped(FIRST).replace(b"2.5", b"1e999")
    seen = answers(httpserver, (200, huge), (200, LAST))
    run(oracle(httpserver))
    assert len(seen) == 2 and seen[0].get_data() == seen[1].get_data(), "tried again as a broken reply, not gone on with"


@pytest.mark.parametrize("role", Role)
def test_a_pause_without_a_search_given_is_an_end_of_another_kind(httpserver: HTTPServer, role: Role) -> None:
    seen = answers(httpserver, (200, reply("pause_turn", ANSWER, usage={"input_tokens": 1, "output_tokens": 1})))
    config = route(role, httpserver.url_for("/v1"), dialect=Dialect.ANTHROPIC)
    result = run(config, MESSAGES[role])
    assert result.outcome == Truncated('{"answer":"NO"}', "other", False)
    assert len(seen) == 1 and result.audit.resumptions == 0


def test_a_guesser_that_searched_until_a_pause_is_a_fault(httpserver: HTTPServer) -> None:
    seen = answers(httpserver, (200, FIRST), (200, LAST))
    config = route(Role.GUESSER, httpserver.url_for("/v1"), dialect=Dialect.ANTHROPIC)
    assert isinstance(run(config, MESSAGES[Role.GUESSER]).outcome, Malformed) and len(seen) == 1


def test_an_oracle_with_the_search_has_it_for_research_alone(httpserver: HTTPServer) -> None:
    seen = answers(httpserver, (200, LAST))
    result = run(oracle(httpserver), MESSAGES[Role.ORACLE])
    assert isinstance(result.outcome, Malformed) and "tools" not in body_of(seen[0])


def test_research_without_a_search_is_not_sent(httpserver: HTTPServer) -> None:
    seen = answers(httpserver, (200, LAST))
    assert isinstance(run(oracle(httpserver, None)).outcome, Rejected) and seen == []


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded provider exchanges are not here (../shared/data/recorded)")
def test_a_real_paused_turn_is_gone_on_with_as_its_real_client_did(httpserver: HTTPServer) -> None:
    yaml = pytest.importorskip("yaml")
    text = (RECORDED / "test_pause_turn_web_search_vcr.yaml").read_text()
    exchanges = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))["interactions"]
    one, two = (exchange["response"]["parsed_body"] for exchange in exchanges)
    seen = answers(httpserver, (200, one), (200, two))
    result = run(oracle(httpserver, NativeSearch(20)))
    assert [body_of(request)["messages"][1:] for request in seen] == [[], exchanges[1]["request"]["parsed_body"]["messages"][1:]]
    assert isinstance(result.outcome, Completed) and result.outcome.browsed is not None
    assert result.outcome.browsed.searches == result.audit.usage.searches == 15
    first = next(number for number, block in enumerate(two["content"]) if block.get("citations"))
    assert result.outcome.text == "".join(block["text"] for block in two["content"][first - 1 :])
    assert result.audit.usage == Usage(401468 + 494549, 0, 0, 0, 792 + 1245, 0, searches=15)
    assert (result.audit.wire_tries, result.audit.resumptions) == (2, 1)
    assert sum(bool(source.text) for source in result.outcome.browsed.sources) > 1
