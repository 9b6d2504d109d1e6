"""One limit in a minute: never passed, never starved, believed, shared."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep20ray_actors.leases import Stand
from deep20ray_cluster.meters import MARGIN, Charge, Meter


def fill(meter: Meter, weights: list[float], start: float = 0.0) -> list[Charge]:
    """Starts calls of those weights, each as early as it may."""
    at, charges = start, []
    for weight in weights:
        at = meter.earliest(weight, at)
        charges.append(meter.charge(weight, at))
    return charges


def most(charges: list[Charge]) -> float:
    """The most that any 60 seconds hold, calls alone left out."""
    heaviest = 0.0
    for index, first in enumerate(charges):
        inside = [each.weight for each in charges[index:] if each.at <= first.at + 60]
        heaviest = max(heaviest, sum(inside) if len(inside) > 1 else 0.0)
    return heaviest


@settings(max_examples=150, deadline=None)
@given(
    limit=st.integers(1, 10_000), weights=st.lists(st.floats(0.1, 4000), min_size=1, max_size=60), share=st.sampled_from([1.0, 0.5, 0.1])
)
def test_no_minute_holds_more_than_the_limit(limit: int, weights: list[float], share: float) -> None:
    charges = fill(Meter(limit, share, tokens=True), weights)
    assert most(charges) <= limit * share + 1e-6


@settings(max_examples=100, deadline=None)
@given(
    limit=st.integers(100, 10_000),
    calls=st.lists(st.tuples(st.floats(1, 4000), st.floats(0, 1.0)), min_size=1, max_size=60),
    late=st.integers(1, 5),
)
def test_settled_calls_never_make_a_minute_hold_more(limit: int, calls: list[tuple[float, float]], late: int) -> None:
    """Each is settled, for a part of what was reserved, once ``late`` more have started."""
    meter, at, charges = Meter(limit, tokens=True), 0.0, []
    for index, (weight, _) in enumerate(calls):
        at = meter.earliest(weight, at)
        charges.append(meter.charge(weight, at))
        if index >= late:
            done = charges[index - late]
            meter.settle(done, done.weight * calls[index - late][1], typical=True)
    assert most(charges) <= limit + 1e-6


@pytest.mark.parametrize("weight", [1.0, 30.0, 250.0])
def test_it_comes_near_its_limit(weight: float) -> None:
    charges = fill(Meter(6000, tokens=True), [weight] * int(60_000 / weight))
    assert charges[-1].at <= 600 / MARGIN + 62


def test_a_call_larger_than_the_limit_goes_alone() -> None:
    charges = fill(Meter(100, tokens=True), [5000.0, 5000.0, 10.0])
    assert [charge.at for charge in charges] == sorted(charge.at for charge in charges)
    assert charges[0].at == 0 and charges[1].at >= 60 and charges[2].at >= charges[1].at + 60


def test_starts_are_spaced_by_what_calls_really_weigh() -> None:
    """Of 8,192 reserved tokens 60 are used: the reservations of calls in flight bind, nothing else does."""
    meter, at = Meter(60_000, tokens=True), 0.0
    first = meter.charge(8192, 0.0)
    meter.settle(first, 60, typical=True)
    starts = []
    for _ in range(200):
        at = meter.earliest(8192, at)
        starts.append(at)
        meter.settle(meter.charge(8192, at), 60, typical=True)
    assert 200 * 60 / 1000 <= starts[-1] <= 200 * 60 / 1000 / MARGIN + 1


def test_the_tighter_of_told_and_learned_and_of_it_the_share() -> None:
    meter = Meter(100, 0.5)
    assert meter.limit == 50
    assert meter.told_by(Stand(80), None, 0.0) and meter.limit == 40
    assert not meter.told_by(Stand(80), None, 0.0)
    meter.told_by(Stand(1000), None, 0.0)
    assert meter.limit == 50


@pytest.mark.parametrize("stand", [Stand(0), Stand(-1), Stand(200, 199, 432.0), Stand(None, 5)])
def test_what_is_no_limit_in_a_minute_is_not_learned(stand: Stand) -> None:
    meter = Meter()
    assert not meter.told_by(stand, None, 0.0) and meter.limit is None


def test_what_is_left_is_believed_for_others_use_it_too() -> None:
    meter = Meter(600)
    charge = meter.charge(1, 0.0)
    meter.told_by(Stand(600, 0, 60.0), charge, 1.0)
    assert meter.earliest(1, 1.0) == pytest.approx(1.1)
    meter.told_by(Stand(600, 300, 30.0), charge, 1.0)
    assert meter.earliest(1, 1.0) == 1.0
    shared = Meter(600, 0.5)
    shared.told_by(Stand(600, 300, 30.0), None, 1.0)
    assert shared.earliest(1, 1.0) > 1.0, "the other half is not ours"


def test_tokens_in_flight_count_against_what_a_reply_says_is_left() -> None:
    meter = Meter(60_000, tokens=True)
    first = meter.charge(1000, 0.0)
    meter.charge(30_000, 0.0)
    meter.told_by(Stand(60_000, 31_000, 29.0), first, 0.0)
    assert meter.earliest(2000, 60.0) == 60.0
    assert meter.earliest(2000, 31.0) == 31.0 or meter.earliest(2000, 0.0) >= 1.0


def test_without_a_limit_nothing_waits() -> None:
    charges = fill(Meter(tokens=True), [1e9] * 5)
    assert {charge.at for charge in charges} == {0.0}
