"""How an Oracle comes to its answer: queries, searches, pages, and then the question itself, or all of it by its provider's own tool.

Every step is a logical call of its own, journalled before the next one is sent; this module decides only which comes next, so that a
resumed trial takes the same way again. It knows the trusted subject and the question, and nothing else of the trial.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Protocol, TypeVar

from deep20ray.answers import Basis, Token
from deep20ray.canonical import Digest, sha256
from deep20ray.subjects import TrustedSubject
from deep20ray_actors import evidence, replies
from deep20ray_actors.messages import Message, OracleMessage, PagesMessage, QueriesMessage, ResearchMessage, ResultItem, SearchMessage
from deep20ray_actors.outcomes import EXCLUDED, Completed, Fetched, Found, Page
from deep20ray_cluster.memory import Reply

_Parsed = TypeVar("_Parsed")


@dataclass(frozen=True, slots=True)
class ResearchPolicy:
    """How much is searched and read for a question."""

    native: bool
    """Whether the Oracle searches with its provider's own tool."""
    query_target: int
    """Queries (or searches, if native) to aim for; 0 for the program's own one query."""
    max_queries: int
    """The ceiling that no question passes."""
    max_results: int
    fetch_pages: int


class ExcludedSource(Exception):
    """The Oracle's answer rests on a page that must not be read; it is none."""


class Asker(Protocol):
    """One call of the Oracle's turn until its reply reads, from the journal or live; see ``table``."""

    async def __call__(
        self, call: str, message: Message, read: Callable[[Reply], _Parsed | None], *, tolerant: bool = False
    ) -> _Parsed | None:
        """What ``read`` made of the reply. ``tolerant``: None where the call ended in a fault that another call can make up for."""


@dataclass(frozen=True, slots=True)
class KeptItem:
    """An evidence item and when its text was retrieved, in milliseconds since 1970."""

    item: evidence.Evidence
    retrieved_at: int


@dataclass(frozen=True, slots=True)
class Answered:
    """An Oracle's answer."""

    token: Token
    basis: Basis
    kept: tuple[KeptItem, ...]


async def research(policy: ResearchPolicy, subject: TrustedSubject, question: str, tokens: tuple[Token, ...], ask: Asker) -> Answered:
    """An Oracle's answer to a question, and the evidence for it.

    Raises:
        ExcludedSource: its provider's own search gave it a page of an excluded domain, as the page itself showed.
    """
    if policy.native:
        return await _natively(policy, subject, question, tokens, ask)
    hits = await _search(policy, subject, question, ask)
    results, read = await _read(policy, hits, ask)
    message = OracleMessage.of(subject, question, results)
    answer = await ask("oracle", message, lambda reply: replies.oracle_answer(_text(reply), tokens, results))
    assert answer is not None
    kept = evidence.keep(answer.evidence, evidence.held_results(results))
    return Answered(answer.token, answer.basis, tuple(KeptItem(item, read.get(item.text_digest, hits.times[item.url])) for item in kept))


@dataclass(frozen=True, slots=True)
class _Hits:
    results: tuple[ResultItem, ...]
    times: Mapping[str, int]


async def _search(policy: ResearchPolicy, subject: TrustedSubject, question: str, ask: Asker) -> _Hits:
    """All searches of a question. One that fails is made up for by another that works; the last one must, if none did."""
    found: list[tuple[Found, int]] = []
    queries = await _queries(policy, subject, question, ask)
    for number, query in enumerate(queries, start=1):
        name = "search" if number == 1 else f"search-{number}"
        tolerant = bool(found) or number < len(queries)
        reply = await ask(name, query, _found, tolerant=tolerant)
        if reply is not None:
            found.append(reply)
    return _merged(found, policy.max_results)


async def _queries(policy: ResearchPolicy, subject: TrustedSubject, question: str, ask: Asker) -> tuple[SearchMessage, ...]:
    if policy.query_target == 0:
        return (SearchMessage.of(subject, question),)
    message = QueriesMessage.of(subject, question, policy.query_target)
    queries = await ask("queries", message, lambda reply: replies.search_queries(_text(reply), policy.max_queries))
    return tuple(SearchMessage(query=query) for query in queries or ()) or (SearchMessage.of(subject, question),)


def _merged(found: Sequence[tuple[Found, int]], most: int) -> _Hits:
    """The best of each search first, each address once."""
    ranks = zip_longest(*([(item, at) for item in each.results] for each, at in found))
    kept: dict[str, tuple[ResultItem, int]] = {}
    for item, at in filter(None, chain.from_iterable(ranks)):
        kept.setdefault(item.url, (item, at))
    best = list(kept.values())[:most]
    return _Hits(_numbered(item for item, _ in best), {item.url: at for item, at in best})


async def _read(policy: ResearchPolicy, hits: _Hits, ask: Asker) -> tuple[tuple[ResultItem, ...], dict[Digest, int]]:
    """The hits, with their pages' text after the search's own where it could be fetched, and when each passage of a page was retrieved.

    A page that leads to an excluded domain is left out.
    """
    pages, at = await _pages([item.url for item in hits.results[: policy.fetch_pages]], ask)
    results = []
    for item in hits.results:
        page = pages.get(item.url)
        if page is None:
            results.append(item)
        elif page.problem != EXCLUDED:
            texts = (text for text in (item.text, page.text) if text.strip())
            results.append(item.model_copy(update={"text": evidence.PASSAGES.join(texts)}))
    return _numbered(results), _retrieved(pages, at)


def _retrieved(pages: Mapping[str, Page], at: int) -> dict[Digest, int]:
    return {sha256(passage.encode()): at for page in pages.values() for passage in evidence.passages(page.text)}


async def _pages(urls: Sequence[str], ask: Asker) -> tuple[dict[str, Page], int]:
    if not urls:
        return {}, 0
    fetched = await ask("pages", PagesMessage(urls=tuple(urls)), _fetched, tolerant=True)
    if fetched is None:
        return {}, 0
    return {page.url: page for page in fetched[0].pages}, fetched[1]


async def _natively(policy: ResearchPolicy, subject: TrustedSubject, question: str, tokens: tuple[Token, ...], ask: Asker) -> Answered:
    """By the provider's own tool. A reply without a search that worked, or that may have read an excluded page, doesn't read."""
    message = ResearchMessage.of(subject, question, max(1, policy.query_target))

    def read(reply: Reply) -> tuple[Completed, replies.OracleAnswer, int] | None:
        said = reply.outcome
        if not isinstance(said, Completed) or said.browsed is None or said.browsed.searches < 1 or said.browsed.barred:
            return None
        answer = replies.researched_answer(said.text, tokens, said.browsed.sources)
        return None if answer is None else (said, answer, reply.at)

    answered = await ask("oracle", message, read)
    assert answered is not None
    said, answer, at = answered
    sources = said.browsed.sources if said.browsed is not None else ()
    cited = dict.fromkeys(sources[item.result - 1] for item in answer.evidence)
    pages, read_at = await _pages([source.url for source in cited if not source.whole][: policy.fetch_pages], ask)
    if any(page.problem == EXCLUDED for page in pages.values()):
        raise ExcludedSource
    kept = evidence.keep(answer.evidence, evidence.held_sources(sources, pages))
    read_then = _retrieved(pages, read_at)
    return Answered(answer.token, answer.basis, tuple(KeptItem(item, read_then.get(item.text_digest, at)) for item in kept))


def _numbered(results: Iterable[ResultItem]) -> tuple[ResultItem, ...]:
    return tuple(item.model_copy(update={"number": number}) for number, item in enumerate(results, start=1))


def _found(reply: Reply) -> tuple[Found, int] | None:
    return (reply.outcome, reply.at) if isinstance(reply.outcome, Found) else None


def _fetched(reply: Reply) -> tuple[Fetched, int] | None:
    return (reply.outcome, reply.at) if isinstance(reply.outcome, Fetched) else None


def _text(reply: Reply) -> str:
    return reply.outcome.text if isinstance(reply.outcome, Completed) else ""
