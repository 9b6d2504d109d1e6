"""The ledger: whatever is reserved and settled in whatever order, no limit is passed, and nobody is turned away who could be served."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, RuleBasedStateMachine, consumes, invariant, multiple, rule

from deep20ray_cluster.ledger import Hold, Ledger, Reached, Wait

RUNS = ("one", "two", "free")
LIMIT, LIMITS = 100, {"one": 40, "two": 90}


class Ledgers(RuleBasedStateMachine):
    """Every interleaving of reserving and settling; a plain count beside it."""

    holds: Bundle[Hold] = Bundle("holds")

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(LIMIT, LIMITS, {"one": 5})
        self.spent = dict.fromkeys(RUNS, 0) | {"one": 5}
        self.in_flight: list[Hold] = []

    def room(self, run: str | None) -> int:
        """What is left of a limit."""
        limit = LIMIT if run is None else LIMITS.get(run, LIMIT)
        paid = sum(self.spent.values()) if run is None else self.spent[run]
        return limit - paid - sum(hold.amount for hold in self.in_flight if run in (None, hold.run))

    @rule(target=holds, run=st.sampled_from(RUNS), amount=st.integers(0, 60))
    def reserve(self, run: str, amount: int) -> Hold | MultipleResults[Hold]:
        fits = {whose: amount <= self.room(whose) for whose in (None, run)}
        match self.ledger.reserve(run, amount):
            case Hold() as hold:
                assert all(fits.values())
                self.in_flight.append(hold)
                return hold
            case Reached(whose):
                assert not fits[whose] and not [hold for hold in self.in_flight if whose in (None, hold.run)]
            case Wait():
                assert not all(fits.values()) and self.in_flight
        return multiple()

    @rule(hold=consumes(holds), part=st.fractions(0, 1))
    def settle(self, hold: Hold, part: object) -> None:
        cost = int(hold.amount * part)  # type: ignore[operator]
        for _ in range(2):  # the second time changes nothing
            self.ledger.settle(hold, cost)
        self.in_flight.remove(hold)
        self.spent[hold.run] += cost

    @invariant()
    def no_limit_is_passed(self) -> None:
        for purse in (self.ledger.total, *self.ledger.runs.values()):
            assert purse.limit is None or purse.spent + purse.held <= purse.limit
            assert purse.held >= 0 and purse.flights >= 0
        assert self.ledger.total.spent == sum(self.spent.values())


TestLedgers = Ledgers.TestCase
TestLedgers.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60))
def test_one_at_a_time_until_it_is_reached(calls: list[tuple[int, int]]) -> None:
    ledger, paid = Ledger(100, {}, {}), 0
    for worst, real in calls:
        match ledger.reserve("run", worst):
            case Hold() as hold:
                ledger.settle(hold, min(real, worst))
                paid += min(real, worst)
            case answer:
                assert answer == Reached(None) and paid + worst > 100
    assert paid == ledger.total.spent <= 100


def test_a_call_that_cost_more_than_was_held_ends_it() -> None:
    ledger = Ledger(100, {}, {})
    hold = ledger.reserve("run", 90)
    assert isinstance(hold, Hold) and ledger.reserve("run", 11) == Wait()
    ledger.settle(hold, 120)
    assert ledger.total.spent == 120 and ledger.reserve("run", 0) == Reached(None)


def test_a_runs_limit_is_its_own() -> None:
    ledger = Ledger(None, {"one": 10}, {"one": 4})
    assert ledger.limits("one") and not ledger.limits("two")
    assert ledger.without_room("one", 7) == ("one",) and ledger.without_room("one", 6) == ()
    other = ledger.reserve("two", 10**9)
    assert isinstance(other, Hold)
    assert ledger.reserve("one", 7) == Reached("one"), "another run's calls make no room in it"
    assert isinstance(ledger.reserve("one", 6), Hold) and ledger.reserve("one", 1) == Wait()
