"""What the actors' tests share: routes, messages, replies, a clock that only moves when someone sleeps."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deep20ray.actions import Guess
from deep20ray.answers import Role, Token
from deep20ray.game import Exchange, Reminder, View
from deep20ray.subjects import TrustedSubject
from deep20ray_actors.config import PromptTexts, RouteConfig, Timeouts
from deep20ray_actors.host import RoleHost, Surroundings
from deep20ray_actors.leases import Again, Grant, Lease
from deep20ray_actors.messages import GuesserMessage, JudgeMessage, Message, OracleMessage, ResultItem, ReviewerMessage, ValidatorMessage
from deep20ray_actors.outcomes import Call, CallResult
from deep20ray_actors.providers.transport import REPLY_MAX, HttpTransport

RECORDED = Path(__file__).parents[2].parent / "shared" / "data" / "recorded"
NOW = datetime(2026, 11, 1, 12, 0, 0, tzinfo=UTC)
SUBJECT = TrustedSubject("Halley's Comet", ("1P/Halley",), "The periodic comet, not a ship or a band of that name.")
RESULTS = (
    ResultItem(number=1, url="https://a.example/comet", title="Comet", text="It returns  every\n76 years to the inner Solar System."),
    ResultItem(number=2, url="https://b.example/orbit", title="Orbit", text=""),
)
ASK = '{"action":"ASK","description":null,"name":null,"question":"Is it alive?"}'
MESSAGES: dict[Role, Message] = {
    Role.GUESSER: GuesserMessage.of(View("thing", "0a1b2c", (Exchange(ASK, Token.RATHER_NO), Reminder()))),
    Role.ORACLE: OracleMessage.of(SUBJECT, "Is it alive?", RESULTS),
    Role.REVIEWER: ReviewerMessage.of(SUBJECT, "Is it alive?", ()),
    Role.JUDGE: JudgeMessage.of(SUBJECT, "Is it alive?", ()),
    Role.VALIDATOR: ValidatorMessage.of(SUBJECT, Guess("Halley's Comet", "a comet")),
}


def route(role: Role = Role.GUESSER, base_url: str = "http://127.0.0.1:9/v1", **changes: Any) -> RouteConfig:
    """A plain route; timeouts are generous, because no test measures time."""
    settings: dict[str, Any] = {
        "route": "r",
        "role": role,
        "base_url": base_url,
        "model": "model-1",
        "prompt": PromptTexts("Play.", "Labels mean this.", "Mind the format."),
        "tokens": tuple(Token),
        "max_output_tokens": 512,
        "timeouts": Timeouts(10, 30, 60),
        "attempts": 3,
    }
    return RouteConfig(**(settings | changes))


def completion(
    content: Any = "{}", finish: Any = "stop", usage: Any = None, message: dict[str, Any] | None = None, **body: Any
) -> dict[str, Any]:
    """A chat completion's body."""
    turn = {"role": "assistant", "content": content, **(message or {})}
    choice = {"index": 0, "finish_reason": finish, "message": turn}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "model-1-dated",
        "choices": [choice],
        **({"usage": usage} if usage else {}),
        **body,
    }


def dumped(value: Any) -> bytes:
    """JSON bytes."""
    return json.dumps(value).encode()


@dataclass
class FakeTime:
    """A clock that sleeping moves, and the sleeps that were asked for."""

    seconds: float = 0.0
    sleeps: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        """Moves the clock at once."""
        self.sleeps.append(seconds)
        self.seconds += seconds

    def around(self) -> Surroundings:
        """Surroundings on this clock, without jitter."""
        return Surroundings(lambda: self.seconds, lambda: NOW, self.sleep, lambda: 0.0)


def host(role: Role, config: RouteConfig, time: FakeTime | None = None, reply_max: int = REPLY_MAX) -> RoleHost:
    """A RoleHost with one route on a fake clock."""
    around = (time or FakeTime()).around()
    return RoleHost(role, {config.route: config}, around, HttpTransport(sleep=around.sleep, jitter=around.jitter, reply_max=reply_max))


def call(message: Message, slot: int = 1, seed: int | None = 7) -> Call:
    """A call on the one route."""
    return Call(slot, "r", message, seed, Lease("account", slot))


async def finished(worker: RoleHost) -> list[CallResult]:
    """What has finished; who wants another wire try gets it after the wait that it must keep."""
    news = await worker.collect(30)
    await worker.submit([Grant(each.slot, Lease("account", 0, each.wait)) for each in news if isinstance(each, Again)])
    return [each for each in news if isinstance(each, CallResult)]


async def results_of(worker: RoleHost, calls: list[Call]) -> list[CallResult]:
    """Submits, collects everything, closes; in order of slots."""
    await worker.submit(calls)
    got: list[CallResult] = []
    while len(got) < len(calls):
        got += await finished(worker)
    await worker.close()
    return sorted(got, key=lambda result: result.slot)
