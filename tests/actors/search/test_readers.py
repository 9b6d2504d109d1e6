"""The reading processes: what they are given, what ends them, and that hostile pages cost themselves alone."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deep20ray_actors.search import readers
from deep20ray_actors.search.readers import ReaderEnded, Readers
from tests.actors.search.web import html

SIZE = 100_000


def filled(unit: str, before: str = "<html><body><p>Some words stand here.</p>", after: str = "</body></html>") -> bytes:
    return (before + unit * (SIZE // len(unit)) + after).encode()


HOSTILE: dict[str, Callable[[], bytes]] = {
    "nested blocks": lambda: filled("<div>"),
    "nested and closed": lambda: filled("<div>" * 200 + "text" + "</div>" * 200),
    "nested marks": lambda: filled("<b>x"),
    "nested tables": lambda: filled("<table><tr><td>x"),
    "nested lists": lambda: filled("<ul><li>x"),
    "open links": lambda: filled("<a href=x>t"),
    "angle brackets": lambda: filled("<"),
    "open comments": lambda: filled("<!--"),
    "line breaks": lambda: filled("text<br>"),
    "white space": lambda: filled(" ", "<html><body><p>a", "b</p></body></html>"),
    "nul": lambda: filled("\0"),
    "one word": lambda: filled("a", "<html><body><p>"),
    "svg": lambda: filled("<svg><g>"),
    "attributes": lambda: ("<html><body><div " + " ".join(f"a{number}=1" for number in range(20_000)) + ">hi").encode(),
    "doctype": lambda: b"<!DOCTYPE " + b"a/" * 150_000,
    "json": lambda: b'<html><script type="application/ld+json">' + b'{"a":' * (SIZE // 5) + b"</script><body><p>hi there</p>",
    "entities": lambda: (
        b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;">]><html><body>'
        + b"<p>&c;&c;</p>" * 10_000
    ),
    "bytes": lambda: bytes(range(256)) * (SIZE // 256),
    "xml": lambda: b"<?xml version='1.0' encoding='utf-7'?><html xmlns='http://www.w3.org/1999/xhtml'><body><p>hi there</p></body></html>",
}


@pytest.fixture
def pool() -> Iterator[Readers]:
    made = Readers(1)
    yield made
    made.close()


async def text(pool: Readers, body: bytes) -> str | None:
    try:
        async with pool.one() as reader:
            return await reader.read(body, "text/html", "utf-8", 500)
    except ReaderEnded:
        return None


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_page_is_read_or_given_up_and_the_next_one_is_read(pool: Readers, name: str) -> None:
    got = await text(pool, HOSTILE[name]())
    assert got is None or len(got) <= 500
    assert await text(pool, html("The next page.")) == "The next page."


async def test_a_process_reads_many_pages_then_is_replaced(pool: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "_PAGES_EACH", 2)
    seen = []
    for _ in range(4):
        assert await text(pool, html()) == "Some words stand here."
        process = pool._idle[0]._process if pool._idle else None
        seen.append(None if process is None else process.pid)
    assert seen[0] is not None and seen[1] is None and seen[2] not in (None, seen[0]) and seen[3] is None


async def test_a_process_gets_no_environment_and_may_open_nothing(pool: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "hush")
    assert await text(pool, html())
    process = pool._idle[0]._process
    assert process is not None
    names = {entry.split(b"=")[0] for entry in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0") if entry}
    limits = Path(f"/proc/{process.pid}/limits").read_text()
    opened = sorted(path.name for path in Path(f"/proc/{process.pid}/fd").iterdir())
    assert names == {b"PYTHONPATH"} and opened == ["0", "1", "2"]
    rows = {line[:26].strip(): line[26:].split()[0] for line in limits.splitlines()}
    assert rows["Max open files"] == "3" and rows["Max file size"] == "0" and rows["Max address space"] == str(1 << 30)


async def test_a_process_whose_parent_is_gone_ends(pool: Readers) -> None:
    assert await text(pool, html())
    process = pool._idle[0]._process
    assert process is not None and process.stdin is not None
    process.stdin.close()
    assert await asyncio.to_thread(process.wait, 30) == 0


async def test_closing_ends_the_processes(pool: Readers) -> None:
    assert await text(pool, html())
    process = pool._idle[0]._process
    assert process is not None
    pool.close()
    assert process.returncode is not None and not Path(f"/proc/{process.pid}/cmdline").exists()


async def test_a_process_that_was_ended_from_outside_costs_one_page(pool: Readers) -> None:
    assert await text(pool, html())
    process = pool._idle[0]._process
    assert process is not None
    os.kill(process.pid, 9)
    assert await text(pool, html()) is None and await text(pool, html()) == "Some words stand here."
