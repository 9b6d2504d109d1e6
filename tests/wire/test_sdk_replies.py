"""What our dialects read, held against the vendors' own packages, which get the same bytes from the same server."""

import asyncio
from dataclasses import astuple
from typing import Any

import anthropic
import openai
import pytest
from google.genai import errors as google
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from deep20ray.answers import Role
from deep20ray_actors.config import Dialect, LiteralCredential, NativeSearch, PromptTexts, RouteConfig
from deep20ray_actors.messages import ResearchMessage
from deep20ray_actors.outcomes import (
    CallResult,
    Completed,
    Credentials,
    Empty,
    Malformed,
    QuotaExhausted,
    Refused,
    Rejected,
    ServerFault,
    Throttled,
    Truncated,
    Usage,
    is_fault,
)
from deep20ray_actors.providers.features import Feature
from tests.actors import recorded
from tests.actors.dialects import BASES, BODIES, PATHS, Said
from tests.actors.support import MESSAGES, SUBJECT, call, dumped, host, results_of, route
from tests.actors.test_dialects import CUT, ENDS, FAULTS, LENGTH, NORMAL, OTHER, TOOLS
from tests.wire import sdk

RESEARCH = ResearchMessage.of(SUBJECT, "Is it alive?", 3)
PROMPT = PromptTexts("Play.", "Labels mean this.", "Mind the format.", "Write queries.")


def serve(server: HTTPServer, dialect: Dialect, *replies: tuple[int, Any]) -> None:
    """Gives these replies in turn, and from the first on again."""
    given = iter(range(10**6))

    def handler(request: Request) -> Response:
        request.get_data()
        status, body = replies[next(given) % len(replies)]
        return Response(dumped(body), status, content_type="application/json")

    server.expect_request(PATHS[dialect], method="POST").respond_with_handler(handler)


def config_of(server: HTTPServer, dialect: Dialect, *, searching: bool = False) -> RouteConfig:
    role = Role.ORACLE if searching else Role.GUESSER
    native = NativeSearch(20) if searching else None
    base, key = server.url_for(BASES[dialect]), LiteralCredential("key-1")
    return route(role, base, dialect=dialect, prompt=PROMPT, attempts=1, native=native, credential=key)


def ours(config: RouteConfig) -> CallResult:
    message = RESEARCH if config.native else MESSAGES[config.role]
    (result,) = asyncio.run(results_of(host(config.role, config), [call(message)]))
    return result


def theirs(config: RouteConfig) -> sdk.Told:
    """What the package says.

    Raises:
        sdk.ERRORS: it takes the reply for an error.
    """
    message: Any = RESEARCH if config.native else MESSAGES[config.role]
    return sdk.READERS[config.dialect](sdk.WRITERS[config.dialect](sdk.Ask(config.base_url, config, message)))


def compare(result: CallResult, told: sdk.Told) -> None:
    """One reply, read twice."""
    outcome, audit = result.outcome, result.audit
    assert audit.finish_reason == told.finish
    # OpenRouter's provider stands behind the model's name with us, and nowhere in OpenAI's types.
    assert told.model is not None and str(audit.served_model).split("@")[0] == told.model
    shown = told.text if told.text and told.text.strip() else None
    match outcome:
        case Completed():
            assert outcome.text == told.text and told.refusal is None
        case Refused():
            assert outcome.text == (shown or told.refusal)
        case Truncated():
            assert outcome.text == shown
        case Empty():
            assert shown is None
        case _:
            raise AssertionError(f"a fault out of what the package reads: {outcome}")
    totals(audit.usage, told)


def totals(usage: Usage, told: sdk.Told) -> None:
    """Disjoint meters add up to what the package shows as sums."""
    meters = astuple(usage)[:6]
    assert (told.input is None) == (None in meters)
    if told.input is not None:
        assert (sum(meters[:4]), sum(meters[4:])) == (told.input, told.output)
        assert told.total is None or sum(meters) == told.total


USAGE: dict[Dialect, dict[str, Any]] = {
    Dialect.OPENAI_RESPONSES: {
        "usage": {
            "input_tokens": 50,
            "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 5},
            "output_tokens": 30,
            "output_tokens_details": {"reasoning_tokens": 12},
            "total_tokens": 80,
        }
    },
    Dialect.ANTHROPIC: {
        "usage": {
            "input_tokens": 25,
            "cache_read_input_tokens": 20,
            "cache_creation_input_tokens": 5,
            "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 2},
            "output_tokens": 30,
            "output_tokens_details": {"thinking_tokens": 12},
        }
    },
    Dialect.GEMINI: {
        "usageMetadata": {"promptTokenCount": 50, "cachedContentTokenCount": 20, "candidatesTokenCount": 18, "thoughtsTokenCount": 12}
        | {"totalTokenCount": 80}
    },
}
_CHAT_USAGE = {
    "usage": {
        "prompt_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 5},
        "completion_tokens": 30,
        "completion_tokens_details": {"reasoning_tokens": 12},
        "total_tokens": 80,
    }
}
USAGE |= {Dialect.OPENAI_CHAT: _CHAT_USAGE, Dialect.OPENROUTER: _CHAT_USAGE}
SPOKEN = [*ENDS, *((Dialect.OPENAI_CHAT, word, kind) for word, kind in (("stop", NORMAL), ("length", LENGTH), ("content_filter", CUT)))]


@pytest.mark.shows(Feature.FILTERED, *Dialect)
@pytest.mark.shows(Feature.TRUNCATED, *Dialect)
@pytest.mark.shows(Feature.EMPTY, *Dialect)
@pytest.mark.shows(Feature.USAGE, *Dialect)
@pytest.mark.shows(Feature.CACHED_INPUT, *Dialect)
@pytest.mark.shows(Feature.REFUSAL, Dialect.ANTHROPIC)
@pytest.mark.filterwarnings("ignore:.* is not a valid FinishReason")
@pytest.mark.parametrize(("dialect", "word", "kind"), [end for end in SPOKEN if end[2] != TOOLS])
def test_scripted_replies_are_read_alike(httpserver: HTTPServer, dialect: Dialect, word: str, kind: str) -> None:
    for text, reasoning in (('{"a": "ü"}', "hm"), ("two\nlines", None), (None, "hm")):
        body = BODIES[dialect](Said(text, word, reasoning)) | USAGE[dialect]
        httpserver.clear()
        serve(httpserver, dialect, (200, body))
        config = config_of(httpserver, dialect)
        result, told = ours(config), theirs(config)
        compare(result, told)
        assert (told.input, told.output) == (50, 30)
        expected = {NORMAL: Completed if text else Empty, LENGTH: Truncated, CUT: Refused, OTHER: Truncated}[kind]
        assert type(result.outcome) is expected


@pytest.mark.parametrize("dialect", Dialect)
def test_scripted_replies_are_what_the_package_calls_valid(dialect: Dialect) -> None:
    for said in (Said("{}"), Said("{}", reasoning="hm"), Said(None, reasoning="hm")):
        sdk.MODELS[dialect].model_validate(BODIES[dialect](said) | USAGE[dialect])


@pytest.mark.shows(Feature.REFUSAL, Dialect.OPENAI_CHAT, Dialect.OPENAI_RESPONSES, Dialect.OPENROUTER)
def test_a_refusal_in_its_own_part_is_read_alike(httpserver: HTTPServer) -> None:
    said = BODIES[Dialect.OPENAI_RESPONSES](Said("x"))
    said["output"][1]["content"] = [{"type": "refusal", "refusal": "I can't."}]
    chat = BODIES[Dialect.OPENAI_CHAT](Said(None))
    chat["choices"][0]["message"]["refusal"] = "I can't."
    for dialect, body in ((Dialect.OPENAI_RESPONSES, said), (Dialect.OPENAI_CHAT, chat), (Dialect.OPENROUTER, chat)):
        httpserver.clear()
        serve(httpserver, dialect, (200, body))
        result, told = ours(config_of(httpserver, dialect)), theirs(config_of(httpserver, dialect))
        compare(result, told)
        assert result.outcome == Refused("I can't.") and told.refusal == "I can't."


def test_a_blocked_prompt_is_read_alike(httpserver: HTTPServer) -> None:
    serve(httpserver, Dialect.GEMINI, (200, {"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "served"}))
    config = config_of(httpserver, Dialect.GEMINI)
    compare(ours(config), theirs(config))


NEWER = {
    # The service says which tier served; the package's types for v1 have no place for it.
    "usageMetadata.serviceTier",
    # Recorded before these counts existed.
    "usage.input_tokens_details.cache_write_tokens",
    "usage.server_tool_use.web_fetch_requests",
}
"""Where recorded bodies differ from the packages' types, none of which matters to what is read."""


@recorded.needed
@pytest.mark.parametrize(("name", "number"), recorded.KEYS)
def test_recorded_replies_are_what_the_package_calls_valid(name: str, number: int) -> None:
    exchange = recorded.exchanges(name)[number]
    if exchange.status != 200:
        return
    wrong: set[str] = set()
    try:
        sdk.MODELS[exchange.dialect].model_validate(exchange.body)
    except sdk.ValidationError as error:
        wrong = {".".join(map(str, each["loc"])) for each in error.errors()}
    assert wrong <= NEWER


@recorded.needed
@pytest.mark.parametrize(("name", "number"), [key for key in recorded.KEYS if not key[0].startswith("test_pause_turn")])
def test_recorded_exchanges_are_read_alike(httpserver: HTTPServer, name: str, number: int) -> None:
    """Over sockets, error bodies too."""
    exchange = recorded.exchanges(name)[number]
    assert exchange.path.replace("gemini-2.5-pro", "model-1") == PATHS[exchange.dialect]
    serve(httpserver, exchange.dialect, (exchange.status, exchange.body))
    config = config_of(httpserver, exchange.dialect, searching=exchange.searched)
    result = ours(config)
    assert result.audit.wire_tries == 1
    if exchange.status == 200:
        compare(result, theirs(config))
        return
    with pytest.raises(sdk.ERRORS) as caught:
        theirs(config)
    assert sdk.status_of(caught.value) == exchange.status
    assert isinstance(result.outcome, Throttled if exchange.status == 429 else Rejected)


@recorded.needed
def test_a_paused_turn_is_read_as_the_package_reads_both_halves(httpserver: HTTPServer) -> None:
    paused, ended = recorded.exchanges("test_pause_turn_web_search_vcr")
    serve(httpserver, Dialect.ANTHROPIC, (200, paused.body), (200, ended.body))
    config = config_of(httpserver, Dialect.ANTHROPIC, searching=True)
    result, halves = ours(config), [theirs(config), theirs(config)]
    assert [half.finish for half in halves] == ["pause_turn", "end_turn"] and result.audit.resumptions == 1
    # What it says between its searches is no answer.
    assert isinstance(result.outcome, Completed) and str(halves[1].text).endswith(result.outcome.text)
    meters = astuple(result.audit.usage)[:6]
    assert sum(meters[:4]) == sum(half.input or 0 for half in halves)
    assert sum(meters[4:]) == sum(half.output or 0 for half in halves)


KINDS: dict[type[Exception], tuple[type, ...]] = {
    openai.RateLimitError: (Throttled, QuotaExhausted),
    openai.BadRequestError: (Rejected,),
    openai.AuthenticationError: (Credentials,),
    openai.PermissionDeniedError: (Credentials, Rejected),
    openai.InternalServerError: (ServerFault,),
    openai.APIStatusError: (QuotaExhausted,),
    anthropic.RateLimitError: (Throttled, QuotaExhausted),
    anthropic.BadRequestError: (Rejected,),
    anthropic.AuthenticationError: (Credentials,),
    anthropic.PermissionDeniedError: (Credentials,),
    anthropic.ConflictError: (ServerFault,),
    anthropic.APIStatusError: (QuotaExhausted, Rejected, ServerFault),
    anthropic.InternalServerError: (ServerFault,),
    google.ClientError: (Throttled, QuotaExhausted, Rejected, Credentials),
    google.ServerError: (ServerFault,),
}
"""What we make of what a package raises as this, its subclasses named first. The packages know no exhausted quota, we do."""


@pytest.mark.parametrize(("dialect", "status", "body", "kind", "retry", "wait"), [fault for fault in FAULTS if fault[1] != 200])
def test_errors_are_errors_of_the_same_kind(
    httpserver: HTTPServer, dialect: Dialect, status: int, body: Any, kind: type, retry: bool, wait: float | None
) -> None:
    serve(httpserver, dialect, (status, body))
    config = config_of(httpserver, dialect)
    outcome = ours(config).outcome
    with pytest.raises(sdk.ERRORS) as caught:
        theirs(config)
    assert sdk.status_of(caught.value) == status
    known = next(KINDS[each] for each in type(caught.value).__mro__ if each in KINDS)
    assert type(outcome) is kind and kind in known


@pytest.mark.parametrize(("dialect", "status", "body", "kind", "retry", "wait"), [fault for fault in FAULTS if fault[1] == 200])
def test_an_error_inside_a_200_is_a_fault_where_the_package_sees_nothing_wrong(
    httpserver: HTTPServer, dialect: Dialect, status: int, body: Any, kind: type, retry: bool, wait: float | None
) -> None:
    serve(httpserver, dialect, (status, body))
    config = config_of(httpserver, dialect)
    assert type(ours(config).outcome) is kind
    made = sdk.WRITERS[dialect](sdk.Ask(config.base_url, config, MESSAGES[Role.GUESSER]))  # type: ignore[arg-type]
    assert isinstance(made, sdk.MODELS[dialect])


@pytest.mark.parametrize("dialect", Dialect)
def test_nonsense_is_no_reply_to_either(httpserver: HTTPServer, dialect: Dialect) -> None:
    httpserver.expect_request(PATHS[dialect]).respond_with_data(b'{"choices": [', content_type="application/json")
    config = config_of(httpserver, dialect)
    assert isinstance(ours(config).outcome, Malformed) and is_fault(ours(config).outcome)
    with pytest.raises((ValueError, *sdk.ERRORS)):
        theirs(config)
