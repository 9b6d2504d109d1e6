"""No role can tell apart two worlds that are equal in what it may see: the whole system but Ray, over real HTTP."""

from collections import Counter
from functools import cache

import pytest

from .blind import CALLS, Played, differ_elsewhere, differences, key_of, oddities, play
from .provider import World
from .ways import BASE, GAME, WAYS, Way
from .worlds import ROLES


@cache
def _base() -> Played:
    return play(BASE)


def played(world: World) -> Played:
    return _base() if world is BASE else play(world)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.id)
def test_a_role_is_sent_the_same_bytes_in_both_worlds(way: Way) -> None:
    one, other = played(way.one), played(way.other)
    assert differ_elsewhere(one, other, way.role), "the worlds do differ"
    compared = one.sent(way.role, way.turns)
    assert {call for _, _, call in compared} == set(CALLS[way.role]), "there is something to compare"
    assert differences(one, other, way.role, way.turns) == []
    assert oddities(one) == oddities(other) == []


def test_one_world_played_twice_differs_nowhere() -> None:
    one, other = _base(), play(BASE)
    assert one.journal == other.journal
    assert all(one.sent(role) and differences(one, other, role) == [] for role in ROLES)


def test_a_world_that_reuses_answers_asks_for_none_of_them_again() -> None:
    way = next(way for way in WAYS if way.id == "guesser: reused answers of an earlier trial")
    calls = {name: Counter(seen.call for seen in play(world).seen) for name, world in (("fresh", way.one), ("reused", way.other))}
    assert calls["fresh"]["guesser"] == calls["reused"]["guesser"] == 2 * len(GAME)
    assert {call: calls["fresh"][call] for call in ("oracle", "reviewer", "judge")} == {"oracle": 8, "reviewer": 6, "judge": 4}
    assert {call: 2 * calls["reused"][call] for call in ("oracle", "reviewer", "judge")} == {"oracle": 8, "reviewer": 6, "judge": 4}


def test_each_role_uses_its_own_key_alone_and_searches_and_pages_none() -> None:
    played = _base()
    for call, authorization in played.authorizations:
        assert authorization == (None if call in ("search", "pages") else f"Bearer {key_of(call)}")
    assert {call for call, _ in played.authorizations} == {"queries", "search", "pages", *ROLES}
    wires = [repr(seen.wire) for seen in played.seen]
    assert not [wire for wire in wires for role in ROLES if key_of(role) in wire]
