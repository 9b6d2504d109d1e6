"""Two worlds drawn at random: what a role may see is drawn once, all else anew for the second world."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deep20ray.actions import Ask, Guess
from deep20ray.subjects import TrustedSubject

from .blind import differ_elsewhere, differences, oddities, play
from .provider import World, page_address
from .ways import QUESTIONS
from .worlds import ROLES

DIRECTIONAL = ("YES", "RATHER_YES", "RATHER_NO", "NO")
TOKENS = (*DIRECTIONAL, "UNKNOWN")
WORDS = ["lamp", "river", "Ünïted", "木", "stone's", '"quoted"', "back\\slash", "<tag>", "YES", "UNKNOWN", "17th"]
BAD = ("", "no JSON", '{"action":"ASK"}', "YES", '```json\n{"action":"ASK"}\n```')
CALLS = ("queries", "search", *ROLES)
LAST = Guess("the subject", "as such").canonical


def words(chance: Random, most: int = 5) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(1, most)))


def subject(chance: Random) -> TrustedSubject:
    return TrustedSubject(words(chance), tuple(words(chance) for _ in range(chance.randint(0, 3))), words(chance, 12))


def path_to(final: str, chance: Random) -> tuple[str, ...]:
    """Tokens of Oracle, Reviewer and Judge that end in ``final``."""
    if chance.random() < 0.4:
        return (final, final, chance.choice(TOKENS))
    oracle = chance.choice(DIRECTIONAL)
    return (oracle, chance.choice([token for token in TOKENS if token != oracle]), final)


def reply(chance: Random, name: str) -> str:
    """A Guesser's reply; mostly a question."""
    kind = chance.random()
    if kind < 0.2:
        return chance.choice(BAD)
    return Guess(name, words(chance)).canonical if kind < 0.35 else Ask(chance.choice(QUESTIONS)).canonical


def game(chance: Random, ending: tuple[str, ...]) -> tuple[str, ...]:
    """Four turns and an ending. No more than two violations in a row, so that it ends where it should."""
    turns = [reply(chance, f"guess {chance.randint(1, 3)}") for _ in range(4)]
    turns[2] = Ask(QUESTIONS[0]).canonical if turns[2] in BAD else turns[2]
    return (*turns, *ending)


def draw(chance: Random) -> World:
    """A whole world, without noise."""
    pages = tuple((page_address(f"page/{n}"), words(chance), words(chance, 30)) for n in range(chance.randint(0, 3)))
    cited = tuple((n, " ".join(text.split()[:3])) for n, (_, _, text) in enumerate(pages, 1) if chance.random() < 0.7)
    ending = (Ask(chance.choice(QUESTIONS)).canonical, LAST)
    tokens = {question: path_to(chance.choice(TOKENS), chance) for question in QUESTIONS}
    return World("thing", subject(chance), game(chance, ending), tokens, {"the subject": "YES"}, pages, cited)


def noise(world: World, chance: Random) -> World:
    """The same game with other doings on the way."""
    return replace(
        world,
        faults={call: tuple(chance.choices(("429", "500", "close", "garbage"), k=chance.randint(0, 3))) for call in CALLS},
        unread={call: chance.randint(0, 2) for call in ("queries", *ROLES[1:])},
        latency={call: chance.random() for call in CALLS},
        usage={"prompt_tokens": chance.randint(0, 999), "completion_tokens": 1, "cost": chance.random()},
        statement={role: words(chance, 20) for role in ROLES[1:]},
        basis={role: chance.choice(("evidence", "knowledge")) for role in ROLES[1:4]},
        mark=str(chance.randint(2, 99)),
    )


def shuffled(world: World, chance: Random) -> World:
    return replace(world, cited=tuple(chance.sample(world.cited, len(world.cited))))


def final(path: tuple[str, ...]) -> str:
    return path[0] if path[0] in ("UNKNOWN", path[1]) else path[2]


def for_guesser(world: World, chance: Random) -> World:
    other = draw(chance)
    tokens = {question: path_to(final(path), chance) for question, path in world.tokens.items()}
    return replace(other, guesser=world.guesser, tokens=tokens)


def for_oracle(world: World, chance: Random) -> World:
    other = draw(chance)
    return replace(world, guesser=game(chance, world.guesser[-2:]), tokens=other.tokens, cited=other.cited)


def for_reviewer(world: World, chance: Random) -> World:
    tokens = {question: (chance.choice(DIRECTIONAL), *chance.choices(TOKENS, k=2)) for question in world.tokens}
    return shuffled(replace(world, guesser=game(chance, world.guesser[-2:]), tokens=tokens), chance)


def for_judge(world: World, chance: Random) -> World:
    tokens = {}
    for question in world.tokens:
        oracle = chance.choice(DIRECTIONAL)
        tokens[question] = (oracle, chance.choice([token for token in TOKENS if token != oracle]), chance.choice(TOKENS))
    return shuffled(replace(world, guesser=game(chance, world.guesser[-2:]), tokens=tokens), chance)


def for_validator(world: World, chance: Random) -> World:
    return replace(draw(chance), subject=world.subject, guesser=game(chance, world.guesser[-2:]))


OTHER: dict[str, Callable[[World, Random], World]] = {
    "guesser": for_guesser,
    "oracle": for_oracle,
    "reviewer": for_reviewer,
    "judge": for_judge,
    "validator": for_validator,
}
"""For each role: another world that is equal in what the role may see in the last question's turn, or in the last guess's."""
TURNS = {"guesser": None, "oracle": (5,), "reviewer": (5,), "judge": (5,), "validator": (6,)}


@pytest.mark.parametrize("role", ROLES)
@settings(max_examples=8, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_a_role_can_not_tell_random_worlds_apart(role: str, chance: Random) -> None:
    world = draw(chance)
    if role in ("reviewer", "judge"):
        world = OTHER[role](world, chance)  # one in which the role is called at all
    other = noise(OTHER[role](world, chance), chance)
    one, two = play(world), play(other)
    assert differ_elsewhere(one, two, role)
    assert one.sent(role, TURNS[role])
    assert differences(one, two, role, TURNS[role]) == []
    assert oddities(one) == oddities(two) == []
