"""Answers that were given before: what is kept of them, who may have them, and what stops them. Pure; see ``owner`` for the rest.

Only final adjudications are kept, UNKNOWN included. A hit is never a source, a degenerate question is neither stored nor looked up, and
answers to one question that disagree stop all later hits on it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deep20ray.answers import Token
from deep20ray.canonical import Digest, canonical
from deep20ray.reuse import ReusePolicy
from deep20ray_cluster.errors import PlanMismatch
from deep20ray_cluster.journal import Event

FACTS = ("path", "oracle", "oracle_basis", "reviewer", "reviewer_basis", "judge", "judge_basis", "evidence")
"""What a closed turn says of its adjudication, and a hit repeats."""


@dataclass(frozen=True, slots=True)
class Source:
    """The turn that an answer was found in; ``at`` is when it closed, in milliseconds since 1970."""

    run: str
    trial: str
    turn: int
    at: int


@dataclass(frozen=True, slots=True)
class Record:
    """A final adjudication. ``facts`` is canonical JSON of those of ``FACTS`` that it has; ``cost`` what its calls cost, if known."""

    source: Source
    token: Token
    facts: bytes
    cost: int | None
    archived: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where one trial's question belongs. Those that are ``shared`` share answers; ``asker`` is the (run, trial)."""

    key: Digest
    scope: tuple[str, ...]
    asker: tuple[str, str]

    @property
    def shared(self) -> tuple[Digest, tuple[str, ...]]:
        """What equal places have in common."""
        return self.key, self.scope


@dataclass(frozen=True, slots=True)
class Hit:
    """An earlier answer in a trial's hands. ``policy`` is the narrowest one that reaches its source."""

    key: Digest
    source: Source
    policy: ReusePolicy
    token: Token
    facts: Mapping[str, Any]
    cost: int | None

    @classmethod
    def of(cls, place: Place, record: Record) -> "Hit":
        """As that place has it."""
        run, trial = place.asker
        if record.archived:
            policy = ReusePolicy.ARCHIVE
        elif record.source.run != run:
            policy = ReusePolicy.SWEEP
        else:
            policy = ReusePolicy.TRIAL if record.source.trial == trial else ReusePolicy.RUN
        return cls(place.key, record.source, policy, record.token, json.loads(record.facts), record.cost)

    @classmethod
    def read(cls, body: Mapping[str, Any], key: Digest) -> "Hit":
        """From its journal event.

        Raises:
            PlanMismatch: it answers another question than would be asked now.
        """
        if body["key"] != key:
            raise PlanMismatch("the journal holds a reused answer to another question; resume with the version that began the sweep")
        source, facts = body["source"], body["facts"]
        found = Source(source["run"], source["trial"], source["turn"], source["at"])
        return cls(key, found, ReusePolicy(source["policy"]), Token(body["token"]), facts, body["cost_microusd"])

    @property
    def provenance(self) -> dict[str, Any]:
        """What is published of its source."""
        source = self.source
        return {"run": source.run, "trial": source.trial, "turn": source.turn, "at": source.at, "policy": self.policy.value}

    @property
    def body(self) -> dict[str, Any]:
        """Of its journal event."""
        answer = {"token": self.token.value, "facts": dict(self.facts), "cost_microusd": self.cost}
        return {"key": self.key, "source": self.provenance, **answer}


class Book:
    """All answers by place. Pure; of several that agree the first one is given."""

    def __init__(self) -> None:
        self._first: dict[tuple[Digest, tuple[str, ...]], Record] = {}
        self._disputed: set[tuple[Digest, tuple[str, ...]]] = set()

    def add(self, place: Place, record: Record) -> None:
        """One more answer, in the order of the journal."""
        if self._first.setdefault(place.shared, record).token is not record.token:
            self._disputed.add(place.shared)

    def find(self, place: Place) -> Record | None:
        """An answer that may be used."""
        return None if self.disputed(place) else self._first.get(place.shared)

    def disputed(self, place: Place) -> bool:
        """Whether answers to that question disagree."""
        return place.shared in self._disputed


def record_of(closed: Event) -> Record | None:
    """The answer of a closed turn that asked; None for a hit, which is never a source."""
    body = closed.body
    if "reused" in body:
        return None
    facts = canonical({name: body[name] for name in FACTS if name in body})
    return Record(Source(closed.run, closed.trial, closed.turn, closed.at), Token(body["token"]), facts, body.get("adjudication_microusd"))


@dataclass(frozen=True, slots=True)
class ArchivedRun:
    """An earlier run that answers may come from. ``differs`` names what of its terms isn't the sweep's; its answers are then no use."""

    run_id: str
    statement_sha256: str
    keyid: str
    answers: int
    differs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Archive:
    """Verified earlier answers to questions that a sweep can ask, of turns that closed before the cutoff."""

    cutoff: str
    runs: tuple[ArchivedRun, ...]
    answers: tuple[tuple[Digest, Record], ...]
    sha256: Digest
    """Of the file that keeps all this in the sweep's folder."""

    @property
    def statements(self) -> dict[str, str]:
        """By run id, the digest of its statement."""
        return {run.run_id: run.statement_sha256 for run in self.runs}

    @property
    def entry(self) -> dict[str, Any]:
        """What the plan says of it."""
        runs = [
            {
                "run_id": run.run_id,
                "statement_sha256": run.statement_sha256,
                "keyid": run.keyid,
                "answers": run.answers,
                "differs": list(run.differs),
            }
            for run in self.runs
        ]
        return {"cutoff": self.cutoff, "sha256": self.sha256, "runs": runs}
