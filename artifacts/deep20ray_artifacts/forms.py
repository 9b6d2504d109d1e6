"""The digest of every message that a role may be sent, computed from what is public, written down a second time.

The first time is the actors' own message types, which this package must not know. Whoever audits with the code that is audited finds
less; a test holds the two together, kind by kind. A message's digest is that of the canonical JSON of its type and every field.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from deep20ray.canonical import Digest, canonical, digest_of

Item = Mapping[str, Any]

REMINDER: Item = {"kind": "reminder"}
"""In a Guesser's history: the fixed format reminder."""


def exchange(action: str, token: str) -> Item:
    """In a Guesser's history: a valid action in canonical form, and the token that followed it."""
    return {"kind": "exchange", "action": action, "token": token}


class GuesserViews:
    """The Guesser's whole view, turn by turn: each is the one before and one item more, and is hashed so."""

    def __init__(self, category: str, variation: str) -> None:
        whole = canonical({"type": "guesser", "category": category, "variation": variation, "history": []})
        # The keys are sorted: what follows the history is "type" and "variation".
        before, _, self._after = whole.partition(b'"history":[]')
        self._hash = hashlib.sha256(before + b'"history":[')
        self._empty = True

    def add(self, item: Item) -> None:
        """One more item."""
        self._hash.update(canonical(item) if self._empty else b"," + canonical(item))
        self._empty = False

    @property
    def digest(self) -> Digest:
        """Of the view as it stands."""
        whole = self._hash.copy()
        whole.update(b"]" + self._after)
        return Digest(whole.hexdigest())


def subject(row: Mapping[str, Any]) -> Item:
    """The trusted subject of a row of ``subjects``."""
    return {"canonical_name": row["name"], "aliases": list(row["aliases"]), "description": row["description"]}


def queries(about: Item, question: str, target: int) -> Digest:
    """For search queries to be written."""
    return digest_of({"type": "queries", "subject": about, "question": question, "target": target})


def own_search(about: Item, question: str) -> Digest:
    """The search for the program's own query of a question."""
    return digest_of({"type": "search", "query": f"{about['canonical_name']} {question}"})


def research(about: Item, question: str, searches: int) -> Digest:
    """For an Oracle that searches with its provider's own tool."""
    return digest_of({"type": "research", "subject": about, "question": question, "searches": searches})


def opinion(role: str, about: Item, question: str, evidence: Sequence[Mapping[str, Any]]) -> Digest:
    """A Reviewer's or a Judge's: the question, the subject and the numbered evidence of rows of ``evidence``."""
    items = [{"number": row["number"], "url": row["url"], "excerpt": row["excerpt"]} for row in evidence]
    return digest_of({"type": role, "subject": about, "question": question, "evidence": items})


def validator(about: Item, name: str, description: str) -> Digest:
    """A guess and the subject."""
    return digest_of({"type": "validator", "subject": about, "guess": {"name": name, "description": description}})
