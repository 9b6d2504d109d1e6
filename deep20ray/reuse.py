"""When an earlier answer may stand for a fresh one: which question equals which, and how far each policy reaches. Pure.

Two questions are equal when their keys are: SHA-256 of a versioned, allow-listed struct of all that an answer may depend on. What is
not in the struct can't tell two questions apart; a change of what is in it is a new ``KEY_VERSION``.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from deep20ray.answers import Policy, Role, Token
from deep20ray.canonical import Digest, digest_of

KEY_VERSION = 1
ADJUDICATORS = (Role.ORACLE, Role.REVIEWER, Role.JUDGE)
"""The roles that an answer comes from."""


class ReusePolicy(StrEnum):
    """How far back an answer may come from; each reaches all that the ones before it do."""

    OFF = "off"
    TRIAL = "trial"
    RUN = "run"
    SWEEP = "sweep"
    ARCHIVE = "archive"
    """Verified earlier artifacts up to a cutoff, besides the sweep itself."""

    def reaches(self, source: "ReusePolicy") -> bool:
        """Whether an answer that ``source`` is needed for may be used under this policy."""
        order = list(ReusePolicy)
        return ReusePolicy.OFF is not source and order.index(source) <= order.index(self)


@dataclass(frozen=True, slots=True)
class Adjudicator:
    """How one adjudicator was configured and instructed."""

    config_sha256: str
    prompt_sha256: str


@dataclass(frozen=True, slots=True)
class Terms:
    """All that an answer depends on besides subject and question. ``adjudicators`` has the three of ``ADJUDICATORS``."""

    vocabulary: tuple[Token, ...]
    policy: Policy
    adjudicators: Mapping[Role, Adjudicator]
    search_sha256: str
    """Digest of the plan's search entry: back-end, endpoint, numbers, excluded domains."""
    fetch_policy: str

    @property
    def parts(self) -> dict[str, object]:
        """Their share of a key's struct, as JSON."""
        return {
            "vocabulary": [token.value for token in self.vocabulary],
            "policy": self.policy.value,
            "adjudicators": {
                role.value: {
                    "config_sha256": self.adjudicators[role].config_sha256,
                    "prompt_sha256": self.adjudicators[role].prompt_sha256,
                }
                for role in ADJUDICATORS
            },
            "search_sha256": self.search_sha256,
            "fetch_policy": self.fetch_policy,
        }


def folded(question: str) -> str:
    """NFC, white space folded, nothing else: "Polish" isn't "polish", and "Is it?" isn't "Is it"."""
    return " ".join(unicodedata.normalize("NFC", question).split())


def answer_key(subject: Digest, question: str, terms: Terms) -> Digest:
    """The key of a question about a trusted subject, given by its digest."""
    return digest_of({"version": KEY_VERSION, "subject": subject, "question": folded(question), **terms.parts})
