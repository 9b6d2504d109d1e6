"""What a drive knows before it starts."""

from deep20ray_cluster.drive import BREAKER, failures_in_a_row
from deep20ray_cluster.journal import Event, Kind


def events(*kinds: Kind) -> list[Event]:
    return [Event("run", "trial", 1, 1, kind, "", 0, number, {}) for number, kind in enumerate(kinds)]


def test_the_row_of_failures_goes_on_where_the_journal_breaks_off() -> None:
    assert failures_in_a_row([]) == 0
    assert failures_in_a_row(events("infrastructure", "started", "reply", "infrastructure")) == 2
    assert failures_in_a_row(events("infrastructure", "ended", "closed", "infrastructure")) == 1
    assert failures_in_a_row(events("infrastructure", "ended")) == 0


def test_a_breaker_that_has_opened_starts_anew() -> None:
    kinds: list[Kind] = ["infrastructure"] * BREAKER
    assert failures_in_a_row(events(*kinds)) == 0
