"""Every dialect against aimock's own idea of its protocol: what replies mean, what broken ones become, how often each is tried.

Each case is a model of its own, by which the server tells them apart. Its gaps are listed where they show.
"""

import asyncio
from collections import Counter
from typing import Any

import pytest

from deep20ray.answers import Role
from deep20ray_actors.config import Dialect, LiteralCredential
from deep20ray_actors.host import RoleHost
from deep20ray_actors.leases import Lease
from deep20ray_actors.messages import GuesserMessage
from deep20ray_actors.outcomes import (
    Call,
    CallResult,
    Completed,
    Credentials,
    Malformed,
    QuotaExhausted,
    Refused,
    Rejected,
    ServerFault,
    Throttled,
    Transport,
    Truncated,
    Usage,
)
from deep20ray_actors.providers.features import Feature
from deep20ray_actors.providers.transport import HttpTransport
from tests.actors.dialects import BASES
from tests.actors.support import FakeTime, finished, route
from tests.wire.aimock import Aimock, aimock

TRIES = 3
TEXT = '{"a": "ü 🙂"}'
GOOD = {"content": TEXT, "model": "served", "usage": {"prompt_tokens": 21, "completion_tokens": 8, "total_tokens": 29}}
BROKEN = {"malformed": ("malformedRate", Malformed), "destroyed": ("disconnectRate", Transport), "dropped": ("dropRate", ServerFault)}
STATUSES: dict[int, tuple[type, int]] = {
    400: (Rejected, 1),
    401: (Credentials, 1),
    402: (QuotaExhausted, 1),
    403: (Credentials, 1),
    404: (Rejected, 1),
    408: (ServerFault, TRIES),
    409: (ServerFault, TRIES),
    429: (Throttled, TRIES),
    500: (ServerFault, TRIES),
    503: (ServerFault, TRIES),
    529: (ServerFault, TRIES),
}


def fixture(model: str, response: dict[str, Any], **more: Any) -> dict[str, Any]:
    match = {"model": model, **({"sequenceIndex": more.pop("first")} if "first" in more else {})}
    return {"match": match, "response": response, **more}


def results(server: Aimock, dialect: Dialect, models: list[str]) -> tuple[dict[str, CallResult], dict[str, int], list[float]]:
    """One call a model, one after the other on a clock that sleeping moves: results and requests seen by model, and the sleeps."""
    time = FakeTime()

    async def main() -> list[CallResult]:
        base, key, around = server.url + BASES[dialect], LiteralCredential("k"), time.around()
        routes: dict[str, Any] = {
            model: route(base_url=base, route=model, dialect=dialect, model=model, credential=key, attempts=TRIES) for model in models
        }
        worker = RoleHost(Role.GUESSER, routes, around, HttpTransport(sleep=around.sleep, jitter=around.jitter))
        got: list[CallResult] = []
        for number, model in enumerate(models):
            message = GuesserMessage(category="thing", variation="0a1b2c")
            await worker.submit([Call(number, model, message, 7, Lease("account", number))])
            while len(got) <= number:
                got += await finished(worker)
        await worker.close()
        return got

    before = len(server.requests())
    got = asyncio.run(main())
    seen = Counter(entry["body"]["model"] for entry in server.requests()[before:])
    return dict(zip(models, got, strict=True)), dict(seen), time.sleeps


FIXTURES = [
    fixture("good", GOOD),
    fixture("thinking", GOOD | {"reasoning": "hm"}),
    fixture("long", {"content": "half of", "finishReason": "length"}),
    fixture("filtered", {"content": "I can't", "finishReason": "content_filter"}),
    fixture("tooled", {"toolCalls": [{"name": "f", "arguments": "{}"}]}),
    *(fixture(f"always-{kind}", GOOD, chaos={field: 1}) for kind, (field, _) in BROKEN.items()),
    *(fixture(f"status-{status}", {"error": {"message": "about it", "type": "x"}, "status": status}) for status in STATUSES),
    *(
        each
        for dialect in Dialect
        for each in (
            fixture(f"slow-{dialect}", {"error": {"message": "slow down"}, "status": 429, "retryAfter": 7}, first=0),
            fixture(f"slow-{dialect}", GOOD),
        )
    ),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with aimock(FIXTURES, tmp_path_factory.mktemp("aimock")) as running:
        yield running


@pytest.mark.parametrize("dialect", Dialect)
def test_text_reasoning_usage_and_model(server: Aimock, dialect: Dialect) -> None:
    got, seen, _ = results(server, dialect, ["good", "thinking"])
    assert seen == {"good": 1, "thinking": 1}
    for result in got.values():
        assert result.outcome == Completed(TEXT)
        assert result.audit.usage == Usage(21, 0, 0, 0, 8, 0)
    assert (got["good"].audit.reasoning, got["thinking"].audit.reasoning) == (None, "hm")
    # A server for Gemini that doesn't say which model served is one whose drift can't be seen.
    assert got["good"].audit.served_model == {Dialect.GEMINI: None, Dialect.OPENROUTER: "served@served"}.get(dialect, "served")


@pytest.mark.parametrize("dialect", Dialect)
def test_truncated_filtered_and_tooled_replies(server: Aimock, dialect: Dialect) -> None:
    got, seen, _ = results(server, dialect, ["long", "filtered", "tooled"])
    if dialect is Dialect.OPENAI_RESPONSES:
        # The server's gaps: an incomplete response without its reason, and a filtered one that is "failed", which the real one isn't.
        assert got["long"].outcome == Truncated("half of", "other", reasoning_only=False)
        assert isinstance(got["filtered"].outcome, ServerFault)
        assert seen == {"long": 1, "filtered": TRIES, "tooled": 1}
    else:
        assert got["long"].outcome == Truncated("half of", "length", reasoning_only=False)
        assert got["filtered"].outcome == Refused("I can't")
        assert set(seen.values()) == {1}
    assert isinstance(got["tooled"].outcome, Malformed)


@pytest.mark.shows(Feature.BROKEN_REPLY, *Dialect)
@pytest.mark.parametrize("dialect", Dialect)
def test_malformed_bodies_destroyed_connections_and_drops(server: Aimock, dialect: Dialect) -> None:
    got, seen, _ = results(server, dialect, [f"always-{kind}" for kind in BROKEN])
    for kind, (_, expected) in BROKEN.items():
        result = got[f"always-{kind}"]
        assert type(result.outcome) is expected, (kind, result.outcome)
        assert seen[f"always-{kind}"] == result.audit.wire_tries == TRIES


@pytest.mark.shows(Feature.REFUSED_ONCE, *Dialect)
@pytest.mark.parametrize("dialect", Dialect)
def test_every_status_in_the_server_s_words(server: Aimock, dialect: Dialect) -> None:
    got, seen, _ = results(server, dialect, [f"status-{status}" for status in STATUSES])
    for status, (expected, tries) in STATUSES.items():
        result = got[f"status-{status}"]
        assert type(result.outcome) is expected, (status, result.outcome)
        assert seen[f"status-{status}"] == result.audit.wire_tries == tries
        assert "about it" not in repr(result.outcome)


@pytest.mark.shows(Feature.RETRY_AFTER, *Dialect)
@pytest.mark.parametrize("dialect", Dialect)
def test_a_scripted_429_is_waited_for_as_asked(server: Aimock, dialect: Dialect) -> None:
    model = f"slow-{dialect}"
    got, seen, sleeps = results(server, dialect, [model])
    result = got[model]
    assert result.outcome == Completed(TEXT) and result.audit.throttles == 1
    assert seen == {model: 2} and sleeps == [7.0]
