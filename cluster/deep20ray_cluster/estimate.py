"""What a sweep will take, before it is played: calls, searches, cost, time and disk, by model and role. Nothing is called.

``least`` and ``most`` are bounds by the rules: trials that need one attempt and lose no worker take no fewer or more logical calls, and
cost no more than ``worst``. Between them stands what games like those of ``habits`` take. Tokens that were never seen are guessed from the
size of what is sent, four characters to a token, and from ``_OUTPUT``; a model that reasons writes many times that.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any

from deep20ray.actions import Ask, Guess
from deep20ray.answers import Role, Token
from deep20ray.game import Exchange, View
from deep20ray.subjects import Subject
from deep20ray_actors.config import PromptTexts
from deep20ray_actors.evidence import EXCERPT_MAX
from deep20ray_actors.messages import (
    ChatMessage,
    EvidenceItem,
    GuesserMessage,
    JudgeMessage,
    OracleMessage,
    QueriesMessage,
    ResearchMessage,
    ResultItem,
    ReviewerMessage,
    SearchMessage,
    ValidatorMessage,
)
from deep20ray_actors.outcomes import Usage
from deep20ray_actors.render import chat_messages
from deep20ray_actors.replies import EVIDENCE_MAX
from deep20ray_cluster.budget import missing_prices, quote_terms, tool_terms, uncapped
from deep20ray_cluster.habits import CallHabits, Habits
from deep20ray_cluster.plan import Plan, research_policy
from deep20ray_cluster.prices import cost_of
from deep20ray_cluster.routes import account_of, guesser_route, limits_of
from deep20ray_cluster.table import MAX_REPLIES

BYTES_PER_CALL = 4800
"""Measured on the demo: of the journal and of sealed tables, public and private."""
SECONDS_PER_CALL = 4.0
"""Assumed of a model that was never seen."""
_OUTPUT = {"guesser": 60, "queries": 80, "oracle": 250, "research": 400, "reviewer": 120, "judge": 120, "validator": 80}
_QUESTION = "Was this person chiefly known for work in the sciences?"
_EXCERPT = 400
_KEPT = 2
"""Evidence items of a question, about."""


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """One kind of call of one model's run. Costs are micro-dollars, None where a price is unknown."""

    call: str
    least: int
    expected: int
    most: int
    p50_microusd: int | None
    p95_microusd: int | None
    worst_microusd: int | None


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """One model's run."""

    model: str
    trials: int
    calls: tuple[CallEstimate, ...]

    def cost(self, which: str) -> int | None:
        """All its calls' ``p50``, ``p95`` or ``worst``, in micro-dollars; None where any is unknown."""
        return _sum([getattr(call, f"{which}_microusd") for call in self.calls])


@dataclass(frozen=True, slots=True)
class Estimate:
    """A whole sweep."""

    runs: tuple[RunEstimate, ...]
    seconds: float
    """Of play, at the limits that are told and as many trials at once as allowed."""
    bound_by: str
    """What the time is bound by: a gate's name, or how long a game's calls take in a row."""
    disk_bytes: int
    reusable: int
    """Answers that the archive holds."""
    missing_prices: tuple[str, ...]
    unbounded: tuple[str, ...]
    """Calls whose worst case nothing bounds."""
    learned_from: tuple[str, ...]

    def cost(self, which: str) -> int | None:
        """See ``RunEstimate``."""
        return _sum([run.cost(which) for run in self.runs])

    def may_pass(self, dollars: float) -> bool:
        """Whether it may well cost more than so many US dollars: False where that is unknown."""
        high = self.cost("p95")
        return high is not None and high > dollars * 1_000_000

    @property
    def document(self) -> dict[str, Any]:
        """As JSON."""
        totals = {f"{which}_microusd": self.cost(which) for which in ("p50", "p95", "worst")}
        return asdict(self) | totals


def estimate(plan: Plan, habits: Habits) -> Estimate:
    """What a plan takes if its games are like those of ``habits``."""
    runs = tuple(_run(plan, index, habits) for index in range(len(plan.runs)))
    seconds, bound_by = _time(plan, runs, habits)
    expected = sum(call.expected for run in runs for call in run.calls)
    return Estimate(
        runs,
        seconds,
        bound_by,
        expected * BYTES_PER_CALL,
        0 if plan.archive is None else len(plan.archive.answers),
        tuple(missing_prices(plan)),
        tuple(uncapped(plan)),
        habits.learned_from,
    )


def _run(plan: Plan, index: int, habits: Habits) -> RunEstimate:
    run = plan.runs[index]
    usual, high = _counts(plan, habits), _counts(plan, _worse(plan, habits))
    calls = []
    for call, (least, most) in _bounds(plan).items():
        if not most:
            continue
        n = len(run.trials)
        costs = [_cost(plan, run.id, call, each, habits) for each in (habits, _worse(plan, habits))]
        p50, p95 = (None if cost is None else round(cost * n * count[call]) for cost, count in zip(costs, (usual, high), strict=True))
        worst = _worst(plan, run.id, call, most)
        calls.append(CallEstimate(call, least * n, round(usual[call] * n), most * n, p50, p95, None if worst is None else worst * n))
    return RunEstimate(run.contestant.id, len(run.trials), tuple(calls))


def _worse(plan: Plan, habits: Habits) -> Habits:
    """The same games, longer; not beyond the question limit."""
    factor = min(habits.high, max(1.0, plan.edition.question_limit / habits.turns))
    return replace(habits, asks=habits.asks * factor, guesses=habits.guesses * factor, violations=habits.violations * factor)


def _counts(plan: Plan, habits: Habits) -> dict[str, float]:
    """Calls of one trial, by kind."""
    policy = research_policy(plan.sweep)
    asks, answered = habits.asks, habits.asks * (1 - habits.unknown)
    written = bool(policy.query_target) and not policy.native
    return {
        "guesser": habits.turns,
        "queries": asks if written else 0.0,
        "search": 0.0 if policy.native else asks * (min(policy.query_target, policy.max_queries) if written else 1),
        "pages": asks if policy.fetch_pages and not policy.native else 0.0,
        "oracle": asks,
        "reviewer": answered,
        "judge": answered * habits.judged,
        "validator": habits.guesses,
    }


def _bounds(plan: Plan) -> dict[str, tuple[int, int]]:
    """The fewest and the most logical calls of one trial, by kind, in one attempt."""
    policy, limit = research_policy(plan.sweep), plan.edition.question_limit
    asked = limit * MAX_REPLIES
    written = bool(policy.query_target) and not policy.native
    return {
        "guesser": (1, limit + 1),
        "queries": (0, asked if written else 0),
        "search": (0, 0 if policy.native else limit * (policy.max_queries if written else 1)),
        "pages": (0, limit if policy.fetch_pages and not policy.native else 0),
        "oracle": (0, asked),
        "reviewer": (0, asked),
        "judge": (0, asked),
        "validator": (0, (limit + 1) * MAX_REPLIES),
    }


def _cost(plan: Plan, run: str, call: str, of: Habits, habits: Habits) -> float | None:
    """Of one call, in micro-dollars."""
    if call in ("search", "pages"):
        return cost_of(plan.document, run, call, Usage(0, 0, 0, 0, 0, 0, searches=int(call == "search")), None)
    tokens = _tokens(plan, call, of, habits)
    # A thousand of them, so that fractions of a token and of a micro-dollar count.
    usage = Usage(round(tokens.input_tokens * 1000), 0, 0, 0, round(tokens.output_tokens * 1000), 0)
    cost = cost_of(plan.document, run, call, usage, None)
    return None if cost is None else cost / 1000


def _tokens(plan: Plan, call: str, of: Habits, habits: Habits) -> CallHabits:
    """What one call takes; a Guesser's input grows with the game."""
    if call in habits.calls:
        seen = habits.calls[call]
        grown = of.turns / habits.turns if call == "guesser" else 1.0
        return replace(seen, input_tokens=seen.input_tokens * grown)
    role = Role.ORACLE if call == "queries" else Role(call)
    message = _message(plan, call, _TYPICAL, round(of.turns / 2))
    prompt = plan.prompts[role]
    texts = chat_messages(message, PromptTexts(prompt.system, prompt.guide, prompt.reminder, prompt.queries))
    return CallHabits(sum(len(text["content"]) for text in texts) / 4, _OUTPUT[message.kind], SECONDS_PER_CALL)


@dataclass(frozen=True, slots=True)
class _Texts:
    """What messages are filled with. ``kept`` is evidence items of a question; ``fill`` is any character of the texts that others write."""

    question: str
    guess: Guess
    kept: int
    excerpt: int
    address: int
    title: int
    snippet: int
    fill: str = "x"


_TYPICAL = _Texts(_QUESTION, Guess("Somebody", "Known for something."), _KEPT, _EXCERPT, 60, 60, 300)
# No character is longer as JSON in plain ASCII than one beyond the basic plane.
_WIDE = "\U0001f600"
_LARGEST = _Texts(_WIDE * 500, Guess(_WIDE * 200, _WIDE * 400), EVIDENCE_MAX, EXCERPT_MAX, 2000, 300, 1_000_000, _WIDE)


def _message(plan: Plan, call: str, texts: _Texts, turn: int) -> ChatMessage:
    """A message of that kind; for a Guesser, after so many exchanges."""
    policy, subject, question = research_policy(plan.sweep), _largest(plan).trusted, texts.question
    address = "https://" + texts.fill * (texts.address - 8)
    evidence = tuple(EvidenceItem(number=n, url=address, excerpt=texts.fill * texts.excerpt) for n in range(1, texts.kept + 1))
    match call:
        case "guesser":
            exchange = Exchange(Ask(question).canonical, Token.UNKNOWN)
            category = max((each.category for each in plan.cohort.subjects), key=len)
            return GuesserMessage.of(View(category, "0" * 12, (exchange,) * turn))
        case "queries":
            return QueriesMessage.of(subject, question, policy.query_target)
        case "oracle" if policy.native:
            return ResearchMessage.of(subject, question, max(policy.query_target, 1))
        case "oracle":
            # Fetched pages are long; what a search tool says of a page is short.
            size, read = plan.sweep.search.page_chars, policy.fetch_pages
            long, short = texts.fill * size, texts.fill * min(size, texts.snippet)
            found = (long if n <= read else short for n in range(1, policy.max_results + 1))
            pages = [ResultItem(number=n, url=address, title=texts.fill * texts.title, text=text) for n, text in enumerate(found, 1)]
            return OracleMessage.of(subject, question, pages)
        case "reviewer":
            return ReviewerMessage.of(subject, question, evidence)
        case "judge":
            return JudgeMessage.of(subject, question, evidence)
        case "validator":
            return ValidatorMessage.of(subject, texts.guess)
        case _:
            raise AssertionError(call)


def _largest(plan: Plan) -> Subject:
    return max(plan.cohort.subjects, key=lambda each: len(str(each.trusted)))


def _worst(plan: Plan, run: str, call: str, most: int) -> int | None:
    """The most that all calls of that kind of one trial can cost, retries included."""
    if call in ("search", "pages"):
        tools = tool_terms(plan)
        return None if tools is None else tools.quote(SearchMessage(query="x")).total * most if call == "search" else 0
    role = Role.ORACLE if call == "queries" else Role(call)
    terms = quote_terms(plan).get((run if role is Role.GUESSER else None, role))
    if terms is None or (call == "oracle" and uncapped(plan)):
        return None
    if call == "guesser":
        return sum(terms.quote(_message(plan, call, _LARGEST, turn)).total for turn in range(most))
    return terms.quote(_message(plan, call, _LARGEST, 0)).total * most


def _time(plan: Plan, runs: Sequence[RunEstimate], habits: Habits) -> tuple[float, str]:
    """Seconds of play, and what bounds them: the slowest gate, or games one after another."""
    gates, limits = account_of(plan.sweep), limits_of(plan.sweep)
    calls: dict[str, float] = {}
    busy: dict[str, float] = {}
    in_row = 0.0
    for index, run in enumerate(runs):
        for each in run.calls:
            seconds = habits.calls[each.call].seconds if each.call in habits.calls else SECONDS_PER_CALL
            role, route = _way(each.call, index)
            calls[gates[role, route]] = calls.get(gates[role, route], 0) + each.expected
            busy[gates[role, route]] = busy.get(gates[role, route], 0) + each.expected * seconds
            in_row += each.expected * seconds
    bounds = {"games in a row": in_row / max(1, min(plan.sweep.sweep.max_trials, sum(run.trials for run in runs)))}
    for gate, count in calls.items():
        told = limits[gate]
        bounds[f"{gate}, concurrency"] = busy[gate] / told.concurrency
        if told.requests is not None:
            bounds[f"{gate}, requests a minute"] = count / (told.requests * told.share) * 60
    slowest = max(bounds, key=bounds.__getitem__)
    return bounds[slowest], slowest


def _way(call: str, index: int) -> tuple[Role, str]:
    if call == "guesser":
        return Role.GUESSER, guesser_route(index)
    if call in ("search", "pages"):
        return Role.ORACLE, call
    role = Role.ORACLE if call == "queries" else Role(call)
    return role, role.value


def _sum(parts: Sequence[int | None]) -> int | None:
    return None if any(part is None for part in parts) else ceil(sum(part for part in parts if part is not None))
