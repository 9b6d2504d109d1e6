"""The site in a real browser: no policy violation, no error, hostile text inert, readable without JavaScript, fits 320 pixels."""

import shutil
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.publisher.sites import World, hostile_draft, html_files, only

pytest.importorskip("playwright", reason="playwright isn't installed")
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine; install the package chromium to run these tests")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with ordinary runs and a hostile one."""
    world = World.at(tmp_path_factory.mktemp("browser"))
    world.add("alpha", hours=10)
    world.add("beta", {"T-0001": [5, 3, 9], "T-0008": [12, 41, 20]}, hours=11)
    world.add_draft(hostile_draft())
    return world.build()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test reports what matters."""


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    """The site on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(built)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


def pages_of(built: Path) -> list[str]:
    return [str(path.relative_to(built)) for path in html_files(built)]


def watched(context: BrowserContext) -> tuple[Page, list[str]]:
    """A page and the list that everything unwanted goes to."""
    page, unwanted = context.new_page(), []
    page.on("console", lambda message: unwanted.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: unwanted.append(f"error: {error}"))
    page.on("dialog", lambda dialog: unwanted.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: None if request.url.startswith("http://127.0.0.1:") else unwanted.append(f"request: {request.url}"))
    page.add_init_script("document.addEventListener('securitypolicyviolation', e => console.log('policy: ' + e.violatedDirective))")
    return page, unwanted


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_quiet_and_fits_a_small_screen(browser: Browser, built: Path, address: str, scheme: str) -> None:
    context = browser.new_context(viewport={"width": 320, "height": 640}, color_scheme=scheme)  # type: ignore[arg-type]
    page, unwanted = watched(context)
    for name in pages_of(built):
        page.goto(f"{address}/{name}")
        page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, name
        assert unwanted == [], name
    context.close()


def test_everything_is_there_without_javascript(browser: Browser, built: Path, address: str) -> None:
    plain = browser.new_context(java_script_enabled=False)
    full = browser.new_context()
    one, two = plain.new_page(), full.new_page()
    for name in ("e/1.1/index.html", str(only(built, "e/1.1/runs/*-alpha-*/t-0001-r1.html").relative_to(built))):
        one.goto(f"{address}/{name}")
        two.goto(f"{address}/{name}")
        assert one.locator("main").inner_text().split() == two.locator("main").inner_text().split()
    plain.close()
    full.close()


def test_hostile_text_stands_there_as_text(browser: Browser, built: Path, address: str) -> None:
    context = browser.new_context()
    page, unwanted = watched(context)
    for path in sorted(built.glob("e/1.1/runs/*-hostile-*/*-r*.html")):
        page.goto(f"{address}/{path.relative_to(built)}")
        page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
        assert page.locator("main img, main script, main iframe").count() == 0
    assert unwanted == []
    page.goto(f"{address}/{only(built, 'e/1.1/runs/*-hostile-*/index.html').relative_to(built)}")
    assert "<script>alert(1)</script>" in page.locator("h1").inner_text()
    context.close()


def test_an_inline_script_would_be_blocked(browser: Browser, address: str) -> None:
    """The policy does what the other tests rely on: with a hole in the escaping, a script would still not run."""
    context = browser.new_context()
    page, unwanted = watched(context)
    page.goto(f"{address}/index.html")
    page.evaluate("const s = document.createElement('script'); try { s.text = 'window.hit = 1'; document.body.append(s) } catch (e) {}")
    assert page.evaluate("window.hit === undefined")
    assert unwanted, "the violation is reported"
    context.close()


def test_tables_sort_by_their_headings(browser: Browser, address: str) -> None:
    context = browser.new_context()
    page, unwanted = watched(context)
    page.goto(f"{address}/e/1.1/index.html")
    table = page.locator("table.sortable").first
    names = table.locator("tbody th[scope=row] a")
    before = names.all_inner_texts()
    heading = table.locator("thead th", has_text="Score").first
    heading.locator("button").click()
    assert (heading.get_attribute("aria-sort"), names.all_inner_texts()) == ("ascending", before)
    heading.locator("button").click()
    assert (heading.get_attribute("aria-sort"), names.all_inner_texts()) == ("descending", before[::-1])
    assert unwanted == []
    context.close()


def test_a_link_to_a_turn_shows_that_turn(browser: Browser, built: Path, address: str) -> None:
    context = browser.new_context(viewport={"width": 800, "height": 500})
    page, _ = watched(context)
    episode = only(built, "e/1.1/runs/*-beta-*/t-0008-r3.html").relative_to(built)
    page.goto(f"{address}/{episode}")
    page.locator("ol.map a").nth(14).click()
    assert page.url.endswith("#t-15")
    expect(page.locator("#t-15")).to_be_in_viewport()
    context.close()
