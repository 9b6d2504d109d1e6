"""What headers say of limits, in every form that providers send."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep20ray_actors.leases import Seen, Stand, Standing
from deep20ray_actors.outcomes import Completed, Outcome, Rejected, ServerFault, Throttled
from deep20ray_actors.providers.standing import seen_of, standing_of

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "standing"),
    [
        ({}, None),
        ({"content-type": "application/json"}, None),
        (
            {
                "x-ratelimit-limit-requests": "500",
                "x-ratelimit-remaining-requests": "499",
                "x-ratelimit-reset-requests": "120ms",
                "x-ratelimit-limit-tokens": "30000",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            Standing(Stand(500, 499, 0.12), Stand(30_000, 0, 360.0)),
        ),
        (
            {
                "anthropic-ratelimit-input-tokens-limit": "50000",
                "anthropic-ratelimit-input-tokens-remaining": "49000",
                "anthropic-ratelimit-input-tokens-reset": "2026-12-01T12:00:30Z",
                "anthropic-ratelimit-output-tokens-limit": "8000",
            },
            Standing(input_tokens=Stand(50_000, 49_000, 30.0), output_tokens=Stand(8000)),
        ),
        ({"x-ratelimit-limit-requests": "-1", "x-ratelimit-limit-tokens": "0"}, None),
        ({"x-ratelimit-limit-requests": "1, 15000"}, None),
        (
            {"x-ratelimit-limit-requests": "5", "x-ratelimit-remaining-requests": "-2", "x-ratelimit-reset-requests": "soon"},
            Standing(Stand(5)),
        ),
    ],
)
def test_both_families_of_names(headers: dict[str, str], standing: Standing | None) -> None:
    assert standing_of(headers, NOW) == standing


@given(st.dictionaries(st.sampled_from(["x-ratelimit-limit-tokens", "anthropic-ratelimit-requests-limit"]), st.text(max_size=400)))
def test_no_header_breaks_it(headers: dict[str, str]) -> None:
    standing = standing_of(headers, NOW)
    assert standing is None or all(stand.limit > 0 for stand in (standing.tokens, standing.requests) if stand is not None)  # type: ignore[operator]


LIMITED = {"x-ratelimit-limit-requests": "7"}


@pytest.mark.parametrize(
    ("outcome", "seen"),
    [
        (Completed("x"), Seen("served", None, Standing(Stand(7)))),
        (Throttled("429", 429, 600.0), Seen("throttled", 3.0)),
        (ServerFault("x", 529), Seen("overloaded", 3.0)),
        (ServerFault("x", 500), Seen("failed", 3.0)),
        (Rejected("x", 400), Seen("failed", 3.0)),
    ],
)
def test_only_successes_tell_limits(outcome: Outcome, seen: Seen) -> None:
    assert seen_of(outcome, 3.0, LIMITED, NOW) == seen
