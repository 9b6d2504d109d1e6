"""Searching with a server that others wrote: real replies, an engine that breaks, many searches at once."""

import sqlite3
from pathlib import Path

import pytest

from deep20ray.answers import Role
from deep20ray_actors.config import Backend, SearchConfig
from deep20ray_actors.messages import SearchMessage
from deep20ray_actors.outcomes import CallResult, Found, ServerFault
from tests.actors.support import call, host, results_of, route
from tests.wire.searx import searx

QUESTIONS = (
    "penguin Can it fly?",
    'Halley\'s Comet Is it "alive"?',
    "door handle Is it (usually) made of metal & wood?",
    "spider web ?",
    "-moon *",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("searx")


async def asked(url: str, *queries: str) -> list[CallResult]:
    config = route(Role.ORACLE, search=SearchConfig(url, Backend.SEARXNG, attempts=2))
    return await results_of(host(Role.ORACLE, config), [call(SearchMessage(query=query), slot) for slot, query in enumerate(queries)])


async def test_questions_find_the_texts_that_are_there_and_the_same_ones_again(folder: Path) -> None:
    with searx(folder) as url:
        results = await asked(url, *QUESTIONS * 4, "qqqqxx")
    with sqlite3.connect(folder / "wordnet.sqlite") as database:
        # The server folds white space; what it returns is otherwise what its index holds.
        texts = {found: " ".join(text.split()) for found, text in database.execute("SELECT url, content FROM wn")}
    database.close()
    assert len(texts) > 80_000
    for result in results[:-1]:
        assert isinstance(result.outcome, Found) and len(result.outcome.results) == 5, result
        assert all(texts[item.url] == item.text for item in result.outcome.results)
        assert result.audit.usage.searches == 1 and result.audit.wire_tries == 1
    assert [result.outcome for result in results[:5]] == [result.outcome for result in results[15:20]]
    penguin = results[0].outcome
    assert isinstance(penguin, Found) and any("penguin" in item.title + item.text for item in penguin.results)
    assert results[-1].outcome == Found(()) and results[-1].audit.usage.searches == 1


async def test_an_engine_that_breaks_is_a_fault_and_no_empty_answer(folder: Path) -> None:
    with searx(folder, words=":query") as url:
        good, bad = await asked(url, "moon", "Halley's Comet?")
    assert isinstance(good.outcome, Found) and good.outcome.results
    assert isinstance(bad.outcome, ServerFault) and bad.audit.wire_tries == 2 and bad.audit.usage.searches == 0


async def test_a_wrong_base_url_is_no_empty_answer(folder: Path) -> None:
    with searx(folder) as url:
        (result,) = await asked(url + "/nowhere", "moon")
    assert not isinstance(result.outcome, Found)
