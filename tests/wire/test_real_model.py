"""Three dialects against a real model on a real server: llama.cpp with SmolLM2-135M, which is far too small to play and just right here.

Where this server doesn't do what its protocol says, the test says so: docs/providers.md advises ``openai-chat`` for it.
"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import astuple
from typing import Any

import pytest

from deep20ray.answers import Role, Token
from deep20ray_actors import replies
from deep20ray_actors.config import Dialect, Sampling, Timeouts
from deep20ray_actors.messages import ChatMessage, ReviewerMessage
from deep20ray_actors.outcomes import CallResult, Completed, Rejected, Truncated
from deep20ray_actors.providers.features import Feature, Server
from deep20ray_actors.render import answer_schema
from tests.actors.support import MESSAGES, SUBJECT, call, host, results_of, route
from tests.real_model import play
from tests.wire import sdk

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not play.READY.exists(), reason="no real model is installed; `make test-wire` installs it (about 130 MB)"),
]
CHAT, RESPONSES, ANTHROPIC = SPOKEN = (Dialect.OPENAI_CHAT, Dialect.OPENAI_RESPONSES, Dialect.ANTHROPIC)
LONG = ReviewerMessage.of(SUBJECT, "Is it alive? " * 5000, ())


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with play.server(tmp_path_factory.mktemp("model") / "server.log") as address:
        yield f"{address}/v1"


def asked(url: str, dialect: Dialect, message: ChatMessage, limit: int = 400) -> CallResult:
    config = config_of(url, dialect, message.role, limit)
    (result,) = asyncio.run(results_of(host(message.role, config), [call(message)]))
    return result


def config_of(url: str, dialect: Dialect, role: Role, limit: int) -> Any:
    settings: dict[str, Any] = {"model": play.MODEL, "max_output_tokens": limit, "timeouts": Timeouts(10, 300, 600)}
    return route(role, url, dialect=dialect, sampling=Sampling(temperature=0.0), **settings)


def sums(result: CallResult) -> tuple[int, int]:
    """Input and output tokens; every meter is known."""
    meters = astuple(result.audit.usage)[:6]
    assert None not in meters
    return sum(meters[:4]), sum(meters[4:])


@pytest.mark.hosted(Server.LLAMA_CPP, CHAT)
@pytest.mark.shows(Feature.STRUCTURED_OUTPUT, CHAT)
@pytest.mark.parametrize("role", Role)
def test_chat_s_schema_is_kept_to_by_the_model(url: str, role: Role) -> None:
    message: Any = MESSAGES[role]
    result = asked(url, CHAT, message)
    assert isinstance(result.outcome, Completed), result.outcome
    assert (result.audit.finish_reason, result.audit.served_model, result.audit.wire_tries) == ("stop", play.MODEL, 1)
    assert result.audit.fingerprint and result.audit.seed_sent
    text = result.outcome.text
    schema = answer_schema(message, tuple(Token))[1]
    assert json.loads(text).keys() == schema["properties"].keys()
    match role:
        case Role.REVIEWER | Role.JUDGE:
            assert replies.reviewed_answer(text, tuple(Token)) is not None
        case Role.VALIDATOR:
            assert replies.validated_guess(text) is not None
        case Role.GUESSER | Role.ORACLE:
            pass


@pytest.mark.hosted(Server.LLAMA_CPP, CHAT)
@pytest.mark.hosted(Server.LLAMA_CPP, RESPONSES)
@pytest.mark.hosted(Server.LLAMA_CPP, ANTHROPIC)
@pytest.mark.shows(Feature.TRUNCATED, CHAT, ANTHROPIC)
@pytest.mark.parametrize("dialect", SPOKEN)
@pytest.mark.parametrize("role", [Role.GUESSER, Role.JUDGE])
def test_a_reply_that_ends_and_a_reply_that_is_cut(url: str, dialect: Dialect, role: Role) -> None:
    """The server's gap: its Responses say "completed" of a reply that its limit cut."""
    message: Any = MESSAGES[role]
    whole, cut = asked(url, dialect, message, limit=100), asked(url, dialect, message, limit=5)
    assert isinstance(whole.outcome, Completed | Truncated)
    if isinstance(whole.outcome, Truncated):
        assert whole.outcome.reason == "length" and sums(whole)[1] == 100
    if dialect is RESPONSES:
        assert isinstance(cut.outcome, Completed)
    else:
        assert isinstance(cut.outcome, Truncated) and cut.outcome.reason == "length" and cut.outcome.text
    assert sums(cut)[1] == 5 and sums(cut)[0] == sums(whole)[0] > 20
    assert whole.audit.served_model == cut.audit.served_model == play.MODEL


@pytest.mark.hosted(Server.LLAMA_CPP, RESPONSES)
@pytest.mark.hosted(Server.LLAMA_CPP, ANTHROPIC)
@pytest.mark.parametrize("dialect", [RESPONSES, ANTHROPIC])
def test_a_schema_that_the_server_doesn_t_enforce_makes_no_answer(url: str, dialect: Dialect) -> None:
    """The server's gap: it keeps to schemas in chat alone. What comes out is text like any other, and no answer."""
    result = asked(url, dialect, MESSAGES[Role.JUDGE])  # type: ignore[arg-type]
    assert isinstance(result.outcome, Completed)
    assert replies.reviewed_answer(result.outcome.text, tuple(Token)) is None


@pytest.mark.parametrize("dialect", SPOKEN)
def test_the_package_counts_what_we_count(url: str, dialect: Dialect) -> None:
    message: Any = MESSAGES[Role.VALIDATOR]
    result = asked(url, dialect, message, limit=7)
    config = config_of(url, dialect, Role.VALIDATOR, 7)
    told = sdk.READERS[dialect](sdk.WRITERS[dialect](sdk.Ask(url, config, message)))
    assert sums(result) == (told.input, told.output) and told.output == 7
    assert told.total is None or told.total == sum(sums(result))
    assert (result.audit.finish_reason, result.audit.served_model) == (told.finish, told.model)


@pytest.mark.parametrize("dialect", SPOKEN)
def test_a_prompt_past_the_context_is_refused_once(url: str, dialect: Dialect) -> None:
    result = asked(url, dialect, LONG)
    assert isinstance(result.outcome, Rejected) and result.audit.wire_tries == 1
