"""The prompt texts: versioned, composed of shared parts, and pinned by digest.

``index.json`` lists every revision that ever was, in order; an entry is never changed or removed. A text that no longer matches its
entry's digest is refused at load, so that a changed word without a new revision can't be played.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

_PACKAGE = resources.files(__name__)


class PromptError(Exception):
    """No such prompt, or a text that isn't what its revision was pinned to."""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One pinned revision. ``parts``, ``guide``, ``reminder`` and ``queries`` name files under ``texts``."""

    revision: str
    role: str
    edition: str
    policy: str | None
    parts: tuple[str, ...]
    guide: str | None
    reminder: str | None
    sha256: str
    variant: str | None = None
    """``native``: the Oracle searches with its provider's own tool."""
    queries: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """One role's texts. ``guide`` and ``reminder`` are the Guesser's, ``queries`` the Oracle's, for writing search queries."""

    role: str
    edition: str
    policy: str | None
    revision: str
    system: str
    guide: str | None
    reminder: str | None
    digest: str
    """SHA-256 hex of the canonical JSON of {guide, reminder, system}, and of ``queries`` where there is one."""
    queries: str | None = None


@cache
def index() -> tuple[IndexEntry, ...]:
    """Every revision, oldest first."""
    entries = json.loads(_PACKAGE.joinpath("index.json").read_text(encoding="utf-8"))
    return tuple(
        IndexEntry(**{**entry, "parts": tuple(entry["parts"]), "queries": tuple(entry["queries"]) if "queries" in entry else None})
        for entry in entries
    )


@cache
def load(role: str, edition: str, policy: str | None = None, revision: str | None = None, variant: str | None = None) -> Prompt:
    """A role's prompt, the newest revision unless one is named. Guesser and Validator have no policy; only the Oracle has variants.

    Raises:
        PromptError: there is none, or its text was changed without a new revision.
    """
    for entry in reversed(index()):
        if (entry.role, entry.edition, entry.policy, entry.variant) != (role, edition, policy, variant):
            continue
        if revision in (None, entry.revision):
            prompt = compose(entry)
            if prompt.digest != entry.sha256:
                raise PromptError(f"{entry.revision}: its text has changed; restore it, or add a new revision to index.json")
            return prompt
    wanted = " ".join(part for part in (role, edition, policy, variant, revision) if part)
    raise PromptError(f"there is no prompt for {wanted}; index.json lists what there is")


def compose(entry: IndexEntry) -> Prompt:
    """An entry's texts as they stand now, with their digest, pinned or not."""
    system = "\n\n".join(_text(part) for part in entry.parts)
    guide = _text(entry.guide) if entry.guide else None
    reminder = _text(entry.reminder) if entry.reminder else None
    queries = "\n\n".join(_text(part) for part in entry.queries) if entry.queries else None
    digest = texts_digest(system, guide, reminder, queries)
    return Prompt(entry.role, entry.edition, entry.policy, entry.revision, system, guide, reminder, digest, queries)


def texts_digest(system: str, guide: str | None, reminder: str | None, queries: str | None) -> str:
    """The digest of a prompt's texts; see ``Prompt``."""
    texts = {"guide": guide, "reminder": reminder, "system": system, **({"queries": queries} if queries else {})}
    canonical = json.dumps(texts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _text(name: str) -> str:
    return _PACKAGE.joinpath("texts", f"{name}.txt").read_text(encoding="utf-8").strip()
