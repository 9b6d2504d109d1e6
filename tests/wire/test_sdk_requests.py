"""What our dialects send, held against the vendors' own packages: against their types, and against the bodies that they send."""

import json
from itertools import product
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request

from deep20ray.answers import Role
from deep20ray_actors.config import AnthropicSettings, Dialect, LiteralCredential, NativeSearch, PromptTexts, RouteConfig, Sampling
from deep20ray_actors.messages import ChatMessage, QueriesMessage, ResearchMessage
from deep20ray_actors.outcomes import Completed
from deep20ray_actors.providers.dialects import DIALECTS, NATIVE_SEARCH, SEARCH_CAPPED
from deep20ray_actors.providers.features import Feature
from tests.actors.dialects import BASES, BODIES, PATHS, Said
from tests.actors.support import MESSAGES, SUBJECT, call, host, results_of, route
from tests.wire import sdk

PROMPT = PromptTexts("Play.", "Labels mean this.", "Mind the format.", "Write queries.")
ALL: list[ChatMessage] = [
    *MESSAGES.values(),  # type: ignore[list-item]
    QueriesMessage.of(SUBJECT, "Is it alive?", 3),
    ResearchMessage.of(SUBJECT, "Is it alive?", 3),
]
ASKED = ALL[:-1]
"""What needs no search of the provider's own."""
RESEARCH = ALL[-1]
EFFORTS: dict[Dialect, tuple[str | None, ...]] = {
    dialect: (None, *(("low", "high", "max") if dialect is Dialect.ANTHROPIC else ("none", "minimal", "low", "high", "xhigh")))
    for dialect in Dialect
}
FULL: dict[str, Any] = {
    "sampling": Sampling(0.5, 0.9),
    "effort": "low",
    "anthropic": AnthropicSettings("bearer", "2026-10-21", "adaptive"),
    "upstreams": ("anthropic", "amazon-bedrock"),
}


def name(message: ChatMessage) -> str:
    return message.kind


def settings(dialect: Dialect) -> list[dict[str, Any]]:
    """Every combination of what a route can set."""
    samplings = (Sampling(), Sampling(temperature=0.5), Sampling(top_p=0.9), Sampling(0.0, 1.0))
    thinkings = (None, "adaptive", "disabled") if dialect is Dialect.ANTHROPIC else (None,)
    upstreams = ((), ("a", "b")) if dialect is Dialect.OPENROUTER else ((),)
    limits = ("max_completion_tokens", "max_tokens") if dialect in (Dialect.OPENAI_CHAT, Dialect.OPENROUTER) else ("max_completion_tokens",)
    return [
        {
            "sampling": sampling,
            "effort": effort,
            "anthropic": AnthropicSettings(thinking=thinking),  # type: ignore[arg-type]
            "upstreams": only,
            "output_limit_field": limit,
            "send_seed": seed,
        }
        for sampling, effort, thinking, only, limit, seed in product(
            samplings, EFFORTS[dialect], thinkings, upstreams, limits, (True, False)
        )
    ]


def config_of(dialect: Dialect, message: ChatMessage, **more: Any) -> RouteConfig:
    return route(message.role, dialect=dialect, prompt=PROMPT, **more)


def body_of(dialect: Dialect, message: ChatMessage, **more: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(DIALECTS[dialect].build(config_of(dialect, message, **more), message, 7).body)
    return body


@pytest.mark.parametrize("message", ALL, ids=name)
@pytest.mark.parametrize("dialect", Dialect)
def test_every_body_fits_the_package_s_types(dialect: Dialect, message: ChatMessage) -> None:
    for combination in settings(dialect):
        sdk.check(dialect, body_of(dialect, message, **combination))


def objects(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the objects of a body stand, those of a schema apart: there, anything goes."""
    if isinstance(value, dict):
        inner = [(key, value[key]) for key in value if key not in ("schema", "responseJsonSchema", "provider")]
        return [path, *(found for key, each in inner for found in objects(each, (*path, key)))]
    return [found for index, each in enumerate(value) for found in objects(each, (*path, index))] if isinstance(value, list) else []


@pytest.mark.parametrize("dialect", Dialect)
def test_the_check_refuses_a_member_that_the_package_doesn_t_know_wherever_it_stands(dialect: Dialect) -> None:
    places = [place for place in objects(body_of(dialect, ALL[0], **FULL)) if not set(place) & sdk.UNTYPED[dialect]]
    assert len(places) >= 5
    for place in places:
        body = body_of(dialect, ALL[0], **FULL)
        holder: Any = body
        for step in place:
            holder = holder[step]
        holder["depth"] = 3
        with pytest.raises(sdk.ValidationError):
            sdk.check(dialect, body)


async def both(server: HTTPServer, dialect: Dialect, message: ChatMessage, **more: Any) -> tuple[Request, Request]:
    """The same call by our host and by the package, as the server saw them: (ours, theirs)."""
    server.expect_request(PATHS[dialect], method="POST").respond_with_json(BODIES[dialect](Said("{}")))
    config = route(
        message.role, server.url_for(BASES[dialect]), dialect=dialect, prompt=PROMPT, credential=LiteralCredential("key-1"), **more
    )
    (result,) = await results_of(host(message.role, config), [call(message)])
    assert isinstance(result.outcome, Completed), result.outcome
    sdk.WRITERS[dialect](sdk.Ask(config.base_url, config, message))
    (ours, _), (theirs, _) = server.log
    return ours, theirs


def alike(dialect: Dialect, body: dict[str, Any]) -> dict[str, Any]:
    """A body without the differences that mean nothing to its service, all of them listed here."""
    match dialect:
        case Dialect.ANTHROPIC:
            # The package passes a plain text on as a string, and neighbouring turns of one speaker one by one. The service documents
            # a string as short for one block of text and joins such turns; we say so ourselves, so that the speakers take turns.
            texts = [{"type": "text"}]
            turns = [
                (turn["role"], block["text"])
                for turn in body["messages"]
                for block in ([{**texts[0], "text": turn["content"]}] if isinstance(turn["content"], str) else turn["content"])
            ]
            return {**body, "messages": turns}
        case Dialect.GEMINI:
            # Neighbouring turns as above. And the package writes this one name as its Python field; protocol buffers' JSON takes both.
            turns = [(turn["role"], part["text"]) for turn in body["contents"] for part in turn["parts"]]
            config = dict(body["generationConfig"])
            if "thinkingConfig" in config:
                spelt = {"thinking_level": "thinkingLevel", "thinking_budget": "thinkingBudget"}
                config["thinkingConfig"] = {spelt.get(key, key): value for key, value in config["thinkingConfig"].items()}
            return {**body, "contents": turns, "generationConfig": config}
        case Dialect.OPENAI_CHAT | Dialect.OPENAI_RESPONSES | Dialect.OPENROUTER:
            return body


@pytest.mark.shows(Feature.STRUCTURED_OUTPUT, *Dialect)
@pytest.mark.shows(Feature.EFFORT, *Dialect)
@pytest.mark.shows(Feature.SAMPLING, *Dialect)
@pytest.mark.shows(Feature.OUTPUT_LIMIT, *Dialect)
@pytest.mark.shows(Feature.UPSTREAM, Dialect.OPENROUTER)
@pytest.mark.shows(Feature.SEED, Dialect.OPENAI_CHAT, Dialect.GEMINI, Dialect.OPENROUTER)
@pytest.mark.parametrize(
    ("message", "more"),
    [
        (ALL[0], {}),
        (ALL[0], FULL | {"send_seed": False, "effort": "high", "output_limit_field": "max_tokens"}),
        *((m, FULL) for m in ASKED),
    ],
    ids=["plain", "no seed", *map(name, ASKED)],
)
@pytest.mark.parametrize("dialect", Dialect)
async def test_our_body_is_the_package_s(httpserver: HTTPServer, dialect: Dialect, message: ChatMessage, more: dict[str, Any]) -> None:
    ours, theirs = await both(httpserver, dialect, message, **more)
    assert ours.path == theirs.path == PATHS[dialect] and ours.query_string == theirs.query_string == b""
    assert alike(dialect, json.loads(ours.get_data())) == alike(dialect, json.loads(theirs.get_data()))


async def test_gemini_s_stable_version_is_a_base_url_away(httpserver: HTTPServer) -> None:
    """The package speaks v1 by default, and v1beta where it is told to."""
    path = "/v1/models/model-1:generateContent"
    httpserver.expect_request(path).respond_with_json(BODIES[Dialect.GEMINI](Said("{}")))
    config = route(base_url=httpserver.url_for("/v1"), dialect=Dialect.GEMINI, prompt=PROMPT, **FULL)
    (result,) = await results_of(host(Role.GUESSER, config), [call(ALL[0])])
    sdk.WRITERS[Dialect.GEMINI](sdk.Ask(config.base_url, config, ALL[0]))
    (ours, _), (theirs, _) = httpserver.log
    assert result.outcome == Completed("{}") and ours.path == theirs.path == path
    assert alike(Dialect.GEMINI, json.loads(ours.get_data())) == alike(Dialect.GEMINI, json.loads(theirs.get_data()))


SEARCHES = (NativeSearch(4), NativeSearch(7, ("bad.example", "wiki.example/answers")))
VERSIONS: tuple[Any, ...] = ("web_search_20250305", "web_search_20260209", "web_search_20260318")


def researching(dialect: Dialect) -> list[dict[str, Any]]:
    """A researching Oracle's settings."""
    versions = VERSIONS if dialect is Dialect.ANTHROPIC else VERSIONS[:1]
    return [
        {**base, "native": native, "anthropic": AnthropicSettings("bearer", "2026-10-21", search_version=version)}
        for base, native, version in product(({}, FULL), SEARCHES, versions)
    ]


@pytest.mark.shows(Feature.NATIVE_SEARCH, *NATIVE_SEARCH)
@pytest.mark.shows(Feature.SEARCH_CEILING, *SEARCH_CAPPED)
@pytest.mark.parametrize("dialect", sorted(NATIVE_SEARCH))
async def test_a_search_is_asked_for_as_the_package_does(httpserver: HTTPServer, dialect: Dialect) -> None:
    for more in researching(dialect):
        httpserver.clear()
        sdk.check(dialect, body_of(dialect, RESEARCH, **more))
        ours, theirs = await both(httpserver, dialect, RESEARCH, **more)
        assert alike(dialect, json.loads(ours.get_data())) == alike(dialect, json.loads(theirs.get_data()))


SAID_BY_THEM = {"X-Goog-Api-Client", "Connection"}
"""What the packages add to say what they are, X-Stainless-* besides, and what HTTP/1.1 means anyway."""


@pytest.mark.parametrize("dialect", Dialect)
async def test_our_headers_are_the_package_s_but_for_what_it_says_about_itself(httpserver: HTTPServer, dialect: Dialect) -> None:
    ours, theirs = await both(httpserver, dialect, ALL[0], **FULL)
    # Ours asks for JSON and for no compression; its name has no version, so that two runs look alike.
    own = {"Accept", "Accept-Encoding", "User-Agent", "Content-Length", "Host"}
    assert {key: value for key, value in ours.headers.items() if key not in own} == {
        key: value for key, value in theirs.headers.items() if key not in own | SAID_BY_THEM and not key.lower().startswith("x-stainless-")
    }
