"""A provider's own search: who is given it and how, what its replies hold, what hostile ones can't do."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from deep20ray.answers import Role, Token
from deep20ray_actors.config import AnthropicSettings, Dialect, NativeSearch, PromptTexts, RouteConfig
from deep20ray_actors.errors import RouteRefused
from deep20ray_actors.messages import QueriesMessage, ResearchMessage
from deep20ray_actors.outcomes import Browsed, Completed, Malformed, Refused, Source, Truncated, Usage
from deep20ray_actors.providers.browsing import SOURCES_MAX, TITLE_MAX, Gathered
from deep20ray_actors.providers.dialects import DIALECTS, NATIVE_SEARCH, SEARCH_CAPPED
from deep20ray_actors.providers.usage import read_anthropic_usage, read_gemini_usage, read_responses_usage, read_usage, summed
from deep20ray_actors.providers.wire import Reading, WireReply
from deep20ray_actors.replies import Cited, researched_answer
from tests.actors.dialects import BODIES, Said
from tests.actors.support import MESSAGES, NOW, SUBJECT, dumped, host, route

RESPONSES, ANTHROPIC, GEMINI, OPENROUTER = Dialect.OPENAI_RESPONSES, Dialect.ANTHROPIC, Dialect.GEMINI, Dialect.OPENROUTER
NATIVE = NativeSearch(4, ("bad.example", "wiki.example/answers"), max_text=60)
RESEARCH = ResearchMessage.of(SUBJECT, "Is it alive?", 2)
ANSWER = '{"answer":"NO"}'


def given(dialect: Dialect, native: NativeSearch | None = NATIVE, **settings: Any) -> RouteConfig:
    return route(Role.ORACLE, dialect=dialect, native=native, **settings)


def sent(config: RouteConfig) -> Any:
    return json.loads(DIALECTS[config.dialect].build(config, RESEARCH, 5).body)


def read(dialect: Dialect, body: Any, native: NativeSearch | None = NATIVE, role: Role = Role.ORACLE) -> Reading:
    return DIALECTS[dialect].read(WireReply(200, {}, dumped(body)), role, NOW, native)


def browsed(dialect: Dialect, body: Any, native: NativeSearch = NATIVE) -> Browsed:
    outcome = read(dialect, body, native).outcome
    assert isinstance(outcome, Completed) and outcome.browsed is not None
    return outcome.browsed


# --- requests


def test_responses_must_search_under_a_ceiling_and_names_its_sources() -> None:
    plain, body = sent(given(RESPONSES, None)), sent(given(RESPONSES))
    assert body == plain | {
        "tools": [{"type": "web_search"}],
        "tool_choice": "required",
        "max_tool_calls": 4,
        "include": ["web_search_call.action.sources"],
    }


def test_anthropic_s_tool_has_a_ceiling_and_exclusions_and_leaves_no_room_for_a_schema() -> None:
    tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": 4, "blocked_domains": ["bad.example", "wiki.example/answers"]}
    plain, body = sent(given(ANTHROPIC, None)), sent(given(ANTHROPIC))
    del plain["output_config"]
    assert body == plain | {"tools": [tool]}
    assert sent(given(ANTHROPIC, effort="low"))["output_config"] == {"effort": "low"}
    assert "blocked_domains" not in sent(given(ANTHROPIC, NativeSearch(1)))["tools"][0]


def test_anthropic_s_later_tools_are_called_by_the_model_alone() -> None:
    (tool,) = sent(given(ANTHROPIC, anthropic=AnthropicSettings(search_version="web_search_20260318")))["tools"]
    assert (tool["type"], tool["allowed_callers"]) == ("web_search_20260318", ["direct"])


def test_gemini_s_search_stands_without_a_schema() -> None:
    plain, body = sent(given(GEMINI, None)), sent(given(GEMINI))
    del plain["generationConfig"]["responseMimeType"], plain["generationConfig"]["responseJsonSchema"]
    assert body == plain | {"tools": [{"googleSearch": {}}]}


def test_openrouter_s_tool_has_a_ceiling_and_exclusions() -> None:
    plain, body = sent(given(OPENROUTER, None)), sent(given(OPENROUTER))
    del plain["response_format"]
    parameters = {"max_uses": 4, "excluded_domains": ["bad.example", "wiki.example/answers"]}
    assert body == plain | {"tools": [{"type": "openrouter:web_search", "parameters": parameters}]}
    assert sent(given(OPENROUTER, NativeSearch(1)))["tools"][0]["parameters"] == {"max_uses": 1}


@pytest.mark.parametrize("dialect", sorted(NATIVE_SEARCH))
def test_nothing_but_research_is_ever_given_a_search(dialect: Dialect) -> None:
    messages = [*MESSAGES.values(), QueriesMessage.of(SUBJECT, "Is it alive?", 2)]
    for message in messages:
        settings: dict[str, Any] = {"dialect": dialect, "prompt": PromptTexts("Play.", "a", "b", "Write queries.")}
        plain, native = (
            DIALECTS[dialect].build(route(message.role, native=it, **settings), message, 5)  # type: ignore[arg-type]
            for it in (None, NATIVE)
        )
        assert plain == native and b'"tools"' not in plain.body


def test_which_dialects_search_and_which_of_them_under_a_ceiling() -> None:
    assert set(NATIVE_SEARCH) == set(Dialect) - {Dialect.OPENAI_CHAT} and NATIVE_SEARCH - {GEMINI} == SEARCH_CAPPED
    with pytest.raises(RouteRefused, match="openai-chat has no search of its own"):
        host(Role.ORACLE, given(Dialect.OPENAI_CHAT))


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ORACLE])
def test_no_other_role_s_route_may_have_one(role: Role) -> None:
    with pytest.raises(RouteRefused, match="only the Oracle searches"):
        host(role, route(role, dialect=ANTHROPIC, native=NATIVE))


# --- replies, made up


def responses(*items: dict[str, Any], text: str = ANSWER, annotations: Any = ()) -> dict[str, Any]:
    body = BODIES[RESPONSES](Said(text))
    body["output"][1]["content"][0]["annotations"] = list(annotations)
    body["output"][1:1] = items
    return body


def call(kind: str = "search", status: str = "completed", **action: Any) -> dict[str, Any]:
    return {"type": "web_search_call", "id": "w", "status": status, "action": {"type": kind, **action}}


def anthropic(*blocks: dict[str, Any], text: str = ANSWER, citations: Any = ()) -> dict[str, Any]:
    body = BODIES[ANTHROPIC](Said(text))
    body["content"][0]["citations"] = list(citations)
    body["content"][0:0] = blocks
    return body


def hit(url: Any, title: Any = "T") -> dict[str, Any]:
    return {"type": "web_search_result", "url": url, "title": title, "page_age": None, "encrypted_content": "E"}


def hits(*items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "web_search_tool_result", "tool_use_id": "s1", "content": list(items)}


FAILED = hits() | {"content": {"type": "web_search_tool_result_error", "error_code": "unavailable"}}
USE = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}


def gemini(*webs: Any, queries: Any = ("q",), text: str = ANSWER) -> dict[str, Any]:
    body = BODIES[GEMINI](Said(text))
    body["candidates"][0]["groundingMetadata"] = {"webSearchQueries": queries, "groundingChunks": [{"web": web} for web in webs]}
    return body


def openrouter(*citations: Any, searches: int = 1, text: str = ANSWER) -> dict[str, Any]:
    body = BODIES[OPENROUTER](Said(text))
    body["choices"][0]["message"]["annotations"] = [{"type": "url_citation", "url_citation": citation} for citation in citations]
    return body | {"usage": {"prompt_tokens": 1, "completion_tokens": 1, "server_tool_use_details": {"web_search_requests": searches}}}


def test_sources_of_responses_are_addresses_without_text_each_once() -> None:
    body = responses(
        call(query="a", sources=[{"type": "url", "url": "https://a.example/"}, {"type": "api", "name": "weather"}]),
        call("open_page", url="https://b.example/x?y=1&utm_source=openai"),
        call("find_in_page", url="https://c.example/", pattern="p"),
        call(status="failed"),
        annotations=[{"type": "url_citation", "url": "https://a.example/?utm_source=openai", "title": "A"}],
    )
    urls = ["https://a.example/", "https://b.example/x?y=1", "https://c.example/"]
    got = browsed(RESPONSES, body)
    assert [source.url for source in got.sources] == urls and got.searches == 1 and not got.barred
    assert {(source.text, source.whole) for source in got.sources} == {("", False)}
    assert read(RESPONSES, body).usage == Usage(searches=2, pages=1)
    # The mark is taken off before the comparison, so that the citation's title goes to the page that was found first.
    assert got.sources[0].title == "A"


@pytest.mark.parametrize("dialect", [RESPONSES, OPENROUTER])
@pytest.mark.parametrize("mark", ["", "?utm_source=openai"])
def test_an_address_is_cited_with_or_without_the_mark_of_its_search(dialect: Dialect, mark: str) -> None:
    sources = browsed(dialect, MADE[dialect]("https://a.example/?utm_source=openai", "T")).sources
    said = {"answer": "NO", "basis": "evidence", "statement": "", "evidence": [{"url": "https://a.example/" + mark, "excerpt": "Ice."}]}
    answer = researched_answer(json.dumps(said), tuple(Token), sources)
    assert answer is not None and answer.evidence == (Cited(1, "Ice."),)


def test_sources_of_anthropic_have_the_passages_that_were_cited() -> None:
    citations = [
        {"type": "web_search_result_location", "url": "https://a.example/", "title": "A", "cited_text": passage, "encrypted_index": "i"}
        for passage in ("It is ice.", "It is ice.", "It is rock.", " ")
    ]
    got = browsed(ANTHROPIC, anthropic(USE, hits(hit("https://a.example/", "A"), hit("https://b.example/")), FAILED, citations=citations))
    assert got == Browsed(
        1, (Source("https://a.example/", "A", "It is ice.\n...\nIt is rock.", False), Source("https://b.example/", "T", "", False)), False
    )


def test_sources_of_gemini_are_redirects_told_by_their_names() -> None:
    redirect = "https://redirect.example/r/"
    webs = [
        {"uri": redirect + "1", "title": "a.example", "domain": "a.example"},
        {"uri": redirect + "2", "title": "[A] page's name", "domain": "www.bad.example"},
        {"uri": redirect + "3", "title": "BAD.example"},
        None,
    ]
    got = browsed(GEMINI, gemini(*webs, queries=["q", "r"]))
    assert got == Browsed(2, (Source(redirect + "1", "a.example", "", False),), True)
    assert read(GEMINI, gemini(*webs, queries=["q", "r"])).usage.searches == 2
    assert not browsed(GEMINI, gemini(webs[0])).barred and browsed(GEMINI, gemini({"uri": redirect, "title": "Deep 20 Bench"})).barred
    assert browsed(GEMINI, gemini(webs[0], queries=None)).searches == 1


def test_sources_of_openrouter_are_whole_where_it_gives_text() -> None:
    got = browsed(OPENROUTER, openrouter({"url": "https://a.example/", "title": "", "content": "Ice."}, {"url": "https://b.example/"}))
    assert got == Browsed(1, (Source("https://a.example/", "", "Ice.", True), Source("https://b.example/", "", "", False)), False)
    passage = {"url": "https://a.example/", "title": "A", "content": "Ice.", "start_index": 3, "end_index": 9}
    assert browsed(OPENROUTER, openrouter(passage)).sources == (Source("https://a.example/", "A", "Ice.", False),)
    assert browsed(OPENROUTER, openrouter(searches=2)) == Browsed(2, (), False)
    assert browsed(OPENROUTER, openrouter({"url": "https://a.example/"}, searches=0)).searches == 1


@pytest.mark.parametrize("dialect", sorted(NATIVE_SEARCH))
def test_no_search_at_all_completes_and_says_so(dialect: Dialect) -> None:
    assert read(dialect, BODIES[dialect](Said(ANSWER))).outcome == Completed(ANSWER, Browsed(0, (), False))


def test_searches_that_all_failed_are_none() -> None:
    assert browsed(ANTHROPIC, anthropic(USE, FAILED)) == Browsed(0, (), False)
    assert browsed(RESPONSES, responses(call(status="failed"))).searches == 0
    assert browsed(ANTHROPIC, anthropic(USE, hits())).searches == 1, "no hits is no failure"


def test_what_was_said_before_the_last_search_is_no_answer() -> None:
    text = {"type": "text", "text": "Let me look."}
    assert read(ANTHROPIC, anthropic(text, USE, hits(), text, USE, hits())).outcome == Completed(ANSWER, Browsed(2, (), False))
    unlabelled = BODIES[RESPONSES](Said("Let me look."))["output"][1]
    assert read(RESPONSES, responses(unlabelled, call())).outcome == Completed(ANSWER, Browsed(1, (), False))
    stopped = anthropic(text, USE) | {"stop_reason": "max_tokens"}
    stopped["content"].pop()
    assert read(ANTHROPIC, stopped).outcome == Truncated(None, "length", reasoning_only=True)


def test_an_answer_in_pieces_is_one_text() -> None:
    body = anthropic(USE, hits(), {"type": "text", "text": '{"answer":', "citations": None}, text='"NO"}')
    outcome = read(ANTHROPIC, body).outcome
    assert isinstance(outcome, Completed) and outcome.text == ANSWER


def test_other_ends_stay_what_they_are() -> None:
    assert read(ANTHROPIC, anthropic(USE, hits(), text="No.") | {"stop_reason": "refusal"}).outcome == Refused("No.")
    body = gemini()
    body["candidates"][0]["finishReason"] = "TOO_MANY_TOOL_CALLS"
    assert read(GEMINI, body).outcome == Truncated(ANSWER, "other", False)


MADE: dict[Dialect, Callable[[Any, Any], dict[str, Any]]] = {
    RESPONSES: lambda url, title: responses(call(sources=[{"url": url}]), annotations=[{"url": url, "title": title}]),
    ANTHROPIC: lambda url, title: anthropic(
        USE, hits(hit(url, title)), citations=[{"url": url, "title": title, "cited_text": "x\ud800" * 99}]
    ),
    GEMINI: lambda url, title: gemini({"uri": url, "title": title}),
    OPENROUTER: lambda url, title: openrouter({"url": url, "title": title, "content": "x\ud800" * 99}),
}
NEVER = ["javascript:alert(1)", "https://a.example/\ud800", "https://x.example/a b", "https://x.example/" + "y" * 3000, "", None, 7, {}]
NEVER += ["https://[broken", "https://a%5b.example/", "https://bad.example/" + "http:/" * 8000, "https://user@bad.example/"]
EXCLUDED = ["https://archive.example/2020/bad.example/x", "https://bad-example.translate.goog/x"]
EXCLUDED += ["https://bad.example/", "https://www.BAD.example./x", "https://wiki.example/answers/1", "https://github.com/mindalyze%2Dcom/x"]


@pytest.mark.parametrize("dialect", sorted(NATIVE_SEARCH))
@pytest.mark.parametrize("url", NEVER)
def test_what_is_no_address_is_no_source(dialect: Dialect, url: Any) -> None:
    got = browsed(dialect, MADE[dialect](url, "T"))
    assert (got.sources, got.barred) == ((), False)


@pytest.mark.parametrize("dialect", sorted(NATIVE_SEARCH))
@pytest.mark.parametrize("url", EXCLUDED)
def test_an_excluded_page_is_no_source_and_is_told(dialect: Dialect, url: str) -> None:
    assert browsed(dialect, MADE[dialect](url, "T")) == Browsed(1, (), True)


@pytest.mark.parametrize("dialect", sorted(NATIVE_SEARCH))
def test_titles_and_texts_are_cut_and_can_be_stored(dialect: Dialect) -> None:
    (source,) = browsed(dialect, MADE[dialect]("https://a.example/", "t\ud800" * 999)).sources
    assert source.title == ("t\ufffd" * 999)[:TITLE_MAX]
    assert source.text == (("x\ufffd" * 99)[:60] if dialect in (ANTHROPIC, OPENROUTER) else "")


def test_a_name_is_judged_as_far_as_it_is_kept() -> None:
    for name in ("http:/" * 20_000, "x" * TITLE_MAX + " deep20ray", "https://[broken", "not bad.example at all"):
        gathered = Gathered(NATIVE)
        assert not gathered.named([None, name]) and not gathered.barred
    for name in (" bad.example ", "www.bad.example.", "bad.example/page", "Deep 20 Ray" + " x" * 20_000):
        gathered = Gathered(NATIVE)
        assert gathered.named([name]) and gathered.barred


def test_sources_are_at_most_so_many_and_an_excluded_one_is_seen_past_them() -> None:
    items = [hit(f"https://a.example/{number}") for number in range(SOURCES_MAX + 1)]
    got = browsed(ANTHROPIC, anthropic(USE, hits(*items, hit("https://bad.example/"))))
    assert len(got.sources) == SOURCES_MAX and got.barred


@pytest.mark.parametrize("dialect", sorted(NATIVE_SEARCH))
def test_a_search_that_was_given_to_nobody_else_stays_a_fault(dialect: Dialect) -> None:
    body = MADE[dialect]("https://a.example/", "T")
    for role in Role:
        assert isinstance(read(dialect, body, None, role).outcome, Malformed)
        if role is not Role.ORACLE:
            assert isinstance(read(dialect, body, NATIVE, role).outcome, Malformed)


def test_other_tools_are_a_fault_for_a_searching_oracle_too() -> None:
    fetch = {"type": "server_tool_use", "id": "f", "name": "web_fetch", "input": {}}
    code = {"type": "code_execution_tool_result", "tool_use_id": "c", "content": {}}
    cases: list[tuple[Dialect, Any]] = [
        (ANTHROPIC, anthropic(fetch)),
        (ANTHROPIC, anthropic(code)),
        (ANTHROPIC, anthropic() | {"usage": {"server_tool_use": {"web_fetch_requests": 1}}}),
        (RESPONSES, responses({"type": "function_call", "name": "f"})),
        (OPENROUTER, openrouter() | {"usage": {"server_tool_use_details": {"web_fetch_requests": 1}}}),
    ]
    for dialect, body in cases:
        outcome = read(dialect, body).outcome
        assert isinstance(outcome, Malformed) and "tools" in outcome.detail


# --- usage


def test_searches_and_pages_are_counted_where_each_provider_says_them() -> None:
    tokens = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    assert read_responses_usage(tokens, {"web_search": {"num_requests": 5}}, 2, 1) == Usage(3, 0, 0, 0, 4, 0, 5, 1)
    assert read_responses_usage(tokens, None, 2) == Usage(3, 0, 0, 0, 4, 0, 2, 0)
    used = {"server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 3}}
    assert read_anthropic_usage({"input_tokens": 3, "output_tokens": 4, **used}) == Usage(3, 0, 0, 0, 4, 0, 2, 3)
    grounded = {"promptTokenCount": 3, "toolUsePromptTokenCount": 5, "candidatesTokenCount": 4, "totalTokenCount": 12}
    assert read_gemini_usage(grounded, 2) == Usage(8, 0, 0, 0, 4, 0, 2)
    details = {"tool_calls_requested": 9, "tool_calls_executed": 4, "web_search_requests": 1, "web_fetch_requests": 3}
    assert read_usage({"prompt_tokens": 3, "completion_tokens": 4, "server_tool_use_details": details}) == Usage(3, 0, 0, 0, 4, 0, 1, 3)


def test_a_meter_that_one_of_two_replies_leaves_out_is_unknown_in_their_sum() -> None:
    assert summed(Usage(1, 2, 3, 4, 5, 6, 7, 8), Usage(1, 1, 1, 1, 1, 1, 1, 1)) == Usage(2, 3, 4, 5, 6, 7, 8, 9)
    assert summed(Usage(1, 2, 3, 4, None, 6, 1), Usage(searches=2)) == Usage(searches=3)
