"""Pairs of worlds for each role: equal in what it may see, different in one way, or in all ways at once, in all else."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from deep20ray.actions import Ask, Guess
from deep20ray.subjects import TrustedSubject

from .provider import World, page_address
from .worlds import ROLES

KITE = TrustedSubject("kite", ("paper kite", "toy kite"), "A toy flown on a string; not the bird.")
ALIVE, MADE, HEAVY, STRING = "Is it alive?", "Is it man-made?", "Is it heavier than air?", "Does it have a string?"
COUNTRY, SEA, COLD = "Is it a country?", "Is it found in the sea?", "Is it cold?"
QUESTIONS = (ALIVE, MADE, HEAVY, STRING, COUNTRY, SEA, COLD)
TEXT = "A kite is a light frame. It flies on a string,  and some fly high."
PAGES = ((page_address("page/kite"), "Kite", TEXT), (page_address("page/air"), "Air", "Kites are heavier than air."))
CITED = ((1, "It flies on a string, and"), (2, "heavier than air"), (1, "a light frame"))
GAME = (
    Ask(ALIVE).canonical,
    Ask(MADE).canonical,
    "Let me think about that.",
    Guess("plane", "a machine that flies").canonical,
    Ask(HEAVY).canonical,
    Ask(STRING).canonical,
    Guess("kite", "a toy on a string").canonical,
)
"""Agreement, a Judge call, a violation, a rejected guess, an unreviewed UNKNOWN, a Judge call, success."""
TOKENS: dict[str, tuple[str, ...]] = {
    ALIVE: ("NO", "NO", "YES"),
    MADE: ("YES", "RATHER_YES", "RATHER_YES"),
    HEAVY: ("UNKNOWN", "NO", "NO"),
    STRING: ("YES", "NO", "RATHER_YES"),
    COUNTRY: ("NO", "NO", "NO"),
    SEA: ("RATHER_NO", "NO", "UNKNOWN"),
    COLD: ("UNKNOWN", "NO", "NO"),
}
BASE = World("thing", KITE, GAME, TOKENS, {"kite": "YES", "plane": "NO"}, PAGES, CITED)

_OTHER_PATHS = {
    ALIVE: ("RATHER_YES", "UNKNOWN", "NO"),
    MADE: ("RATHER_YES", "RATHER_YES", "NO"),
    HEAVY: ("NO", "YES", "UNKNOWN"),
    STRING: ("RATHER_YES", "RATHER_YES", "NO"),
}
"""The same final tokens as TOKENS, each by another path."""
_OTHER_FINALS = TOKENS | {ALIVE: ("YES", "YES", "NO"), MADE: ("NO", "NO", "YES"), HEAVY: ("YES", "NO", "NO"), STRING: ("NO", "NO", "NO")}
_OTHER_ORACLE = TOKENS | {ALIVE: ("YES", "NO", "UNKNOWN"), MADE: ("RATHER_NO", "RATHER_YES", "NO"), STRING: ("RATHER_YES", "NO", "NO")}
"""Other directional tokens of the Oracle where it is reviewed."""
_SWAPPED = TOKENS | {MADE: ("NO", "YES", "RATHER_YES"), STRING: ("RATHER_NO", "UNKNOWN", "RATHER_YES")}
"""Oracle and Reviewer differ as before, with other tokens."""
_OTHER_START = (
    '{"action": "ASK"}',
    Guess("ship", "a vessel").canonical,
    Ask(COUNTRY).canonical,
    "",
    Ask(SEA).canonical,
    Ask(STRING).canonical,
    Guess("kite", "a toy on a string").canonical,
)
"""Another game up to turn 5, the same question and guess in turns 6 and 7."""
_EVERYONE = ("queries", "search", *ROLES)
_ADJUDICATORS = ROLES[1:]
_USAGE = {
    "prompt_tokens": 900,
    "completion_tokens": 80,
    "prompt_tokens_details": {"cached_tokens": 800, "cache_write_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 70},
    "cost": 0.25,
}
_STATEMENTS = dict.fromkeys(_ADJUDICATORS, "My private reasons, at length.")
_BASES = dict.fromkeys(("oracle", "reviewer", "judge"), "knowledge")


@dataclass(frozen=True)
class Way:
    """Two worlds for a role, and the turns in which what it may see is equal; None for all."""

    role: str
    name: str
    one: World
    other: World
    turns: tuple[int, ...] | None = None

    @property
    def id(self) -> str:
        """For people."""
        return f"{self.role}: {self.name}"


def _around(world: World) -> Iterator[tuple[str, World]]:
    """Worlds that differ from ``world`` in what no role at all may notice."""
    yield "retries", replace(world, faults=dict.fromkeys(_EVERYONE, ("429", "500", "close")))
    yield "garbage first", replace(world, faults=dict.fromkeys(_EVERYONE, ("garbage",)))
    yield "re-asks", replace(world, unread=dict.fromkeys(("queries", *_ADJUDICATORS), 2))
    yield "latency", replace(world, latency=dict.fromkeys(_EVERYONE, 0.3))
    yield "usage, cost, caches", replace(world, usage=_USAGE)
    yield "cookies, ids, served models", replace(world, mark="2")
    yield "statements", replace(world, statement=_STATEMENTS)
    yield "bases", replace(world, basis=_BASES)


def _everything(world: World, **changes: object) -> World:
    """All of ``_around`` at once, and some more."""
    noisy = replace(
        world,
        faults=dict.fromkeys(_EVERYONE, ("429", "close")),
        unread=dict.fromkeys(("queries", *_ADJUDICATORS), 1),
        latency=dict.fromkeys(_EVERYONE, 0.02),
        usage=_USAGE,
        mark="2",
        statement=_STATEMENTS,
        basis=_BASES,
    )
    return replace(noisy, **changes)  # type: ignore[arg-type]


def _guesser(world: World) -> Iterator[tuple[str, World]]:
    other = replace(world, subject=TrustedSubject("hot-air balloon", (), "It rises. Nothing else is meant."))
    pages = (("https://example.net/balloon", "Balloon", "A balloon is full of hot air."),)
    bad = (*world.guesser[:2], '{"action": "WIN", "name": "kite"}', *world.guesser[3:])
    yield "subject", other
    yield "description", replace(world, subject=TrustedSubject("kite", KITE.aliases, "A toy. Reworded."))
    yield "paths to the same tokens", replace(world, tokens=_OTHER_PATHS)
    yield "search page", replace(world, pages=pages)
    yield "evidence", replace(world, cited=((2, "Kites"),))
    yield "the text of a violation", replace(world, guesser=bad)
    yield "everything", _everything(other, tokens=_OTHER_PATHS, pages=pages, cited=(), guesser=bad)


def _oracle(world: World) -> Iterator[tuple[str, World]]:
    yield "earlier answers", replace(world, tokens=_OTHER_FINALS)
    yield "history", replace(world, guesser=_OTHER_START)
    yield "its own earlier evidence", replace(world, cited=())
    yield "reviewers and judges", replace(world, tokens={q: (o, "UNKNOWN", "UNKNOWN") for q, (o, _, _) in TOKENS.items()})
    yield "verdict on another guess", replace(world, verdicts={"kite": "YES", "plane": "NO", "ship": "NO"}, guesser=_OTHER_START)
    yield "everything", _everything(world, tokens=_OTHER_FINALS, cited=(), guesser=_OTHER_START)


def _reviewer(world: World) -> Iterator[tuple[str, World]]:
    yield "the Oracle's tokens", replace(world, tokens=_OTHER_ORACLE)
    yield "the Oracle's basis", replace(world, basis={"oracle": "knowledge"})
    yield "the order of citing", replace(world, cited=tuple(reversed(world.cited)))
    yield "the Judge's tokens", replace(world, tokens={q: (o, r, "UNKNOWN") for q, (o, r, _) in TOKENS.items()})
    yield "pages that aren't cited", replace(world, pages=(*world.pages, ("https://example.net/other", "Other", "Unused.")))
    yield "history", replace(world, guesser=_OTHER_START)
    yield "everything", _everything(world, tokens=_OTHER_ORACLE, cited=tuple(reversed(world.cited)), guesser=_OTHER_START)


def _judge(world: World) -> Iterator[tuple[str, World]]:
    yield "the two tokens", replace(world, tokens=_SWAPPED)
    yield "the Reviewer's token", replace(world, tokens={q: (o, "UNKNOWN" if o != r else r, j) for q, (o, r, j) in TOKENS.items()})
    yield "the order of citing", replace(world, cited=tuple(reversed(world.cited)))
    yield "history", replace(world, guesser=_OTHER_START)
    yield "everything", _everything(world, tokens=_SWAPPED, cited=tuple(reversed(world.cited)), guesser=_OTHER_START)


def _validator(world: World) -> Iterator[tuple[str, World]]:
    yield "answers", replace(world, tokens=_OTHER_FINALS)
    yield "history", replace(world, guesser=_OTHER_START)
    yield (
        "verdict on an earlier guess",
        replace(world, verdicts={"kite": "YES"}, guesser=(*GAME[:3], Guess("ball", "a toy").canonical, *GAME[4:])),
    )
    yield "search page, evidence", replace(world, pages=world.pages[:1], cited=())
    yield "everything", _everything(world, tokens=_OTHER_FINALS, pages=world.pages[:1], cited=(), guesser=_OTHER_START)


def ways(role: str, base: World = BASE) -> list[Way]:
    """All pairs of a role. After another history only the last question and the last guess are compared."""
    own = {"guesser": _guesser, "oracle": _oracle, "reviewer": _reviewer, "judge": _judge, "validator": _validator}[role]
    found = [Way(role, name, base, other, _turns(role, other)) for name, other in (*_around(base), *own(base))]
    return found + (_reuse(role, base) if role in ("guesser", "validator") else [])


def _reuse(role: str, base: World) -> list[Way]:
    """Every question answered afresh, or given an earlier answer: of the game before, of this one, or both under noise."""
    twice, again = replace(base, rounds=2), replace(base, guesser=(*base.guesser[:6], base.guesser[0], *base.guesser[6:]))
    return [
        Way(role, "reused answers of an earlier trial", twice, replace(twice, reuse="run")),
        Way(role, "reused answers of the same trial", again, replace(again, reuse="trial")),
        Way(role, "reused answers, and everything around them", twice, _everything(twice, reuse="sweep", tokens=_OTHER_PATHS)),
    ]


def _turns(role: str, other: World) -> tuple[int, ...] | None:
    if other.guesser[3:] == GAME[3:]:
        return None
    return (7,) if role == "validator" else (6,)


WAYS = [way for role in ROLES for way in ways(role)]
BY_ID = {way.id: way for way in WAYS}
