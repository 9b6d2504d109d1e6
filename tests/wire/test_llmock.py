"""Manners towards a throttled server, graded by that server: waits kept, hopeless requests sent once. Real time, no time measured.

All cases of a test are asked at once, each as a model of its own by which the server tells them apart.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from deep20ray.answers import Role
from deep20ray_actors.config import Dialect, LiteralCredential
from deep20ray_actors.host import RoleHost, Surroundings
from deep20ray_actors.leases import Lease
from deep20ray_actors.messages import GuesserMessage
from deep20ray_actors.outcomes import Call, CallResult, Completed, Credentials, QuotaExhausted, Rejected, ServerFault, Throttled
from deep20ray_actors.providers.features import Feature
from deep20ray_actors.providers.transport import HttpTransport
from tests.actors.support import MESSAGES, call, host, results_of, route
from tests.wire.llmock import Llmock, llmock

BASES = {
    Dialect.OPENAI_CHAT: "/v1",
    Dialect.OPENAI_RESPONSES: "/v1",
    Dialect.ANTHROPIC: "/anthropic/v1",
    Dialect.GEMINI: "/gemini/v1beta",
}
PATHS = {
    Dialect.OPENAI_CHAT: "/v1/chat/completions",
    Dialect.OPENAI_RESPONSES: "/v1/responses",
    Dialect.ANTHROPIC: "/anthropic/v1/messages",
    Dialect.GEMINI: "/gemini/v1beta/models/*",
}
RETRIED = (408, 409, 429, 500, 502, 503, 504, 529)
REFUSED: dict[int, type] = {
    400: Rejected,
    401: Credentials,
    402: QuotaExhausted,
    403: Credentials,
    404: Rejected,
    413: Rejected,
    422: Rejected,
}


@pytest.fixture(scope="module")
def running() -> Iterator[Llmock]:
    with llmock() as one:
        yield one


@pytest.fixture
def server(running: Llmock) -> Llmock:
    """One server for all tests, each time as new."""
    running.reset()
    return running


def results(server: Llmock, asked: list[tuple[Dialect, str]], attempts: int = 5, **settings: Any) -> list[CallResult]:
    """One call for each (dialect, model), all at once, on real time."""

    async def main() -> list[CallResult]:
        around = Surroundings(time.monotonic, lambda: datetime.now(UTC), asyncio.sleep, random.random)
        routes: dict[str, Any] = {}
        for number, (dialect, model) in enumerate(asked):
            base, key = server.url + BASES[dialect], LiteralCredential("k")
            routes[str(number)] = route(
                base_url=base, route=str(number), dialect=dialect, model=model, credential=key, attempts=attempts, **settings
            )
        worker = RoleHost(Role.GUESSER, routes, around, HttpTransport(sleep=around.sleep, jitter=around.jitter))
        # Each asks something else, or the server would take one for another's second try.
        calls = [
            Call(number, str(number), GuesserMessage(category="thing", variation=f"{number:06x}"), 7, Lease("account", number))
            for number in range(len(asked))
        ]
        return await results_of(worker, calls)

    return asyncio.run(main())


def fail(dialect: Dialect, model: str, status: int, **more: Any) -> dict[str, Any]:
    """An error in the provider's own form, for one model."""
    return {"type": "fail", "status": status, "times": 1, "match": {"path": PATHS[dialect], "model": model}, **more}


def tries(server: Llmock) -> Counter[tuple[str, str]]:
    """Requests on the wire, by path's dialect and model, as the server counted them."""
    named = {path.rstrip("*"): dialect for dialect, path in PATHS.items()}
    seen: Counter[tuple[str, str]] = Counter()
    for request in server.requests():
        (dialect,) = {kind for path, kind in named.items() if request["path"].startswith(path)}
        seen[dialect, request["model"]] += 1
    return seen


def findings(server: Llmock) -> Any:
    return server.verdict()["findings"]


def test_every_status_that_passes_is_tried_again_by_every_dialect(server: Llmock) -> None:
    asked = [(dialect, f"m-{status}") for dialect in BASES for status in RETRIED]
    server.queue(*(fail(dialect, f"m-{status}", status, retry_after=0.3) for dialect in BASES for status in RETRIED))
    got = results(server, asked)
    assert tries(server) == Counter(dict.fromkeys(asked, 2))
    assert findings(server) == []
    for (_, model), result in zip(asked, got, strict=True):
        assert isinstance(result.outcome, Completed), (model, result.outcome)
        assert (result.audit.wire_tries, result.audit.throttles) == (2, int(model == "m-429"))


@pytest.mark.shows(Feature.RETRY_AFTER, *BASES)
def test_a_wait_is_kept_in_seconds_in_milliseconds_and_over_several_tries(server: Llmock) -> None:
    """The server says both retry-after, rounded up, and retry-after-ms; it finds out a client that waits for neither."""
    waits = ((429, 0.2), (503, 1.0), (429, 1.3))
    server.queue(*(fail(dialect, "m", status, retry_after=wait) for dialect in BASES for status, wait in waits))
    got = results(server, [(dialect, "m") for dialect in BASES], attempts=8)
    assert tries(server) == {(dialect, "m"): 4 for dialect in BASES}
    assert findings(server) == []
    assert all(isinstance(result.outcome, Completed) and result.audit.throttles == 2 for result in got)


@pytest.mark.shows(Feature.REFUSED_ONCE, *BASES)
def test_what_is_refused_is_sent_once_by_every_dialect(server: Llmock) -> None:
    asked = [(dialect, f"m-{status}") for dialect in BASES for status in REFUSED]
    server.queue(*(fail(dialect, f"m-{status}", status) for dialect in BASES for status in REFUSED))
    got = results(server, asked)
    assert tries(server) == Counter(dict.fromkeys(asked, 1))
    assert findings(server) == []
    for (_, model), result in zip(asked, got, strict=True):
        assert type(result.outcome) is REFUSED[int(model[2:])], (model, result.outcome)


@pytest.mark.shows(Feature.QUOTA_ONCE, Dialect.OPENAI_CHAT, Dialect.OPENAI_RESPONSES)
def test_exhausted_quota_is_never_tried_again_which_the_server_warns_of_and_we_mean(server: Llmock) -> None:
    """The server can't know that this 429 won't pass, so its warning stands; its errors don't."""
    kinds = [(Dialect.OPENAI_CHAT, "insufficient_quota"), (Dialect.OPENAI_RESPONSES, "billing_hard_limit_reached")]
    server.queue(*(fail(dialect, "m", 429, code=code) for dialect, code in kinds))
    got = results(server, [(dialect, "m") for dialect, _ in kinds])
    assert tries(server) == {(dialect, "m"): 1 for dialect, _ in kinds}
    assert server.verdict()["passed"] and {finding["code"] for finding in findings(server)} == {"gave_up"}
    assert all(isinstance(result.outcome, QuotaExhausted) for result in got)


def test_tries_are_bounded_and_spread_where_nothing_gets_better(server: Llmock) -> None:
    asked = [(dialect, f"m-{status}") for dialect in BASES for status in (500, 503)]
    server.queue(*({**fail(dialect, model, int(model[2:]), retry_after=0), "times": None} for dialect, model in asked))
    got = results(server, asked, attempts=3)
    assert tries(server) == Counter(dict.fromkeys(asked, 3))
    assert findings(server) == []
    assert all(isinstance(result.outcome, ServerFault) and result.audit.wire_tries == 3 for result in got)


def test_a_wait_longer_than_a_call_s_ends_the_call_at_once(server: Llmock) -> None:
    server.queue(*(fail(dialect, "m", 429, retry_after=600) for dialect in BASES))
    got = results(server, [(dialect, "m") for dialect in BASES])
    assert tries(server) == {(dialect, "m"): 1 for dialect in BASES}
    assert all(isinstance(result.outcome, Throttled) and result.outcome.retry_after == 600 for result in got)


def test_a_prompt_past_the_model_s_context_is_refused_once() -> None:
    with llmock("--context-window", "3") as server:
        got = results(server, [(dialect, "m") for dialect in BASES])
        assert tries(server) == {(dialect, "m"): 1 for dialect in BASES}
        assert findings(server) == []
    assert all(isinstance(result.outcome, Rejected) for result in got)


@pytest.mark.parametrize(
    ("options", "asked", "settings"),
    [
        (("--rpm", "30"), [(dialect, "m") for dialect in (Dialect.OPENAI_CHAT, Dialect.ANTHROPIC, Dialect.GEMINI) for _ in range(33)], {}),
        (
            ("--tpm", "60000"),
            [(dialect, "m") for dialect in (Dialect.OPENAI_CHAT, Dialect.ANTHROPIC, Dialect.GEMINI) for _ in range(3)],
            {"max_output_tokens": 21_000},
        ),
    ],
    ids=["requests", "tokens"],
)
def test_real_quotas_are_waited_for_and_everything_is_answered(
    options: tuple[str, ...], asked: list[tuple[Dialect, str]], settings: dict[str, Any]
) -> None:
    """More than a minute's worth a provider; the server gives each time the wait that is true, in its provider's headers."""
    with llmock(*options) as server:
        got = results(server, asked, attempts=8, **settings)
        assert all(isinstance(result.outcome, Completed) for result in got)
        throttled = sum(request["status"] == 429 for request in server.requests())
        assert throttled == sum(result.audit.throttles for result in got) >= 1
        assert len(server.requests()) == sum(result.audit.wire_tries for result in got) == len(asked) + throttled
        assert findings(server) == []


def test_the_grader_notices_a_client_that_doesn_t_wait(server: Llmock) -> None:
    server.queue({"type": "fail", "status": 429, "retry_after": 1, "times": 1})
    config: Any = route(base_url=server.url + "/v1")
    asyncio.run(results_of(host(Role.GUESSER, config), [call(MESSAGES[Role.GUESSER])]))
    assert "retry_after_ignored" in str(findings(server))
