"""What a journal says was spent, by run, in micro-dollars: every attempt's calls, lost ones at their worst case. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from deep20ray_actors.outcomes import Audit, Outcome, is_fault
from deep20ray_cluster.journal import Event
from deep20ray_cluster.prices import cost_of, is_search, search_fee
from deep20ray_cluster.records import read_audit, read_outcome
from deep20ray_cluster.worst_case import Quote, charged


@dataclass(slots=True)
class Spending:
    """So far."""

    spent: Counter[str] = field(default_factory=Counter)
    """By run."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Calls by run whose cost nothing tells: they were made when no budget was set, and were lost or are of unknown price."""
    withheld: dict[tuple[str, str], int] = field(default_factory=dict)
    """By (run, trial), the amount that its next call had no room for, where that call is still to be made."""

    def count(self, run: str, cost: int | None) -> None:
        """One more call."""
        if cost is None:
            self.unknown[run] += 1
        else:
            self.spent[run] += cost


def spending(document: Mapping[str, Any], events: Iterable[Event]) -> Spending:
    """Of a whole journal, by the prices of the plan's document."""
    found = Spending()
    begun: dict[tuple[str, str, int, int, str, int], Quote | None] = {}
    for event in events:
        key = (event.run, event.trial, event.attempt, event.turn, event.call, event.ask)
        match event.kind:
            case "started":
                begun[key] = Quote.read(event.body)
                found.withheld.pop((event.run, event.trial), None)
            case "reply":
                outcome, audit = read_outcome(event.body), read_audit(event.body)
                cost = known_cost(document, event.run, event.call, outcome, audit)
                quote = begun.pop(key, None)
                found.count(event.run, 0 if is_free(document, event.call) else charged(cost, audit, quote))
            case "lost":
                quote = begun.pop(key, None)
                found.count(event.run, 0 if is_free(document, event.call) else charged(None, None, quote))
            case "withheld":
                found.withheld[event.run, event.trial] = event.body["worst_microusd"]
            case _:
                pass
    for key, quote in begun.items():  # in flight when their driver died
        found.count(key[0], 0 if is_free(document, key[4]) else charged(None, None, quote))
    return found


def is_free(document: Mapping[str, Any], call: str) -> bool:
    """Whether calls of that kind cost nothing, whatever becomes of them: pages, and searches without a fee."""
    return call == "pages" or (is_search(call) and search_fee(document) == 0)


def known_cost(document: Mapping[str, Any], run: str, call: str, outcome: Outcome, audit: Audit) -> int | None:
    """What became of a call in micro-dollars, or None where that is unknown: a search that broke off may have been billed all the same."""
    if is_fault(outcome) and audit.reported_cost_microusd is None and (is_free(document, call) or audit.unbilled >= audit.wire_tries):
        return 0
    if is_search(call) and is_fault(outcome):
        return audit.reported_cost_microusd
    return cost_of(document, run, call, audit.usage, audit.reported_cost_microusd)
