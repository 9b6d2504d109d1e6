"""Editions: frozen sets of game rules, as values. No other code asks which edition it plays."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from deep20ray.answers import Policy, Token
from deep20ray.canonical import Digest, digest_of
from deep20ray.errors import UnknownEdition


@dataclass(frozen=True, slots=True)
class Edition:
    """The rules that one trial, and the shape that one run, is played by."""

    id: str
    tokens: tuple[Token, ...]
    question_limit: int
    subjects: int
    rounds: int
    category_guide: bool
    """Whether the Guesser's start message carries the guide to category labels."""
    policies: tuple[Policy, ...]
    """Accepted adjudication policies; the first is the edition's default."""
    violation_limit: int = 5
    """Consecutive violations that end a trial."""

    @property
    def failure_score(self) -> int:
        """One above the question limit."""
        return self.question_limit + 1

    @property
    def digest(self) -> Digest:
        """Digest of every rule."""
        return digest_of(
            {
                "id": self.id,
                "tokens": [str(token) for token in self.tokens],
                "question_limit": self.question_limit,
                "subjects": self.subjects,
                "rounds": self.rounds,
                "category_guide": self.category_guide,
                "policies": [str(policy) for policy in self.policies],
                "violation_limit": self.violation_limit,
            }
        )


EDITION_1_0 = Edition(
    id="1.0",
    tokens=(Token.YES, Token.NO, Token.UNKNOWN),
    question_limit=50,
    subjects=7,
    rounds=5,
    category_guide=False,
    policies=(Policy.EVIDENCE_FIRST,),
)

EDITION_1_1 = Edition(
    id="1.1",
    tokens=(Token.YES, Token.RATHER_YES, Token.RATHER_NO, Token.NO, Token.UNKNOWN),
    question_limit=40,
    subjects=10,
    rounds=3,
    category_guide=True,
    policies=(Policy.EVIDENCE_OR_KNOWLEDGE, Policy.BOUNDED_JUDGE),
)

EDITIONS: Mapping[str, Edition] = MappingProxyType({edition.id: edition for edition in (EDITION_1_0, EDITION_1_1)})


def edition(id_: str) -> Edition:
    """The edition of that id.

    Raises:
        UnknownEdition: with the ids that exist.
    """
    try:
        return EDITIONS[id_]
    except KeyError:
        raise UnknownEdition(f"there is no edition {id_!r}; choose one of {', '.join(EDITIONS)}") from None
