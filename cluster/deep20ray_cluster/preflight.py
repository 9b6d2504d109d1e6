"""Preflight: one small real call per role and account, by the actors that will make them, before any trial starts.

The subject is fixed and synthetic, and belongs to no cohort. Nothing is journalled and nothing is played; what is found out is which
key, model, feature or price is missing. The calls cost what they cost.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from deep20ray.actions import Guess, Violation, parse
from deep20ray.answers import Role
from deep20ray.canonical import Digest
from deep20ray.game import View
from deep20ray.subjects import TrustedSubject
from deep20ray_actors import replies
from deep20ray_actors.config import Dialect
from deep20ray_actors.greeting import Greeting
from deep20ray_actors.messages import GuesserMessage, JudgeMessage, Message, ReviewerMessage, SearchMessage, ToolMessage, ValidatorMessage
from deep20ray_actors.outcomes import Call, CallResult, Completed, Fetched, Outcome, ServerFault, Throttled, Transport, is_fault
from deep20ray_actors.providers.features import SUPPORT, Feature, Support
from deep20ray_cluster.budget import missing_prices, uncapped
from deep20ray_cluster.driver import Options
from deep20ray_cluster.errors import SweepError
from deep20ray_cluster.folder import descendants, end_processes
from deep20ray_cluster.gates import Gate
from deep20ray_cluster.line import GRACE
from deep20ray_cluster.memory import Reply
from deep20ray_cluster.plan import Plan, load_cohort, research_policy, resolve
from deep20ray_cluster.pools import Lost, Pool
from deep20ray_cluster.price_list import load_prices
from deep20ray_cluster.ray_local import session_in_use, starters
from deep20ray_cluster.research import research
from deep20ray_cluster.results import Place, check_place
from deep20ray_cluster.routes import account_of, credentials_of, guesser_route, limits_of, routes_of, seconds_of
from deep20ray_cluster.simulation import check_reach, simulator_for
from deep20ray_cluster.sweep import SUPPORT_ROLES, Model, Sweep

SUBJECT = TrustedSubject("paper clip", ("paperclip",), "The general kind: a bent wire that holds sheets of paper. Not a binder clip.")
QUESTION = "Is it smaller than a car?"
_GUESS = Guess("paper clip", "The small bent wire that holds sheets of paper together.")
_SEED = 1
_Parsed = TypeVar("_Parsed")

_SEARCHES_ALWAYS = re.compile(r"search-(preview|api)|:online(:|$)|(^|/)sonar(-(pro|reasoning)[^/]*)?$|deep-research", re.IGNORECASE)
"""Models that are known to search by themselves, with no way to switch it off."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried. ``transient``: a failure that may be gone at the next try."""

    what: str
    state: Literal["ok", "note", "failed"]
    detail: str
    transient: bool = False
    account: str = ""
    """Whose; empty for what is no account's."""


@dataclass(frozen=True, slots=True)
class Report:
    """All checks, in the order of the sweep file."""

    checks: tuple[Check, ...]

    @property
    def failures(self) -> int:
        """How many checks failed."""
        return sum(check.state == "failed" for check in self.checks)

    @property
    def exit_code(self) -> int:
        """0 if nothing failed, 3 if another try may help, else 2."""
        lasting = any(check.state == "failed" and not check.transient for check in self.checks)
        return 2 if lasting else 3 if self.failures else 0


def preflight(sweep: Sweep, base: Path, options: Options) -> Report:
    """Tries a sweep out.

    Args:
        base: what the sweep file's paths are relative to.

    Raises:
        UsageError, Resumable: as for a run; see ``deep20ray_cluster.errors``.
    """
    prices = load_prices(sweep, base / (sweep.sweep.prices_file or ""))
    plan = resolve(sweep, load_cohort(sweep, base), datetime.now(UTC), prices)
    credentials = credentials_of(sweep, options.environ, here=options.address is None)
    before = frozenset(descendants())
    with ExitStack() as stack:
        simulator = stack.enter_context(simulator_for(sweep))
        leftovers = stack.enter_context(ExitStack())
        session = stack.enter_context(session_in_use(options.environ, options.address, sweep.sweep.workers_per_role))
        if session.own:
            leftovers.callback(lambda: end_processes([process for process in descendants() if process not in before]))
        check_reach(sweep, session)
        greetings: list[Greeting] = []
        start = starters(routes_of(plan, credentials, simulator()), session.cluster, greetings.append)
        pools = {role: Pool(role.value, starter, size=session.workers) for role, starter in start.items()}
        checks = asyncio.run(_checks(plan, pools))
        hosts = _hosts(greetings) if session.cluster is not None else ()
    return Report((*_unpriced(plan), *_features(plan), *_results(options.place(sweep)), *hosts, *checks))


def _results(place: Place | None) -> Iterator[Check]:
    if place is None:
        return
    try:
        check_place(place)
        yield Check("results", "ok", f"{place.uri} can be reached")
    except SweepError as error:
        yield Check("results", "failed", str(error).removeprefix("results: "))


def _hosts(greetings: Iterable[Greeting]) -> Iterator[Check]:
    """Each host that runs role actors, and the keys that are missing there."""
    roles: dict[str, set[str]] = defaultdict(set)
    problems: dict[str, dict[str, None]] = defaultdict(dict)
    for greeting in greetings:
        roles[greeting.host].add(greeting.role)
        problems[greeting.host] |= {f"{greeting.role}: {problem}": None for problem in greeting.unusable}
    for host in sorted(roles):
        for problem in problems[host]:
            yield Check(f"host {host}", "failed", problem)
        if not problems[host]:
            yield Check(f"host {host}", "ok", f"runs this code and has the keys of {', '.join(sorted(roles[host]))}")


def _features(plan: Plan) -> Iterator[Check]:
    """What a sweep asks for and a protocol doesn't have."""
    roles: list[tuple[str, Model]] = [(f"guesser {model.id}", model) for model in plan.sweep.models]
    roles += [(role.value, plan.sweep.support.of(role)) for role in SUPPORT_ROLES]
    for what, model in roles:
        support = _support(plan.sweep, model)
        if model.send_seed and not support[Feature.SEED].there:
            yield Check(what, "note", f"its protocol has no sampling seed ({support[Feature.SEED].note}); every call's audit will say so")
    if plan.sweep.search.kind == "native" and not _support(plan.sweep, plan.sweep.support.oracle)[Feature.SEARCH_CEILING].there:
        yield Check("search", "note", "its provider's search has no ceiling; max_queries does not bound it")


def _support(sweep: Sweep, model: Model) -> Mapping[Feature, Support]:
    kind = sweep.accounts[model.account].kind
    return SUPPORT[Dialect.OPENAI_CHAT if kind == "simulator" else Dialect(kind)]


def _unpriced(plan: Plan) -> Iterator[Check]:
    """Prices that are not known, and calls that a budget can't bound; without a budget they only leave costs unknown."""
    budget = plan.sweep.sweep.max_cost_usd is not None or any(model.max_cost_usd is not None for model in plan.sweep.models)
    for missing in missing_prices(plan):
        yield Check("prices", "failed" if budget else "note", f"no price is known of {missing}")
    for free in uncapped(plan) if budget else ():
        yield Check("budget", "failed", f"nothing bounds what {free} cost; choose another kind, or leave the budget out")


async def _checks(plan: Plan, pools: dict[Role, Pool]) -> list[Check]:
    for pool in pools.values():
        pool.open()
    try:
        await asyncio.gather(*(pool.settled() for pool in pools.values()))
        desk = _Desk(plan, pools)
        groups = [
            *(_guesser(plan, desk, index) for index in range(len(plan.sweep.models))),
            _oracle(plan, desk),
            _second(plan, desk, Role.REVIEWER),
            _second(plan, desk, Role.JUDGE),
            _validator(plan, desk),
        ]
        done = await asyncio.gather(*groups)
    finally:
        await asyncio.gather(*(pool.close() for pool in pools.values()))
    accounts = [model.account for model in (*plan.sweep.models, *(plan.sweep.support.of(role) for role in SUPPORT_ROLES))]
    return [
        check if check.what.startswith(("search", "pages")) else replace(check, account=account)
        for group, account in zip(done, accounts, strict=True)
        for check in group
    ]


class _Desk:
    """Leases and pools, for one call at a time and account."""

    def __init__(self, plan: Plan, pools: dict[Role, Pool]) -> None:
        self._pools = pools
        self._accounts = account_of(plan.sweep)
        self._seconds = seconds_of(plan.sweep)
        self._gates = {name: Gate(name, replace(limits, concurrency=1)) for name, limits in limits_of(plan.sweep).items()}

    async def call(self, role: Role, route: str, message: Message) -> CallResult | Lost:
        """One call as a table would make it."""
        tool = isinstance(message, ToolMessage)
        gate = self._gates[self._accounts[role, message.kind if tool else route]]
        async with gate.enter() as passed:
            call = Call(0, route, message, None if tool else _SEED, passed.lease)
            result = await self._pools[role].ask(call, self._seconds[gate.account] + GRACE, passed.again)
            if isinstance(result, CallResult):
                passed.ended(result)
            return result


async def _guesser(plan: Plan, desk: _Desk, index: int) -> list[Check]:
    model = plan.sweep.models[index]
    what = f"guesser {model.id}"
    if refused := _always_searches(what, model):
        return [refused]
    result = await desk.call(Role.GUESSER, guesser_route(index), GuesserMessage.of(View("thing", "000000000000", ())))
    if failed := _failure(what, result):
        return [failed]
    assert isinstance(result, CallResult)
    action = parse(result.outcome.text) if isinstance(result.outcome, Completed) else None
    if action is None or isinstance(action, Violation):
        kind = action.kind.value if isinstance(action, Violation) else type(result.outcome).__name__.lower()
        return [Check(what, "note", f"it broke the action contract ({kind}), which counts against it in a game; {_facts(result)}")]
    return [Check(what, "ok", _facts(result)), *_notes(what, result)]


async def _second(plan: Plan, desk: _Desk, role: Role) -> list[Check]:
    kind = ReviewerMessage if role is Role.REVIEWER else JudgeMessage
    message = kind.of(SUBJECT, QUESTION, ())
    return await _adjudicator(plan, desk, role, message, lambda text: replies.reviewed_answer(text, plan.edition.tokens))


async def _validator(plan: Plan, desk: _Desk) -> list[Check]:
    return await _adjudicator(plan, desk, Role.VALIDATOR, ValidatorMessage.of(SUBJECT, _GUESS), replies.validated_guess)


async def _adjudicator(plan: Plan, desk: _Desk, role: Role, message: Message, read: Callable[[str], object]) -> list[Check]:
    if refused := _always_searches(role.value, plan.sweep.support.of(role)):
        return [refused]
    result = await desk.call(role, role.value, message)
    return [_read(role.value, result, read), *_notes(role.value, result)]


async def _oracle(plan: Plan, desk: _Desk) -> list[Check]:
    """Its whole way: queries, searches, pages and the answer, as far as it goes."""
    checks: list[Check] = []
    native = plan.sweep.search.kind == "native"
    if not native and (refused := _always_searches("oracle", plan.sweep.support.oracle)):
        return [refused]

    async def ask(call: str, message: Message, read: Callable[[Reply], _Parsed | None], *, tolerant: bool = False) -> _Parsed | None:
        result = await desk.call(Role.ORACLE, "oracle", message)
        what = call if isinstance(message, ToolMessage) else f"oracle, {call}" if call != "oracle" else "oracle"
        parsed: list[_Parsed | None] = []

        def reading(_text: str) -> object:
            assert isinstance(result, CallResult)
            parsed.append(read(Reply(Digest(message.digest), result.outcome, result.audit, 0)))
            return parsed[-1]

        checks.append(_made_up_for(_read(what, result, reading)) if tolerant else _read(what, result, reading))
        checks.extend(_notes(what, result) if not isinstance(message, ToolMessage) else ())
        if (not parsed or parsed[-1] is None) and not tolerant:
            raise _Ended
        return parsed[-1] if parsed else None

    with suppress(_Ended):
        await research(research_policy(plan.sweep), SUBJECT, QUESTION, plan.edition.tokens, ask)
    if not native and not any(check.what.startswith("search") for check in checks):
        # The model failed first; what is wrong with the search is said all the same.
        with suppress(_Ended):
            await ask("search", SearchMessage.of(SUBJECT, QUESTION), lambda reply: reply)
    return checks


def _made_up_for(check: Check) -> Check:
    """A failure that another call makes up for stops no trial."""
    return replace(check, state="note") if check.state == "failed" else check


class _Ended(Exception):
    """The Oracle's way ended here; its last check says why."""


def _read(what: str, result: CallResult | Lost, read: Callable[[str], object]) -> Check:
    """A call of an adjudicator or of a tool: it must be delivered, and must read."""
    if failed := _failure(what, result):
        return failed
    assert isinstance(result, CallResult)
    if isinstance(result.outcome, Fetched):
        read("")
        return _pages(what, result.outcome)
    text = result.outcome.text if isinstance(result.outcome, Completed) else ""
    if read(text) is None:
        return Check(what, "failed", f"its reply can't be used: {_unusable(result.outcome)}; {_facts(result)}")
    return Check(what, "ok", _facts(result))


def _unusable(outcome: Outcome) -> str:
    """Why a reply doesn't read, and what to do."""
    if not isinstance(outcome, Completed):
        return f"{type(outcome).__name__.lower()}; raise max_output_tokens, or choose another model"
    if outcome.browsed is not None and outcome.browsed.barred:
        return "its search returned an excluded page"
    if outcome.browsed is not None and not outcome.browsed.searches:
        return "it answered without a search that worked; choose another model, or another kind of search"
    return "it is not the JSON that was asked for; choose a model that keeps to a schema"


def _pages(what: str, fetched: Fetched) -> Check:
    problems = [page.problem or "no text" for page in fetched.pages if not page.text]
    if problems and len(problems) == len(fetched.pages):
        return Check(what, "note", f"none of {len(problems)} pages could be read: {problems[0]}")
    return Check(what, "ok", f"{len(fetched.pages) - len(problems)} of {len(fetched.pages)} pages read")


def _failure(what: str, result: CallResult | Lost) -> Check | None:
    if isinstance(result, Lost):
        return Check(what, "failed", "its worker was lost, or did not answer in time", transient=True)
    if is_fault(result.outcome):
        transient = isinstance(result.outcome, Throttled | Transport | ServerFault)
        return Check(what, "failed", f"{type(result.outcome).__name__}: {result.outcome.detail}", transient)
    return None


def _always_searches(what: str, model: Model) -> Check | None:
    if _SEARCHES_ALWAYS.search(model.model) is None:
        return None
    return Check(what, "failed", f"model {model.model} searches by itself, and its search can't be switched off; choose another model")


def _facts(result: CallResult) -> str:
    audit = result.audit
    tokens: list[Any] = [audit.usage.input_fresh, audit.usage.output_visible]
    used = f"{tokens[0]} tokens in, {tokens[1]} out" if None not in tokens else "no usage reported"
    parts = [f"served by {audit.served_model}" if audit.served_model else "", used if audit.requested_model else ""]
    parts.append(f"{audit.wire_tries} wire tries" if audit.wire_tries > 1 else "")
    return ", ".join(part for part in parts if part) or "it works"


def _notes(what: str, result: CallResult | Lost) -> Iterator[Check]:
    """What works and yet lacks something that a published run wants."""
    if not isinstance(result, CallResult) or is_fault(result.outcome):
        return
    if result.audit.usage.input_fresh is None and result.audit.reported_cost_microusd is None:
        yield Check(what, "note", "it reports no usage, so its costs stay unknown")
    if result.audit.served_model is None:
        yield Check(what, "note", "it doesn't say which model served, so a change of model could not be seen")
