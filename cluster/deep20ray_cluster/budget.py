"""Budgets: no call is sent unless the most that it can cost still fits. What was spent is read from the journal, every time.

Limits are how a sweep is driven, not what is played, so they stand in no plan and may be raised between drives. It keeps no time; who has
to wait for calls in flight is woken when one of them is settled.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import assert_never

from deep20ray.answers import Role
from deep20ray_actors.config import PromptTexts
from deep20ray_actors.messages import Message, PagesMessage, SearchMessage
from deep20ray_actors.outcomes import CallResult
from deep20ray_cluster.errors import SweepError
from deep20ray_cluster.journal import Event
from deep20ray_cluster.ledger import Hold, Ledger, Reached, Wait
from deep20ray_cluster.plan import Plan
from deep20ray_cluster.prices import UnitPrices, prices_of, search_fee
from deep20ray_cluster.spending import known_cost, spending
from deep20ray_cluster.sweep import SUPPORT_ROLES, Model
from deep20ray_cluster.worst_case import Quote, Terms, ToolTerms, call_name, charged


class Withheld(Exception):
    """A call was not sent, because it doesn't fit and nothing in flight could make room.

    ``run`` is whose limit it was, None for the sweep's; ``amount`` is what the call could have cost, in micro-dollars.
    """

    def __init__(self, run: str | None, reason: str, amount: int) -> None:
        super().__init__(reason)
        self.run, self.reason, self.amount = run, reason, amount


class Closed(Exception):
    """No more calls: a limit was reached earlier, or the drive is stopping."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """One call's hold."""

    hold: Hold
    quote: Quote
    call: str


def missing_prices(plan: Plan, runs: Iterable[str] | None = None) -> list[str]:
    """What no price is known of, each as a line that says what to write.

    Args:
        runs: the runs whose models count; all without it. The support roles and the search count always.
    """
    wanted = {run.id for run in plan.runs} if runs is None else set(runs)
    entries = [entry["guesser"] for entry in plan.document["runs"] if entry["run_id"] in wanted]
    missing = []
    for entry in (*entries, *plan.document["support"].values()):
        prices = prices_of(plan.document, entry)
        if prices is None or not {"input", "output"} <= prices.rates.keys():
            model = entry["requested_model"]
            missing.append(f'model "{model}" on kind {entry["provider"]} (write [prices."{model}"], unless the name is wrong)')
    missing += _missing_search(plan)
    return list(dict.fromkeys(missing))


def _missing_search(plan: Plan) -> list[str]:
    kind, oracle = plan.sweep.search.kind, plan.document["support"]["oracle"]
    if kind != "native":
        return [] if search_fee(plan.document) is not None else [f"search of kind {kind} (write usd_per_thousand under [search])"]
    prices = prices_of(plan.document, oracle)
    if oracle["provider"] == "openrouter" or (prices is not None and prices.search is not None):
        return []  # OpenRouter reports what its searches cost
    return [f'search by model "{oracle["requested_model"]}" (write search_usd_per_thousand under [prices."{oracle["requested_model"]}"])']


def uncapped(plan: Plan) -> list[str]:
    """Calls whose cost nothing bounds beforehand, each as a line. A model's are bounded by their size and ``max_output_tokens``."""
    # The pages that a provider's own search reads are billed as input, and no provider bounds them.
    return ["the Oracle's calls with search of kind native"] if plan.sweep.search.kind == "native" else []


def check_budget(plan: Plan) -> None:
    """Refuses a budget that can't be kept.

    Raises:
        SweepError: naming every price that is missing, or the calls that can't be bounded.
    """
    limit, runs = _limits(plan)
    if limit is None and not runs:
        return
    missing = missing_prices(plan, runs if limit is None else None)
    if missing:
        raise SweepError(f"max_cost_usd: a budget needs every price, and none is known of {', '.join(missing)}; see docs/sweep-file.md")
    if free := uncapped(plan):
        raise SweepError(f"max_cost_usd: nothing bounds what {free[0]} cost; choose another kind, or leave the budget out")
    _check_room(plan, limit, runs)


def _check_room(plan: Plan, limit: int | None, runs: Mapping[str, int]) -> None:
    """Refuses a budget that holds not even one call's output at its worst."""
    for (run, role), terms in quote_terms(plan).items():
        worst = ceil(terms.prices.rates["output"].dearest(0) * terms.max_output_tokens) * terms.attempts
        for most in (limit, *(amount for name, amount in runs.items() if run in (None, name))):
            if most is not None and worst > most:
                raise SweepError(
                    f"max_cost_usd: ${dollars(most)} can't hold one call of the {role.value}, which may cost ${dollars(worst)} "
                    f"(max_output_tokens x attempts); raise it, or lower those two"
                )


def dollars(microusd: int) -> str:
    """An amount in US dollars, without zeros at its end."""
    return f"{Decimal(microusd).scaleb(-6).normalize():f}"


class Budget:
    """A drive's budgets, over what the journal says was spent."""

    def __init__(self, plan: Plan, ledger: Ledger) -> None:
        self.ledger = ledger
        self._plan = plan
        self._terms = quote_terms(plan)
        self._tools = tool_terms(plan) or ToolTerms(Fraction(0), plan.sweep.search.attempts)
        self._closed: dict[str | None, str] = {}
        self._stopped = False
        self._waiting: list[asyncio.Future[None]] = []

    @classmethod
    def of(cls, plan: Plan, events: Iterable[Event]) -> "Budget | None":
        """The budgets that a plan's sweep sets, or None; ``events`` are the whole journal's.

        Raises:
            SweepError: see ``check_budget``, or calls were made earlier whose cost nothing tells.
        """
        check_budget(plan)
        limit, limits = _limits(plan)
        if limit is None and not limits:
            return None
        so_far = spending(plan.document, events)
        if lost := sum(number for run, number in so_far.unknown.items() if limit is not None or run in limits):
            raise SweepError(
                f"max_cost_usd: {lost} calls that were made without a budget have an unknown cost; leave it out, or start a new sweep"
            )
        budget = cls(plan, Ledger(limit, limits, so_far.spent))
        for (run, _), amount in so_far.withheld.items():
            # What found no room then finds none now, unless a limit was raised.
            if whose := budget.ledger.without_room(run, amount):
                budget._close(whose[0], amount)
        return budget

    @property
    def reached(self) -> str | None:
        """Which budgets are reached, in words; None if none is."""
        return self._closed.get(None) or "; ".join(sorted(self._closed.values())) or None

    def open(self, run: str) -> bool:
        """Whether calls of that run may still be made."""
        return not (self._stopped or None in self._closed or run in self._closed)

    async def hold(self, run: str, role: Role, message: Message) -> Ticket | None:
        """Holds the most that a call can cost, waiting for calls in flight if it must. None for a run that no budget is set for.

        Raises:
            Withheld: it doesn't fit, and won't.
            Closed: see there.
        """
        if not self.ledger.limits(run):
            return None
        quote = self._quote(run, role, message)
        while True:
            if not self.open(run):
                raise Closed
            match self.ledger.reserve(run, quote.total):
                case Hold() as hold:
                    return Ticket(hold, quote, call_name(message))
                case Reached(whose):
                    raise Withheld(whose, self._close(whose, quote.total), quote.total)
                case Wait():
                    changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._waiting.append(changed)
                    await changed
                case other:
                    assert_never(other)

    def settle(self, ticket: Ticket, result: CallResult | None, *, sent: bool) -> None:
        """Ends a call's hold. ``result`` is None for a call that never came back, or was never sent."""
        run, cost = ticket.hold.run, 0
        if result is not None:
            known = known_cost(self._plan.document, run, ticket.call, result.outcome, result.audit)
            cost = charged(known, result.audit, ticket.quote) or 0
        elif sent:
            cost = ticket.quote.total
        self.ledger.settle(ticket.hold, cost)
        self._wake()

    def stop(self) -> None:
        """The drive is stopping: nobody waits any longer."""
        self._stopped = True
        self._wake()

    def _close(self, whose: str | None, worst: int) -> str:
        purse = self.ledger.total if whose is None else self.ledger.runs[whose]
        model = "" if whose is None else f" of model {next(run.contestant.id for run in self._plan.runs if run.id == whose)}"
        reason = (
            f"the budget of ${dollars(purse.limit or 0)}{model} is reached: ${dollars(purse.spent)} is spent, "
            f"and the next call may cost ${dollars(worst)}"
        )
        self._closed.setdefault(whose, reason)
        self._wake()
        return reason

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for changed in waiting:
            if not changed.done():
                changed.set_result(None)

    def _quote(self, run: str, role: Role, message: Message) -> Quote:
        if isinstance(message, SearchMessage | PagesMessage):
            return self._tools.quote(message)
        return self._terms[run if role is Role.GUESSER else None, role].quote(message)


def _limits(plan: Plan) -> tuple[int | None, dict[str, int]]:
    """The sweep's limit and those of runs, in micro-dollars."""
    limit = plan.sweep.sweep.max_cost_usd
    runs = {run.id: _microusd(run.contestant.max_cost_usd) for run in plan.runs if run.contestant.max_cost_usd is not None}
    return None if limit is None else _microusd(limit), runs


def _microusd(dollars: float) -> int:
    return int(Decimal(str(dollars)).scaleb(6))


def tool_terms(plan: Plan) -> ToolTerms | None:
    """What searches are made with; None where their fee is unknown, or where the Oracle's provider searches."""
    fee = search_fee(plan.document)
    return None if fee is None else ToolTerms(fee, plan.sweep.search.attempts)


def quote_terms(plan: Plan) -> dict[tuple[str | None, Role], Terms]:
    """What calls are made with, by run and role; a support role's are the same for all runs. Who has no price is left out."""
    roles: list[tuple[str | None, Role, Model, UnitPrices | None]] = [
        (entry["run_id"], Role.GUESSER, run.contestant, prices_of(plan.document, entry["guesser"]))
        for run, entry in zip(plan.runs, plan.document["runs"], strict=True)
    ]
    roles += [
        (None, role, plan.sweep.support.of(role), prices_of(plan.document, plan.document["support"][role.value])) for role in SUPPORT_ROLES
    ]
    return {
        (run, role): Terms(
            prices,
            PromptTexts(prompt.system, prompt.guide, prompt.reminder, prompt.queries),
            plan.edition.tokens,
            model.max_output_tokens,
            plan.sweep.accounts[model.account].attempts,
        )
        for run, role, model, prices in roles
        if prices is not None
        for prompt in (plan.prompts[role],)
    }
