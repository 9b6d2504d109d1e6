"""A scripted set of roles behind the table's desk, and a journal in memory: no Ray, no HTTP, no clock."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

from deep20ray.actions import Ask, Guess
from deep20ray.answers import Policy, Role
from deep20ray.canonical import canonical, digest_of
from deep20ray.editions import EDITION_1_1, Edition
from deep20ray.game import Ended
from deep20ray.reuse import ADJUDICATORS, Adjudicator, ReusePolicy, Terms
from deep20ray.seeds import TrialId
from deep20ray.subjects import Subject, TrustedSubject
from deep20ray_actors.messages import GuesserMessage, Message, ResultItem, SearchMessage, ToolMessage
from deep20ray_actors.outcomes import Audit, CallResult, Completed, Found, Outcome, Usage
from deep20ray_cluster.journal import Event
from deep20ray_cluster.memory import Memory
from deep20ray_cluster.owner import Answers, Owner
from deep20ray_cluster.plan import PlannedTrial
from deep20ray_cluster.pools import Lost
from deep20ray_cluster.research import ResearchPolicy
from deep20ray_cluster.table import Table

SUBJECT = Subject(
    "T-0099", "thing", "https://example.org/kite", TrustedSubject("kite", ("paper kite",), "A toy flown on a string; not the bird.")
)
TRIAL = PlannedTrial(TrialId("ab" * 32), "20261201T000000Z-model-0123456789ab", SUBJECT, 1, "0123456789ab")
PAGE = ResultItem(number=1, url="https://example.org/kite", title="Kite", text="A kite is a light frame that flies in the wind.")


def audit(usage: Usage | None = None) -> Audit:
    """An unremarkable audit."""
    return Audit(digest_of("request"), "model", "model-1", None, "stop", True, usage or Usage(10, 0, 0, 0, 5, 0), 1, 0, 3, None, None)


def delivered(outcome: Outcome) -> CallResult:
    """A result with that outcome."""
    return CallResult(0, outcome, audit())


def says(**fields: Any) -> Completed:
    """An adjudicator's JSON."""
    return Completed(canonical(fields).decode())


def script(guesses: list[str]) -> Callable[[Role, Message, int | None], Outcome]:
    """Roles as a function of what each is sent: the Guesser plays ``guesses`` in turn order, the others answer from the question."""

    def play(role: Role, message: Message, seed: int | None) -> Outcome:
        if isinstance(message, GuesserMessage):
            return Completed(guesses[len(message.history)])
        if isinstance(message, SearchMessage):
            return Found((PAGE,))
        if role is Role.VALIDATOR:
            return says(statement="", verdict="YES" if message.guess.name == "kite" else "NO")  # type: ignore[union-attr]
        wants = message.question.split()[-1].rstrip("?")  # type: ignore[union-attr]
        first, _, rest = wants.partition("/")
        second, _, third = rest.partition("/")
        token = {Role.ORACLE: first, Role.REVIEWER: second or first, Role.JUDGE: third or first}[role]
        if role is Role.ORACLE:
            return says(answer=token, basis="evidence", evidence=[{"result": 1, "excerpt": "flies in the  wind"}], statement="private")
        return says(answer=token, basis="evidence", statement="private")

    return play


GAME = [
    Ask("Is it alive? NO").canonical,
    Ask("Does it fly? YES/RATHER_YES/YES").canonical,
    "not an action",
    Guess("plane", "a machine that flies").canonical,
    Ask("Anything else? UNKNOWN").canonical,
    Ask("Is it held by a string? YES/NO/RATHER_YES").canonical,
    Guess("kite", "a toy on a string").canonical,
]
"""A whole game: agreement, two Judge calls, a violation, a rejected guess, an unreviewed UNKNOWN, success after 6 counted questions."""


class Desk:
    """Answers by a function of what is sent; keeps what was sent."""

    def __init__(self, play: Callable[[Role, Message, int | None], Outcome | Lost]) -> None:
        self.play = play
        self.sent: list[tuple[Role, Message, int | None]] = []

    async def call(
        self, role: Role, route: str, message: Message, seed: int | None, before: Callable[[], Awaitable[None]]
    ) -> CallResult | Lost:
        """See ``deep20ray_cluster.table.Desk``."""
        await before()
        self.sent.append((role, message, seed))
        outcome = self.play(role, message, seed)
        if isinstance(outcome, Lost):
            return outcome
        asked = None if isinstance(message, ToolMessage) else role.value
        return replace(delivered(outcome), audit=replace(audit(), requested_model=asked))


class Killed(BaseException):
    """The driver died here."""


class MemoryJournal:
    """A journal that can die: after ``survives`` events nothing is written any more."""

    def __init__(self, events: list[Event] | None = None, survives: int | None = None) -> None:
        self.events = list(events or [])
        self._survives = survives

    def note(self, *events: Event) -> None:
        """See ``Journal``."""
        for event in events:
            if self._survives is not None and len(self.events) >= self._survives:
                raise Killed
            self.events.append(event)

    async def append(self, *events: Event) -> None:
        """See ``Journal``."""
        self.note(*events)


def counter() -> Callable[[], int]:
    """Milliseconds that only ever grow by one."""
    ticks: Iterator[int] = iter(range(1, 10_000_000))
    return lambda: next(ticks)


ONE_SEARCH = ResearchPolicy(native=False, query_target=0, max_queries=1, max_results=5, fetch_pages=0)


async def play(
    desk: Desk,
    journal: MemoryJournal,
    memory: Memory | None = None,
    edition: Edition = EDITION_1_1,
    policy: ResearchPolicy = ONE_SEARCH,
    answers: Answers | None = None,
    trial: PlannedTrial = TRIAL,
) -> Ended:
    """Plays a trial, the fakes' own unless told otherwise, at a table."""
    own = [event for event in journal.events if (event.run, event.trial) == trial.key]
    known = memory or Memory.of(own)
    table = Table(trial, edition, "seed", "g0", policy, desk, journal, known, counter(), answers or owner())  # type: ignore[arg-type]
    return await table.play()


TERMS = Terms(
    EDITION_1_1.tokens, Policy.EVIDENCE_OR_KNOWLEDGE, dict.fromkeys(ADJUDICATORS, Adjudicator("c" * 64, "d" * 64)), "e" * 64, "none"
)


def owner(policy: ReusePolicy = ReusePolicy.OFF) -> Owner:
    """An owner of answers that knows none yet. A call costs its tokens of output."""
    return Owner(policy, TERMS, lambda run, call, reply: reply.audit.usage.output_visible)
