"""The host itself: whatever breaks, every call is answered."""

import pytest

from deep20ray.answers import Role
from deep20ray_actors.messages import GuesserMessage
from deep20ray_actors.outcomes import Rejected
from tests.actors import support


async def test_a_call_that_breaks_outside_its_boundary_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = support.host(Role.GUESSER, support.route(Role.GUESSER, "http://127.0.0.1:9/v1"))

    async def broken(call: object, trail: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(worker, "_boundary", broken)
    (result,) = await support.results_of(worker, [support.call(GuesserMessage(category="thing", variation="0"))])
    assert result.outcome == Rejected("internal error in the guesser's actor: RuntimeError")
