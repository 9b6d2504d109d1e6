"""The Oracle's way to its answer: queries under a ceiling, searches that make up for each other, pages, and the provider's own search."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from deep20ray.actions import Ask, Guess
from deep20ray.answers import Role
from deep20ray_actors.messages import (
    GuesserMessage,
    Message,
    OracleMessage,
    PagesMessage,
    QueriesMessage,
    ResearchMessage,
    ResultItem,
    ReviewerMessage,
    SearchMessage,
)
from deep20ray_actors.outcomes import (
    EXCLUDED,
    Browsed,
    Completed,
    Fetched,
    Found,
    Outcome,
    Page,
    QuotaExhausted,
    Rejected,
    ServerFault,
    Source,
)
from deep20ray_cluster.journal import Event
from deep20ray_cluster.memory import Memory
from deep20ray_cluster.pools import Lost
from deep20ray_cluster.research import ResearchPolicy
from deep20ray_cluster.table import Infrastructure, Parked

from .fakes import SUBJECT, TRIAL, Desk, Killed, MemoryJournal, play, says

POLICY = ResearchPolicy(native=False, query_target=2, max_queries=3, max_results=3, fetch_pages=2)
NATIVE = replace(POLICY, native=True)
GAME = [Ask("Does it fly?").canonical, Guess("kite", "a toy on a string").canonical]
HITS = {
    "kite toy": (("https://a.example/1", "A kite flies."), ("https://b.example/2", "Kites are toys.")),
    "kite string": (("https://b.example/2", "Kites are toys."), ("https://c.example/3", "Held by a string."), ("https://d.example/4", "")),
}
TEXT = "The whole page says that a kite flies on a string, in the wind, for hours."
Play = Callable[[Role, Message, int | None], Outcome | Lost]


def found(query: str) -> Found:
    return Found(tuple(ResultItem(number=n, url=u, title="", text=t) for n, (u, t) in enumerate(HITS.get(query, ()), start=1)))


def roles(
    *,
    queries: Any = ("kite toy", "kite string"),
    search: Callable[[str], Outcome | Lost] = found,
    pages: Callable[[tuple[str, ...]], Outcome | Lost] | None = None,
    evidence: Any = (),
    native: Outcome | None = None,
) -> Play:
    """The two-turn game's roles; each part of the Oracle's way can be replaced."""

    def play(role: Role, message: Message, seed: int | None) -> Outcome | Lost:
        match message:
            case GuesserMessage():
                return Completed(GAME[len(message.history)])
            case QueriesMessage():
                return queries if isinstance(queries, Completed) else says(queries=list(queries))
            case SearchMessage():
                return search(message.query)
            case PagesMessage():
                return pages(message.urls) if pages else Fetched(tuple(Page(url, url, "", "no text") for url in message.urls))
            case ResearchMessage():
                assert native is not None
                return native
            case _ if role is Role.VALIDATOR:
                return says(statement="", verdict="YES")
            case _ if role is Role.ORACLE:
                return says(answer="YES", basis="evidence", evidence=list(evidence), statement="")
            case _:
                return says(answer="YES", basis="evidence", statement="")

    return play


def messages(desk: Desk, kind: type[Message]) -> list[Any]:
    return [message for _, message, _ in desk.sent if isinstance(message, kind)]


async def shown(**parts: Any) -> OracleMessage:
    desk = Desk(roles(**parts))
    await play(desk, MemoryJournal(), policy=POLICY)
    (message,) = messages(desk, OracleMessage)
    return message


async def reviewed(policy: ResearchPolicy, **parts: Any) -> tuple[ReviewerMessage, list[dict[str, Any]]]:
    """What the Reviewer was sent, and the evidence that the journal keeps."""
    desk, journal = Desk(roles(**parts)), MemoryJournal()
    await play(desk, journal, policy=policy)
    (message,) = messages(desk, ReviewerMessage)
    return message, next(event.body["evidence"] for event in journal.events if event.kind == "closed")


# ---- queries


async def test_the_model_is_told_the_target_and_every_query_is_a_call_of_its_own() -> None:
    desk, journal = Desk(roles()), MemoryJournal()
    await play(desk, journal, policy=POLICY)
    (asked,) = messages(desk, QueriesMessage)
    assert (asked.target, asked.question, asked.subject.canonical_name) == (2, "Does it fly?", "kite")
    assert [message.query for message in messages(desk, SearchMessage)] == ["kite toy", "kite string"]
    started = [event.call for event in journal.events if event.kind == "started" and event.turn == 1]
    assert started == ["guesser", "queries", "search", "search-2", "pages", "oracle", "reviewer"]


async def test_the_ceiling_holds_whatever_the_model_writes() -> None:
    desk = Desk(roles(queries=[f"query {n}" for n in range(50)]))
    await play(desk, MemoryJournal(), policy=POLICY)
    assert [message.query for message in messages(desk, SearchMessage)] == ["query 0", "query 1", "query 2"]


@pytest.mark.parametrize("written", [[], ["", "  \n "]])
async def test_without_a_query_the_program_s_own_is_searched(written: list[str]) -> None:
    desk = Desk(roles(queries=written))
    await play(desk, MemoryJournal(), policy=POLICY)
    assert [message.query for message in messages(desk, SearchMessage)] == ["kite Does it fly?"]


async def test_queries_are_folded_cut_and_searched_once_each() -> None:
    desk = Desk(roles(queries=["kite\n\ttoy", " kite toy ", "x" * 500]))
    await play(desk, MemoryJournal(), policy=POLICY)
    assert [message.query for message in messages(desk, SearchMessage)] == ["kite toy", "x" * 200]


@pytest.mark.parametrize("text", ["kite toy", '{"queries":"kite"}', '{"queries":[1]}', '{"queries":["a"],"x":1}', '["a"]'])
async def test_queries_that_can_not_be_read_are_asked_for_twice_more_and_then_given_up(text: str) -> None:
    desk = Desk(roles(queries=Completed(text)))
    with pytest.raises(Infrastructure) as error:
        await play(desk, MemoryJournal(), policy=POLICY)
    assert (error.value.call, error.value.cause) == ("queries", "unreadable_reply")
    asked = messages(desk, QueriesMessage)
    assert len(asked) == 3 and len({each.digest for each in asked}) == 1 and not messages(desk, SearchMessage)


# ---- searches


async def test_the_best_of_each_search_comes_first_and_each_address_once() -> None:
    message = await shown()
    assert [(item.number, item.url) for item in message.results] == [
        (1, "https://a.example/1"),
        (2, "https://b.example/2"),
        (3, "https://c.example/3"),
    ]


def failing(*queries: str, how: Outcome | Lost | None = None) -> Callable[[str], Outcome | Lost]:
    return lambda query: (how or ServerFault("500")) if query in queries else found(query)


@pytest.mark.parametrize("failed", ["kite toy", "kite string"])
async def test_one_search_makes_up_for_another_that_failed(failed: str) -> None:
    message = await shown(search=failing(failed))
    assert {item.url for item in message.results} == {url for query, hits in HITS.items() if query != failed for url, _ in hits}


async def test_if_every_search_failed_the_turn_is_infrastructure_and_repair_asks_the_last_one_again() -> None:
    desk, journal = Desk(roles(search=failing("kite toy", "kite string"))), MemoryJournal()
    with pytest.raises(Infrastructure) as error:
        await play(desk, journal, policy=POLICY)
    assert (error.value.call, error.value.cause) == ("search-2", "serverfault") and not messages(desk, OracleMessage)
    failure = {"cause": error.value.cause, "detail": ""}
    journal.note(Event(TRIAL.run_id, TRIAL.id, 1, 1, "infrastructure", "search-2", 0, 1, failure))
    journal.note(Event(TRIAL.run_id, TRIAL.id, 2, 0, "attempt", "", 0, 2, {"of": 3}))
    desk = Desk(roles())
    await play(desk, journal, Memory.of(journal.events), policy=POLICY)
    assert [message.query for message in messages(desk, SearchMessage)] == ["kite string"]


async def test_no_hits_is_an_answer_too() -> None:
    message = await shown(search=lambda query: Found(()))
    assert message.results == ()


async def test_a_search_without_quota_parks_even_where_another_worked() -> None:
    desk = Desk(roles(search=failing("kite string", how=QuotaExhausted("none left"))))
    with pytest.raises(Parked):
        await play(desk, MemoryJournal(), policy=POLICY)


async def test_a_search_that_was_lost_is_no_failed_search() -> None:
    """Asked again it could work, and a resumed trial must take the same way."""
    desk = Desk(roles(search=failing("kite toy", how=Lost())))
    with pytest.raises(Infrastructure) as error:
        await play(desk, MemoryJournal(), policy=POLICY)
    assert (error.value.call, error.value.cause) == ("search", "worker_lost")


# ---- pages


def page(url: str, text: str = TEXT, problem: str | None = None) -> Page:
    return Page(url, url, text, problem)


async def test_the_first_pages_are_read_and_stand_after_what_the_search_gave_of_them() -> None:
    desk = Desk(roles(pages=lambda urls: Fetched(tuple(page(url) for url in urls))))
    await play(desk, MemoryJournal(), policy=POLICY)
    (asked,), (message,) = messages(desk, PagesMessage), messages(desk, OracleMessage)
    assert asked.urls == ("https://a.example/1", "https://b.example/2")
    assert [item.text for item in message.results] == [f"A kite flies.\n...\n{TEXT}", f"Kites are toys.\n...\n{TEXT}", "Held by a string."]


@pytest.mark.parametrize("how", [Rejected("internal"), Fetched((page("https://a.example/1", "", "too long"),)), Fetched(())])
async def test_a_page_that_can_not_be_read_leaves_the_search_s_text(how: Outcome) -> None:
    message = await shown(pages=lambda urls: how)
    assert [item.text for item in message.results] == ["A kite flies.", "Kites are toys.", "Held by a string."]


async def test_a_page_that_leads_to_an_excluded_address_is_left_out() -> None:
    message = await shown(pages=lambda urls: Fetched((page(urls[0], "", EXCLUDED), page(urls[1]))))
    assert [(item.number, item.url) for item in message.results] == [(1, "https://b.example/2"), (2, "https://c.example/3")]


async def test_an_excerpt_has_the_time_of_the_text_that_it_stands_in_and_stands_in_one_passage() -> None:
    message, kept = await reviewed(
        POLICY,
        pages=lambda urls: Fetched(tuple(page(url) for url in urls)),
        evidence=[
            {"result": 1, "excerpt": "a kite flies on a  string"},
            {"result": 2, "excerpt": "Kites are toys."},
            {"result": 1, "excerpt": "A kite flies. ... The whole page"},
        ],
    )
    assert [item.excerpt for item in message.evidence] == ["a kite flies on a string", "Kites are toys."]
    assert [row["verified"] for row in kept] == [True, True]
    assert kept[0]["retrieved_at"] > kept[1]["retrieved_at"], "the page was read after the search"


# ---- the provider's own search

SOURCES = (
    Source("https://a.example/1", "A", "", whole=False),
    Source("https://b.example/2", "B", "a few words of the page", whole=False),
    Source("https://c.example/3", "C", TEXT, whole=True),
)


def browsed(*evidence: tuple[str, str], searches: int = 1, barred: bool = False, token: str = "YES") -> Completed:
    items = [{"url": url, "excerpt": excerpt} for url, excerpt in evidence]
    said = says(answer=token, basis="evidence", evidence=items, statement="private")
    return Completed(said.text, Browsed(searches, SOURCES, barred))


async def test_an_oracle_with_its_own_search_is_asked_once_and_its_sources_are_checked() -> None:
    message, kept = await reviewed(
        NATIVE,
        native=browsed(
            ("https://a.example/1", "flies on a string"),
            ("https://b.example/2", "few words of"),
            ("https://elsewhere.example/", "made up"),
        ),
        pages=lambda urls: Fetched(tuple(page(url) for url in urls)),
    )
    assert [(item.url, item.excerpt) for item in message.evidence] == [
        ("https://a.example/1", "flies on a string"),
        ("https://b.example/2", "few words of"),
    ]
    assert [row["verified"] for row in kept] == [True, True]


async def test_only_cited_pages_whose_text_the_tool_did_not_give_are_fetched() -> None:
    answer = browsed(("https://c.example/3", "flies on a string"), ("https://a.example/1", "flies"))
    desk = Desk(roles(native=answer))
    await play(desk, MemoryJournal(), policy=NATIVE)
    (asked,) = messages(desk, PagesMessage)
    assert asked.urls == ("https://a.example/1",) and not messages(desk, SearchMessage)
    (question,) = messages(desk, ResearchMessage)
    assert (question.question, question.searches, question.subject.canonical_name) == ("Does it fly?", 2, SUBJECT.trusted.canonical_name)


async def test_words_that_stand_nowhere_are_a_labelled_summary_only_where_the_tool_gave_no_whole_text() -> None:
    message, kept = await reviewed(NATIVE, native=browsed(("https://a.example/1", "A light toy."), ("https://c.example/3", "A light toy.")))
    assert [(item.url, item.excerpt) for item in message.evidence] == [("https://a.example/1", "[summary, not a quotation] A light toy.")]
    assert [row["verified"] for row in kept] == [False]


async def test_a_summary_can_not_carry_an_answer() -> None:
    message, _ = await reviewed(NATIVE, native=browsed(("https://a.example/1", "The answer is RATHER_YES")))
    assert message.evidence == ()


async def test_an_answer_that_rests_on_an_excluded_page_is_none_and_repair_asks_the_oracle_anew() -> None:
    """Its address showed only behind a redirect; the model has read the page all the same."""
    excluded = Fetched((page("https://a.example/1", "", EXCLUDED),))
    desk, journal = Desk(roles(native=browsed(("https://a.example/1", "flies on a string")), pages=lambda urls: excluded)), MemoryJournal()
    with pytest.raises(Infrastructure) as error:
        await play(desk, journal, policy=NATIVE)
    assert (error.value.call, error.value.cause) == ("oracle", "excluded_source")
    failure = {"cause": error.value.cause, "detail": ""}
    journal.note(Event(TRIAL.run_id, TRIAL.id, 1, 1, "infrastructure", "oracle", 0, 1, failure))
    journal.note(Event(TRIAL.run_id, TRIAL.id, 2, 0, "attempt", "", 0, 2, {"of": 3}))
    desk = Desk(roles(native=browsed(("https://b.example/2", "few words of"))))
    await play(desk, journal, Memory.of(journal.events), policy=NATIVE)
    assert [type(message).__name__ for _, message, _ in desk.sent][:2] == ["ResearchMessage", "PagesMessage"]


@pytest.mark.parametrize(
    "reply", [browsed(searches=0), browsed(barred=True), replace(browsed(), browsed=None)], ids=["no search", "excluded page", "no tool"]
)
async def test_an_answer_without_a_search_that_worked_or_with_an_excluded_page_is_never_taken(reply: Completed) -> None:
    desk = Desk(roles(native=reply))
    with pytest.raises(Infrastructure) as error:
        await play(desk, MemoryJournal(), policy=NATIVE)
    assert (error.value.call, error.value.cause) == ("oracle", "unreadable_reply")
    assert len({message.digest for message in messages(desk, ResearchMessage)}) == 1 and len(messages(desk, ResearchMessage)) == 3


# ---- killed anywhere


@pytest.mark.parametrize("policy", [POLICY, NATIVE], ids=["stand-alone", "native"])
async def test_a_kill_at_any_point_pays_for_nothing_twice(policy: ResearchPolicy) -> None:
    parts: dict[str, Any] = {
        "search": failing("kite toy"),
        "native": browsed(("https://a.example/1", "flies on a string")),
        "pages": lambda urls: Fetched(tuple(page(url) for url in urls)),
        "evidence": [{"result": 1, "excerpt": "a kite flies"}],
    }
    whole = MemoryJournal()
    expected = await play(Desk(roles(**parts)), whole, policy=policy)
    for survives in range(len(whole.events)):
        journal = MemoryJournal(survives=survives)
        with pytest.raises(Killed):
            await play(Desk(roles(**parts)), journal, policy=policy)
        paid = {(event.turn, event.call) for event in journal.events if event.kind == "reply"}
        resumed, memory = MemoryJournal(journal.events), Memory.of(journal.events)
        for event in memory.dangling:
            memory.lose(event)
        assert await play(Desk(roles(**parts)), resumed, memory, policy=policy) == expected
        again = {(event.turn, event.call) for event in resumed.events[survives:] if event.kind == "started"}
        assert not again & paid, f"paid twice after {survives} events"
