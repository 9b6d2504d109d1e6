"""The circuit breaker: rows of failures, of a run and of what all runs share."""

from deep20ray_cluster.breaker import BREAKER, Breaker
from deep20ray_cluster.journal import Event, Kind


def events(*kinds: Kind, run: str = "run", call: str = "guesser") -> list[Event]:
    return [Event(run, "trial", 1, 1, kind, call, 0, number, {}) for number, kind in enumerate(kinds)]


def left(breaker: Breaker, run: str = "run", call: str = "guesser") -> int:
    """How many more failures it takes."""
    return next(number for number in range(1, 100) if breaker.failed(run, call) is not None)


def test_the_row_goes_on_where_the_journal_breaks_off() -> None:
    assert left(Breaker.of([])) == BREAKER
    assert left(Breaker.of(events("infrastructure", "started", "reply", "infrastructure"))) == BREAKER - 2
    assert left(Breaker.of(events("infrastructure", "ended", "closed", "infrastructure"))) == BREAKER - 1
    assert left(Breaker.of(events("infrastructure", "ended"))) == BREAKER


def test_a_models_dead_provider_is_not_hidden_by_the_successes_of_others() -> None:
    breaker = Breaker()
    for _ in range(BREAKER - 1):
        assert breaker.failed("dead", "guesser") is None
        breaker.ended("well")
    assert breaker.failed("dead", "guesser") == "run"
    assert breaker.failed("well", "guesser") is None


def test_failures_at_shared_roles_add_up_over_runs_and_stop_all() -> None:
    breaker = Breaker()
    told = [breaker.failed(f"run-{number}", "oracle") for number in range(BREAKER)]
    assert told == [None] * (BREAKER - 1) + ["sweep"]


def test_a_success_of_any_run_shows_that_shared_roles_live() -> None:
    breaker = Breaker()
    for number in range(BREAKER - 1):
        breaker.failed(f"run-{number}", "judge")
    breaker.ended("another")
    assert breaker.failed("one-more", "judge") is None


def test_after_it_opened_a_resume_stops_at_the_next_failure_unless_a_trial_ends_first() -> None:
    opened = events(*["infrastructure"] * (BREAKER + 3))  # type: ignore[arg-type]
    assert left(Breaker.of(opened)) == 1
    breaker = Breaker.of(opened)
    breaker.ended("run")
    assert left(breaker) == BREAKER


def test_a_repair_in_the_journal_begins_anew_but_only_where_the_breaker_was_open() -> None:
    opened = events(*["infrastructure"] * BREAKER, call="oracle")  # type: ignore[arg-type]
    assert left(Breaker.of([*opened, *events("attempt")]), call="oracle") == BREAKER
    row = events("attempt", "infrastructure") * (BREAKER - 1)
    assert left(Breaker.of(row)) == 1, "attempts of a repair don't break its own row"
