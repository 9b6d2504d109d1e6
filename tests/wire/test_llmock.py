"""Manners towards a throttled server, graded by that server: waits kept, hopeless requests sent once. Real time, no time measured."""

import asyncio
import random
import time
from datetime import UTC, datetime
from typing import Any

from deep20ray.answers import Role
from deep20ray_actors.config import Dialect, LiteralCredential
from deep20ray_actors.host import RoleHost, Surroundings
from deep20ray_actors.outcomes import CallResult, Completed, Rejected
from deep20ray_actors.providers.transport import HttpTransport
from tests.actors.support import MESSAGES, call, host, results_of, route
from tests.wire.llmock import Llmock, llmock

BASES = {
    Dialect.OPENAI_CHAT: "/v1",
    Dialect.OPENAI_RESPONSES: "/v1",
    Dialect.ANTHROPIC: "/anthropic/v1",
    Dialect.GEMINI: "/gemini/v1beta",
}
THROTTLED = {"type": "fail", "status": 429, "retry_after": 1, "times": 1}
BUSY = {"type": "fail", "status": 503, "times": 1}
REFUSED = {"type": "fail", "status": 400, "times": 1}


def results(server: Llmock, dialect: Dialect) -> list[CallResult]:
    """One call, on real time."""

    async def main() -> list[CallResult]:
        around = Surroundings(time.monotonic, lambda: datetime.now(UTC), asyncio.sleep, random.random)
        config: Any = route(base_url=server.url + BASES[dialect], dialect=dialect, credential=LiteralCredential("k"), attempts=5)
        worker = RoleHost(Role.GUESSER, {"r": config}, around, HttpTransport(sleep=around.sleep, jitter=around.jitter))
        return await results_of(worker, [call(MESSAGES[Role.GUESSER])])

    return asyncio.run(main())


def findings(server: Llmock) -> Any:
    verdict = server.verdict()
    return verdict["findings"]


def test_each_dialect_waits_as_asked_and_never_repeats_what_is_refused() -> None:
    with llmock() as server:
        for dialect in BASES:
            server.queue(THROTTLED, BUSY)
            (result,) = results(server, dialect)
            assert isinstance(result.outcome, Completed), (dialect, result.outcome)
            assert (result.audit.wire_tries, result.audit.throttles) == (3, 1)
            server.queue(REFUSED)
            (result,) = results(server, dialect)
            assert isinstance(result.outcome, Rejected) and result.audit.wire_tries == 1
        assert len(server.requests()) == 4 * len(BASES)
        assert findings(server) == []


def test_the_grader_notices_a_client_that_doesn_t_wait() -> None:
    with llmock() as server:
        server.queue(THROTTLED)
        config: Any = route(base_url=server.url + "/v1")
        asyncio.run(results_of(host(Role.GUESSER, config), [call(MESSAGES[Role.GUESSER])]))
        assert "retry_after_ignored" in str(findings(server))
