"""The comparison of two worlds can fail: a boundary that is opened on purpose shows, for each role."""

import pytest

from .blind import CALLS, differences, oddities, play
from .openings import MARKED, TIED, TOLD, Opening
from .ways import BASE, BY_ID
from .worlds import ROLES


@pytest.mark.parametrize("opening", TOLD, ids=lambda opening: opening.id)
def test_a_role_that_is_told_more_shows(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    way = BY_ID[opening.way]
    opening.patch(monkeypatch)
    assert differences(play(way.one), play(way.other), opening.role, way.turns)


@pytest.mark.parametrize("name", TIED)
def test_calls_that_are_tied_together_show(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, roles = TIED[name]
    patch(monkeypatch)
    for role in roles:
        way = BY_ID[f"{role}: everything"]
        one, other = play(way.one), play(way.other)
        assert differences(one, other, role, way.turns), role
        assert _called(oddities(one)) >= set(CALLS[role]) - {"search", "pages"}


@pytest.mark.parametrize("name", MARKED)
def test_what_no_request_may_hold_shows_for_every_role(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MARKED[name](monkeypatch)
    assert _called(oddities(play(BASE))) >= set(ROLES)


def _called(odd: list[str]) -> set[str]:
    return {line.split(":")[0] for line in odd}
