"""The site in a real browser: no policy violation, no error, hostile text inert, readable without JavaScript, fits 320 pixels."""

import json
import shutil
import subprocess
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
        two.evaluate("for (const box of document.querySelectorAll('.filter')) box.remove()")  # what the script adds
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


# -- the whole way, with eyes and without ---------------------------------------------------------------------------------------


def test_from_the_leaderboard_to_the_evidence_of_a_turn(browser: Browser, address: str) -> None:
    context = browser.new_context()
    page, unwanted = watched(context)
    page.goto(f"{address}/")
    page.get_by_role("link", name="Edition 1.1").click()
    page.locator("table.ranked tbody th a", has_text="Model alpha").click()
    page.locator("table.grid tbody td a").first.click()
    page.locator("ol.map a").first.click()
    assert page.url.endswith("#t-1")
    page.locator("#t-1 summary").click()
    expect(page.locator("#t-1-e-1 blockquote")).to_be_visible()
    assert page.locator("#t-1-e-1 .src a").get_attribute("rel") == "nofollow ugc noopener noreferrer external"
    assert unwanted == []
    context.close()


def test_sort_and_filter_are_in_the_address(browser: Browser, address: str) -> None:
    context = browser.new_context()
    page, unwanted = watched(context)
    page.goto(f"{address}/e/1.1/index.html")
    page.get_by_label("Filter by model").first.fill("beta")
    rows = page.locator("table.ranked tbody tr:visible")
    expect(rows).to_have_count(1)
    expect(page.get_by_role("status").first).to_contain_text("1 of 3 shown")
    page.locator("table.ranked thead button", has_text="Cost").click()
    page.reload()
    expect(rows).to_have_count(1)
    assert "model=beta" in page.url and "sort=" in page.url
    assert page.locator("table.ranked thead [aria-sort=ascending]").inner_text().startswith("Cost")
    assert unwanted == []
    context.close()


def test_the_keyboard_alone_is_enough(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page, _ = watched(context)
    page.goto(f"{address}/e/1.1/index.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the content"
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('thead') !== null && document.activeElement.textContent === 'Score'"):
            break
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    assert page.locator("table.ranked thead [aria-sort=descending]").inner_text().startswith("Score")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    context.close()


def test_paper_needs_no_navigation(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 800, "height": 1000}, color_scheme="dark")
    page, _ = watched(context)
    page.emulate_media(media="print", color_scheme="light")
    page.goto(f"{address}/e/1.1/index.html")
    assert page.locator("nav.main").is_hidden() and page.locator("table.ranked").is_visible()
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    context.close()


NODE = Path(__file__).parents[2] / ".tools" / "node_modules"
AXE = NODE / "axe-core" / "axe.min.js"
HTML_VALIDATE = NODE / "html-validate" / "bin" / "html-validate.mjs"


def kinds_of(built: Path) -> list[str]:
    """One page of each kind: each template's smallest path."""
    found: dict[tuple[str, ...], str] = {}
    for name in pages_of(built):
        parts = name.split("/")
        stem = parts[-1] if parts[-1] in ("index.html", "provenance.html") or len(parts) < 4 else "r" if "-r" in parts[-1] else "s"
        found.setdefault((str(len(parts)), *parts[2:3], stem), name)
    return sorted(found.values())


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 320),
        ("dark", 1280),
        pytest.param("light", 1280, marks=pytest.mark.full),
        pytest.param("dark", 320, marks=pytest.mark.full),
    ],
)
def test_axe_finds_nothing(browser: Browser, built: Path, address: str, scheme: str, width: int) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed; `make tools` installs it")
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True)  # type: ignore[arg-type]
    page = context.new_page()
    names = kinds_of(built)
    assert len(names) >= 17
    faults: list[tuple[str, ...]] = []
    for name in names:
        page.goto(f"{address}/{name}")
        page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
        page.add_script_tag(path=AXE)
        found = page.evaluate("axe.run().then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 120))]))")
        faults += [(name, *each) for each in found]
    assert faults == []
    context.close()


def test_html_validate_finds_nothing(built: Path, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not HTML_VALIDATE.exists():
        pytest.skip("html-validate is not installed; `make tools` installs it")
    rules = {"extends": ["html-validate:recommended"], "rules": {"long-title": "off"}}
    (tmp_path / "rules.json").write_text(json.dumps(rules))
    files = [str(built / name) for name in kinds_of(built)]
    done = subprocess.run(
        [node, HTML_VALIDATE, "-c", tmp_path / "rules.json", *files], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
