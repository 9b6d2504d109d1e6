"""Fetching pages from a hostile web: what is read, what never is, and that one bad page is only itself."""

import asyncio
import gzip
import socket
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from yarl import URL

from deep20ray.answers import Role
from deep20ray_actors.config import FetchConfig
from deep20ray_actors.messages import PagesMessage
from deep20ray_actors.outcomes import EXCLUDED, Fetched, Page, Rejected
from deep20ray_actors.search import pages
from deep20ray_actors.search.dialling import AddressRefused, _Judging, _socket
from deep20ray_actors.search.pages import PageFetcher
from tests.actors import support
from tests.actors.search.web import Handler, Names, Web, certificate, html, redirect, reply, running

CONFIG = FetchConfig(max_text=200, max_bytes=50_000, redirects=3, excluded_domains=("bad.example",), seconds=20, allow_loopback=True)


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    async with running() as served:
        yield served


async def fetched(urls: list[str], config: FetchConfig = CONFIG, names: Names | None = None) -> tuple[Page, ...]:
    fetcher = PageFetcher(readers=1, resolve=names or Names())
    try:
        return await fetcher.fetch(urls, config)
    finally:
        fetcher.close()


async def problem(url: str, config: FetchConfig = CONFIG, names: Names | None = None) -> str:
    (page,) = await fetched([url], config, names)
    assert page.url == url and page.text == "" and page.problem is not None
    return page.problem


async def test_pages_are_read_each_for_itself_and_in_order(web: Web) -> None:
    web.pages = {"/a": reply(html("First page.")), "/b": reply(b"plain words", "text/plain"), "/d": reply(html("Last page."))}
    urls = [web.url("/a"), "http://10.0.0.1/", web.url("/b"), "no address", web.url("/c"), web.url("/d"), web.url("/a")]
    pages = await fetched(urls)
    assert [page.url for page in pages] == urls
    assert [page.text for page in pages] == ["First page.", "", "plain words", "", "", "Last page.", "First page."]
    assert [page.problem is None for page in pages] == [True, False, True, False, False, True, True]
    assert [page.final_url for page in pages] == [urls[0], None, urls[2], None, urls[4], urls[5], urls[6]]


async def test_requests_are_the_same_bytes_and_carry_nothing_over(web: Web) -> None:
    web.pages = {"/a": redirect("/b"), "/b": reply(html(), Set_Cookie="c=d")}
    await fetched([web.url("/a")])
    await fetched([web.url("/a")])
    first, second = sorted(web.requests[:2]), sorted(web.requests[2:])
    assert first == second and len(first) == 2
    for request in first:
        names = {line.split(b":")[0].lower() for line in request.split(b"\r\n")[1:] if line}
        assert (
            names == {b"host", b"accept", b"accept-encoding", b"user-agent", b"connection"}
            and b"user-agent: deep20ray\r\n" in request.lower()
        )


async def test_redirects_are_followed_so_far_and_no_farther(web: Web) -> None:
    web.pages = {
        "/1": redirect("/2", 301),
        "/2": redirect("3", 307),
        "/3": redirect(web.url("/4", "other.example"), 308),
        "/4": reply(html()),
    }
    (page,) = await fetched([web.url("/1")])
    assert page.text == "Some words stand here." and page.final_url == web.url("/4", "other.example")
    assert "more than 2 times" in await problem(web.url("/1"), replace(CONFIG, redirects=2))
    assert "more than 0 times" in await problem(web.url("/3"), replace(CONFIG, redirects=0))


async def test_a_redirect_loop_ends(web: Web) -> None:
    web.pages = {"/a": redirect("/b"), "/b": redirect("/a")}
    assert "more than 3 times" in await problem(web.url("/a")) and len(web.requests) == 4


@pytest.mark.parametrize(
    "to",
    [
        *("file:///etc/passwd", "ftp://site.example/", "javascript:alert(1)", "data:text/html,x", "http://[::1", ""),
        *("http://user@site.example/", "http://10.0.0.1/", "//169.254.169.254/latest/", "http://2130706433/", "http://[::ffff:127.0.0.1]/"),
        *("http://\udcff\udcfe/", "/" + "x" * 3000, "https://127.1/"),
    ],
)
async def test_redirects_to_where_nothing_is_fetched_from(web: Web, to: str) -> None:
    web.pages = {"/a": redirect(to) if to else reply(status=302)}
    assert "redirects" in await problem(web.url("/a")) and len(web.requests) == 1


async def test_a_redirect_to_a_name_of_a_private_place(web: Web) -> None:
    web.pages = {"/a": redirect("http://inside.example/")}
    for private in ("10.0.0.1", "169.254.169.254", "::ffff:10.0.0.1", "100.64.0.1", "0.0.0.0", "fe80::1"):
        assert await problem(web.url("/a"), names=Names(inside=[[private]])) == "its host is not on the public internet"


@pytest.mark.parametrize(
    "to",
    [
        *("http://bad.example/x", "//BAD.example./", "http://www.bad.example:8080/", "https://archive.example/https://bad.example/"),
        *("https://github.com/mindalyze-com/x", "https://a.example/deep%2D20%2Dbench/"),
    ],
)
async def test_a_redirect_to_an_excluded_address_is_known_by_its_words_and_address(web: Web, to: str) -> None:
    web.pages = {"/a": redirect("/b"), "/b": redirect(to)}
    (page,) = await fetched([web.url("/a")])
    assert page.problem == EXCLUDED and page.text == "" and page.final_url is not None and "site.example" not in page.final_url
    assert len(web.requests) == 2


async def test_an_excluded_address_is_not_even_looked_up(web: Web) -> None:
    names = Names()
    assert await problem("https://www.bad.example/", names=names) == EXCLUDED and names.asked == []


async def test_without_loopback_nothing_of_this_machine_is_fetched(web: Web) -> None:
    config = replace(CONFIG, allow_loopback=False)
    for url in (web.url("/", "127.0.0.1"), web.url("/"), "http://localhost/", "http://[::1]/"):
        assert "its address" in await problem(url, config)
    assert await problem("http://site.example/", config) == "its host is not on the public internet" and web.requests == []


async def test_a_name_is_looked_up_once_a_hop_and_the_judged_address_is_connected_to(web: Web) -> None:
    web.pages = {"/a": redirect("/b"), "/b": reply(html())}
    names = Names(site=[["127.0.0.1"], ["10.0.0.1"]])
    assert await problem(web.url("/a"), names=names) == "its host is not on the public internet"
    # The first lookup served the first hop; had the client looked again for itself, it would have gone to the second answer.
    assert names.asked == ["site.example"] * 2 and len(web.requests) == 1


@pytest.mark.parametrize("answer", [["127.0.0.1", "10.0.0.1"], ["10.0.0.1", "127.0.0.1"], ["::ffff:127.0.0.1"], ["nonsense"]])
async def test_one_private_address_among_others_refuses_the_name(web: Web, answer: list[str]) -> None:
    assert await problem(web.url("/a"), names=Names(site=[answer])) == "its host is not on the public internet" and web.requests == []


async def test_a_public_address_is_passed_on_as_it_was_judged_and_any_other_refused_at_the_socket() -> None:
    found = await _Judging(Names(a=[["8.8.8.8", "2606:4700::1111"]]), False).resolve("a.example", 443)
    assert [(each["host"], each["port"]) for each in found] == [("8.8.8.8", 443), ("2606:4700::1111", 443)]
    for address, port in (("127.0.0.1", 443), ("10.0.0.1", 80), ("8.8.8.8", 22)):
        with pytest.raises(AddressRefused):
            _socket(False, (socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, port)))
    _socket(False, (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("8.8.8.8", 443))).close()


async def test_names_that_cannot_be_resolved(web: Web) -> None:
    for answer in (OSError("no"), socket.gaierror(-2, "x"), UnicodeError("x")):
        assert "resolved" in await problem(web.url("/"), names=Names(site=[answer]))
    assert "resolved" in await problem(web.url("/"), names=Names(site=[[]]))


@pytest.mark.parametrize("status", [204, 206, 304, 401, 403, 404, 429, 500, 503])
async def test_other_statuses(web: Web, status: int) -> None:
    web.pages = {"/a": reply(b"" if status in (204, 304) else html(), status=status)}
    assert f"status {status}" in await problem(web.url("/a"))


@pytest.mark.parametrize(
    "kind", ["application/pdf", "image/png", "application/json", "text/xml", "text/html2", "", None, "nonsense", "a/b/c;;="]
)
async def test_wrong_types(web: Web, kind: str | None) -> None:
    web.pages = {"/a": reply(html(), kind)}
    assert await problem(web.url("/a")) == "it is neither HTML nor plain text"


@pytest.mark.parametrize("kind", ["text/html", "TEXT/HTML; Charset=UTF-8", "application/xhtml+xml", "text/html; charset=nonsense"])
async def test_right_types(web: Web, kind: str) -> None:
    web.pages = {"/a": reply(html("Für alle."), kind)}
    assert (await fetched([web.url("/a")]))[0].text == "Für alle."


async def test_pages_that_are_too_long(web: Web) -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n")
        for _ in range(100_000):
            writer.write(b"x" * 1000)
            await writer.drain()

    exact = b"x " * 25_000
    web.pages = {"/said": reply(b"x" * 50_001), "/unsaid": endless, "/exact": reply(exact, "text/plain")}
    assert "longer than 50000 bytes" in await problem(web.url("/said"))
    assert "longer than 50000 bytes" in await problem(web.url("/unsaid"))
    assert (await fetched([web.url("/exact")]))[0].text.startswith("x x")


async def test_compressed_pages(web: Web) -> None:
    exact = b"x " * 25_000
    web.pages = {
        "/gzip": reply(gzip.compress(html()), Content_Encoding="gzip"),
        "/deflate": reply(zlib.compress(html()), Content_Encoding="Deflate"),
        "/exact": reply(gzip.compress(exact), "text/plain", Content_Encoding="x-gzip"),
        "/bomb": reply(gzip.compress(b"x" * 100_000_000), Content_Encoding="gzip"),
        "/over": reply(gzip.compress(exact + b"y"), "text/plain", Content_Encoding="gzip"),
        "/twice": reply(gzip.compress(gzip.compress(html())), Content_Encoding="gzip, gzip"),
        "/br": reply(html(), Content_Encoding="br"),
        "/cut": reply(gzip.compress(html())[:-9], Content_Encoding="gzip"),
        "/none": reply(html(), Content_Encoding="gzip"),
    }
    big = replace(CONFIG, max_bytes=200_000)
    assert [page.text for page in await fetched([web.url("/gzip"), web.url("/deflate")])] == ["Some words stand here."] * 2
    assert (await fetched([web.url("/exact")]))[0].problem is None
    assert "longer than 200000 bytes" in await problem(web.url("/bomb"), big)
    assert "longer than 50000 bytes" in await problem(web.url("/over"))
    assert "not asked for" in await problem(web.url("/br")) and "not asked for" in await problem(web.url("/twice"))
    assert "broken" in await problem(web.url("/cut")) and "broken" in await problem(web.url("/none"))


def test_a_bomb_is_never_held_whole() -> None:
    bomb = gzip.compress(bytes(100_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(pages._Problem):
            pages._Body("gzip", 50_000, URL("http://site.example/")).add(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


async def test_a_page_whose_task_breaks_is_one_problem(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(url: str, domains: object) -> bool:
        if url.endswith("/a"):
            raise RuntimeError("a secret")
        return False

    monkeypatch.setattr(pages, "excluded", broken)
    web.pages = {"/a": reply(html()), "/b": reply(html())}
    first, second = await fetched([web.url("/a"), web.url("/b")])
    assert first == Page(web.url("/a"), None, "", "internal error: RuntimeError") and second.text


async def test_a_page_that_drips_for_ever_ends_by_the_pages_time_and_leaves_the_others(web: Web) -> None:
    stopped = asyncio.Event()

    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
        try:
            for _ in range(100_000):
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.01)
        finally:
            stopped.set()

    web.pages = {"/drip": drip, "/silent": lambda writer: asyncio.sleep(30), "/loop": redirect("/drip"), "/a": reply(html())}
    config = replace(CONFIG, seconds=2)
    pages = await fetched([web.url(path) for path in ("/drip", "/silent", "/loop", "/a")], config)
    assert [page.problem for page in pages] == ["it took longer than 2 s"] * 3 + [None]
    async with asyncio.timeout(30):
        await stopped.wait()


GARBAGE: list[bytes | Handler] = [
    b"",
    b"garbage\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 999999 X\r\n\r\n",
    b"HTTP/9.9 200 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\nContent-Type: text/html\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\nContent-Type: text/html\r\n\r\nshort",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/html\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000 + b"\r\n",
    b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    b"\x16\x03\x01\x00\x00" * 50,
]


@pytest.mark.parametrize("number", range(len(GARBAGE)))
async def test_replies_that_are_not_http(web: Web, number: int) -> None:
    web.pages = {"/a": GARBAGE[number], "/b": reply(html())}
    pages = await fetched([web.url("/a"), web.url("/b")], replace(CONFIG, seconds=5))
    assert pages[0].text == "" and pages[0].problem and "internal" not in pages[0].problem and pages[1].problem is None


async def test_servers_that_are_not_there_or_speak_no_tls(web: Web) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = f"http://site.example:{free.getsockname()[1]}/"
    assert await problem(closed) == "its server can't be reached"


async def test_a_server_that_speaks_no_tls() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 X\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        assert "TLS" in await problem(f"https://site.example:{server.sockets[0].getsockname()[1]}/")


async def test_a_certificate_must_be_trusted_and_the_names_own(web: Web, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate("site.example", tmp_path))
    web.pages = {"/a": reply(html())}
    async with await asyncio.start_server(web.answer, "127.0.0.1", 0, ssl=context) as server:
        url = f"https://site.example:{server.sockets[0].getsockname()[1]}/a"
        other = url.replace("site.", "other.")
        assert await problem(url) == "its server's certificate is not trusted" and web.requests == []
        fetcher = PageFetcher(resolve=Names(), context=ssl.create_default_context(cafile=tmp_path / "server.pem"))
        right, wrong = await fetcher.fetch([url, other], CONFIG)
        fetcher.close()
    assert right.text == "Some words stand here." and wrong.problem == "its server's certificate is not trusted"


async def test_a_page_without_text_says_so_and_a_long_one_is_cut(web: Web) -> None:
    web.pages = {"/a": reply(b"<html><body><script>x</script></body></html>"), "/b": reply(b"word " * 500, "text/plain")}
    empty, long = await fetched([web.url("/a"), web.url("/b")])
    assert empty.problem == "it holds no readable text" and empty.final_url == web.url("/a")
    assert long.problem is None and len(long.text) == 199


async def test_the_reader_survives_pages_that_end_its_process(web: Web) -> None:
    cells = b"<html><body><table><tr>" + b"<td>x</td>" * 190_000 + b"</table>"
    web.pages = {"/a": reply(cells), "/b": reply(html())}
    fetcher = PageFetcher(readers=1, resolve=Names())
    config = replace(CONFIG, max_bytes=2_000_000, seconds=60)
    try:
        pages = await fetcher.fetch([web.url("/a")], config)
        assert pages[0].problem == "its text could not be read with the time and memory allowed"
        assert (await fetcher.fetch([web.url("/b")], config))[0].text == "Some words stand here."
    finally:
        fetcher.close()


# ---- through the host


async def test_the_host_answers_pages_as_one_delivered_outcome(web: Web) -> None:
    web.pages = {"/a": reply(html())}
    urls = (web.url("/a", "127.0.0.1"), web.url("/b", "127.0.0.1"))
    config = support.route(Role.ORACLE, "http://127.0.0.1:9/v1", fetch=CONFIG)
    one, two = await support.results_of(
        support.host(Role.ORACLE, config), [support.call(PagesMessage(urls=urls), 1), support.call(PagesMessage(urls=urls[:1]), 2)]
    )
    assert isinstance(one.outcome, Fetched) and [page.problem is None for page in one.outcome.pages] == [True, False]
    assert one.audit.usage.pages == 1 and one.audit.usage.searches == 0 and one.audit.wire_tries == 1 and one.audit.requested_model is None
    assert one.audit.request_digest is not None and one.audit.request_digest != two.audit.request_digest


async def test_a_route_that_fetches_no_pages_refuses() -> None:
    config = support.route(Role.ORACLE, "http://127.0.0.1:9/v1")
    (result,) = await support.results_of(support.host(Role.ORACLE, config), [support.call(PagesMessage(urls=("http://a.example/",)))])
    assert isinstance(result.outcome, Rejected) and "fetch_pages" in result.outcome.detail


async def test_a_call_that_is_dropped_ends_its_reader(web: Web) -> None:
    web.pages = {"/a": reply(b"<html><body><table><tr>" + b"<td>x</td>" * 190_000 + b"</table>")}
    fetcher = PageFetcher(readers=1, resolve=Names())
    task = asyncio.create_task(fetcher.fetch([web.url("/a")], replace(CONFIG, max_bytes=2_000_000, seconds=60)))
    for _ in range(3000):
        if fetcher._readers._free.locked():
            break
        await asyncio.sleep(0.01)
    assert fetcher._readers._free.locked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    fetcher.close()
    assert fetcher._readers._idle == [] and not fetcher._readers._free.locked()
