"""Boundaries opened on purpose, one at a time, each as a patch: what the comparison of two worlds must notice.

Most make the table pass on something it knows. The others make a role's host or its client tie calls together.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import CookieJar

from deep20ray.seeds import TrialId
from deep20ray_actors import evidence
from deep20ray_actors.providers import transport
from deep20ray_actors.providers.transport import HttpTransport
from deep20ray_actors.providers.wire import WireRequest
from deep20ray_cluster import table as tables
from deep20ray_cluster.memory import Reply
from deep20ray_cluster.table import Table

from .worlds import ROLES

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Opening:
    """One boundary of a role, open; ``way`` is the pair of worlds that shows it."""

    role: str
    name: str
    way: str
    patch: Patch

    @property
    def id(self) -> str:
        """For people."""
        return f"{self.role}: {self.name}"


class Known:
    """What a table knows at some moment."""

    def __init__(self) -> None:
        self.table: Any = None
        self.replies: list[tuple[str, Reply]] = []
        self.history: tuple[Any, ...] = ()

    def last(self, call: str) -> str:
        """The last reply to that call, as text."""
        return next((str(reply.outcome) for known, reply in reversed(self.replies) if known == call), "")

    @property
    def subject(self) -> Any:
        """The whole subject."""
        return self.table._trial.subject.trusted

    def audits(self, what: str) -> str:
        """One thing of all audits."""
        return str([str(getattr(reply.audit, what)) for _, reply in self.replies])

    @property
    def tokens(self) -> str:
        """The tokens that went to the Guesser."""
        return str([getattr(item, "token", None) for item in self.history])


_FIELD = {"guesser": "variation", "search": "query", "oracle": "question", "reviewer": "question", "judge": "question"}


def telling(call: str, what: Callable[[Known], str]) -> Patch:
    """The table adds something it knows to that call's message."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        ask, known = Table._ask, Known()

        async def leaky(self: Any, role: Any, name: str, route: str, message: Any, read: Any) -> Any:
            known.table = self
            if name == "guesser":
                known.history = message.history
            if name == call:
                message = _told(message, name, what(known))

            def reading(reply: Reply) -> Any:
                known.replies.append((name, reply))
                return read(reply)

            return await ask(self, role, name, route, message, reading)

        monkeypatch.setattr(Table, "_ask", leaky)

    return patch


def _told(message: Any, call: str, text: str) -> Any:
    if call == "validator":
        return message.model_copy(update={"guess": message.guess.model_copy(update={"description": message.guess.description + text})})
    field = _FIELD[call]
    return message.model_copy(update={field: f"{getattr(message, field)} {text}"})


def _seeds_of_the_subject(monkeypatch: pytest.MonkeyPatch) -> None:
    live = Table._live

    async def leaky(self: Any, *arguments: Any) -> Any:
        trial = self._trial
        self._trial = replace(trial, id=TrialId(trial.subject.trusted.digest))
        try:
            return await live(self, *arguments)
        finally:
            self._trial = trial

    monkeypatch.setattr(Table, "_live", leaky)


def _as_cited(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = evidence.keep

    def unsorted(cited: Any, results: Any) -> Any:
        kept = keep(cited, results)
        ordered = sorted(kept, key=lambda item: [" ".join(each.excerpt.split()) for each in cited].index(item.excerpt))
        return tuple(replace(item, number=number) for number, item in enumerate(ordered, 1))

    monkeypatch.setattr(evidence, "keep", unsorted)


def _kind_by_basis(monkeypatch: pytest.MonkeyPatch) -> None:
    research = vars(tables)["research"]

    async def leaky(*arguments: Any) -> Any:
        answered = await research(*arguments)
        kept = (replace(each, item=replace(each.item, excerpt=f"[{answered.basis.value}] {each.item.excerpt}")) for each in answered.kept)
        return replace(answered, kept=tuple(kept))

    monkeypatch.setattr(tables, "research", leaky)


def _header(name: str, value: Callable[[WireRequest, Any], str]) -> Patch:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        send = HttpTransport.send

        async def marked(self: Any, request: WireRequest, lease: Any, way: Any, trail: Any, ask: Any) -> Any:
            marked = replace(request, headers={**request.headers, name: value(request, lease)})
            return await send(self, marked, lease, way, trail, ask)

        monkeypatch.setattr(HttpTransport, "send", marked)

    return patch


def _field(name: str, value: Callable[[dict[str, str]], str]) -> Patch:
    """A field in the body, from what this client's last reply said in its headers."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        fetch = HttpTransport._fetch

        async def remembering(self: Any, request: WireRequest, way: Any) -> Any:
            said = self.__dict__.setdefault("said", {})
            if request.body:
                text = f',"{name}":"{value(said)}"}}'.encode()
                request = replace(request, body=request.body[:-1] + text)
            reply = await fetch(self, request, way)
            said.update(reply.headers if reply else {})
            return reply

        monkeypatch.setattr(HttpTransport, "_fetch", remembering)

    return patch


def _cookies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport.aiohttp, "DummyCookieJar", lambda: CookieJar(unsafe=True))


def _judged(known: Known) -> str:
    return str([call for call, _ in known.replies].count("judge"))


_REUSED = "reused answers of an earlier trial"


def _table() -> list[Opening]:
    told: list[tuple[str, str, str, str, Callable[[Known], str]]] = [
        ("guesser", "told the subject", "subject", "guesser", lambda known: known.subject.canonical_name),
        ("guesser", "told how long the description is", "description", "guesser", lambda known: str(len(known.subject.description))),
        ("guesser", "told the Oracle's token", "paths to the same tokens", "guesser", lambda known: known.last("oracle")),
        ("guesser", "told how often a Judge was called", "paths to the same tokens", "guesser", _judged),
        ("guesser", "told what the search found", "search page", "guesser", lambda known: known.last("search")),
        ("guesser", "told its own bad text", "the text of a violation", "guesser", lambda known: known.last("guesser")),
        ("guesser", "told the statements", "statements", "guesser", lambda known: known.last("oracle")),
        ("guesser", "told the wire tries", "retries", "guesser", lambda known: known.audits("wire_tries")),
        ("guesser", "told the time", "latency", "guesser", lambda known: known.audits("latency_ms")),
        ("guesser", "told the usage", "usage, cost, caches", "guesser", lambda known: known.audits("usage")),
        ("guesser", "told how many replies could not be read", "re-asks", "guesser", lambda known: str(len(known.replies))),
        ("guesser", "told how many answers were reused", _REUSED, "guesser", lambda known: str(known.table._answers.hits)),
        ("validator", "told how many answers were reused", _REUSED, "validator", lambda known: str(known.table._answers.hits)),
        ("oracle", "told earlier tokens", "earlier answers", "oracle", lambda known: known.tokens),
        ("oracle", "told how many actions there were", "history", "oracle", lambda known: str(len(known.table._actions))),
        ("oracle", "told the Reviewer's last answer", "reviewers and judges", "oracle", lambda known: known.last("reviewer")),
        ("oracle", "a search told earlier tokens", "earlier answers", "search", lambda known: known.tokens),
        ("oracle", "a search told its own last answer", "its own earlier evidence", "search", lambda known: known.last("oracle")),
        ("reviewer", "told the Oracle's token", "the Oracle's tokens", "reviewer", lambda known: known.last("oracle")),
        ("reviewer", "told the Oracle's statement", "statements", "reviewer", lambda known: known.last("oracle")),
        ("reviewer", "told the Oracle's wire tries", "retries", "reviewer", lambda known: known.audits("wire_tries")),
        ("reviewer", "told all search results", "pages that aren't cited", "reviewer", lambda known: known.last("search")),
        ("judge", "told the two tokens", "the two tokens", "judge", lambda known: known.last("oracle") + known.last("reviewer")),
        ("judge", "told the Reviewer's token", "the Reviewer's token", "judge", lambda known: known.last("reviewer")),
        ("judge", "told the Reviewer's statement", "statements", "judge", lambda known: known.last("reviewer")),
        ("validator", "told the tokens", "answers", "validator", lambda known: known.tokens),
        ("validator", "told the actions", "history", "validator", lambda known: str(sorted(known.table._actions))),
        ("validator", "told its last verdict", "statements", "validator", lambda known: known.last("validator")),
    ]
    table = [Opening(role, name, f"{role}: {way}", telling(call, what)) for role, name, way, call, what in told]
    table += [
        Opening("guesser", "seeds from the subject", "guesser: subject", _seeds_of_the_subject),
        Opening("reviewer", "evidence in the order of citing", "reviewer: the order of citing", _as_cited),
        Opening("judge", "evidence in the order of citing", "judge: the order of citing", _as_cited),
        Opening("reviewer", "evidence that shows the basis", "reviewer: the Oracle's basis", _kind_by_basis),
    ]
    return table


TOLD = _table()
"""What the comparison must report."""

TIED: dict[str, tuple[Patch, tuple[str, ...]]] = {
    # A Guesser's calls are counted alike in both worlds.
    "a header with the lease": (_header("x-lease", lambda request, lease: str(lease.number)), ROLES[1:]),
    "an idempotency key": (_header("idempotency-key", lambda request, lease: uuid4().hex), ROLES),
    "a conversation handle": (_field("previous_response_id", lambda said: said.get("x-request-id", "")), ROLES),
    "cookies": (_cookies, ROLES),
}
"""What ties calls together, and the roles for which the comparison must report it."""

MARKED: dict[str, Patch] = {
    "a header from the seed": _header("x-trial", lambda request, lease: request.digest),
    "a prompt-cache key": _field("prompt_cache_key", lambda said: "guesser-of-trial-1"),
    "a user": _field("user", lambda said: "deep20ray"),
    "storing": _field("store", lambda said: "no"),
}
"""What two worlds of one trial can't differ in: the list of what a request may hold must report it."""
