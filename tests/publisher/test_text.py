"""Hidden characters show, markup stays text, addresses are links only when a reader can check them whole."""

import pytest

from deep20ray_publisher.text import link, slug, spreadsheet_text, visible, visible_plain


@pytest.mark.parametrize(
    "char",
    [
        "\x00",
        "\x1b",
        "\r",
        "\x85",
        "\u00ad",
        "\u200b",
        "\u200d",
        "\u200e",
        "\u202e",
        "\u2066",
        "\u2028",
        "\u2029",
        "\ufeff",
        "\u034f",
        "\u115f",
        "\u3164",
        "\uffa0",
        "\u2800",
        "\ufe0f",
        "\ue000",
        "\U000e0041",
        "\U000e0100",
        "\U0010ffff",
    ],
)
def test_a_character_that_cannot_be_seen_is_shown_as_its_code_point(char: str) -> None:
    assert visible(f"a{char}b") == f'a<span class="cp">U+{ord(char):04X}</span>b'
    assert visible_plain(f"a{char}b") == f"a[U+{ord(char):04X}]b"


@pytest.mark.parametrize("text", ["plain", "two\nlines\tand a tab", "Ünïcödé, 中文, עברית, é (e\u0301)", "emoji 🦊", "no\u00a0break"])
def test_text_that_can_be_seen_stays(text: str) -> None:
    assert visible_plain(text) == text


def test_markup_is_escaped() -> None:
    assert visible("<b a=\"1\" b='2'>&") == "&lt;b a=&#34;1&#34; b=&#39;2&#39;&gt;&amp;"


def test_a_pile_of_marks_is_cut_after_three() -> None:
    assert visible_plain("a" + "\u0301" * 5 + "b") == "a" + "\u0301" * 3 + "[U+0301]" * 2 + "b"


@pytest.mark.parametrize(
    "url", ["https://example.org/", "http://example.org:8080/a?b=c%20d#e", "https://xn--bcher-kva.example", "HTTPS://EXAMPLE.ORG/x"]
)
def test_plain_addresses_are_links(url: str) -> None:
    assert link(url).href == url


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "java\tscript:alert(1)",
        "data:text/html,x",
        "//example.org/",
        "https://user:pass@example.org/",
        "https://user@example.org/",
        "https:///path",
        "https://example.org/ space",
        "https://example.org\\@evil.example/",
        "https://bücher.example/",
        "https://example.org/\u202egpj",
        "https://example.org/'\"<x>",
        "https://example.org:port/",
        "https://[::1/",
        "https://" + "a" * 2050 + ".example/",
        "ftp://example.org/",
        " https://example.org/",
        "",
    ],
)
def test_other_addresses_are_only_shown(url: str) -> None:
    assert link(url).href is None
    assert link(url).text == url


@pytest.mark.parametrize(
    ("signed", "segment"),
    [("T-0001", "t-0001"), ("core-1.1", "core-1.1"), ("20261201T093000Z-a-0123456789ab", "20261201t093000z-a-0123456789ab")],
)
def test_slugs(signed: str, segment: str) -> None:
    assert slug(signed) == segment


@pytest.mark.parametrize("signed", ["", "..", "../x", "a/b", "a b", "-a", ".a", "a.", "con", "NUL.x", "ä", "a" * 101, "a\n"])
def test_ids_that_are_no_path_segment(signed: str) -> None:
    assert slug(signed) is None


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\n=1", "  =1", "\uff1d1"])
def test_no_text_becomes_a_formula(text: str) -> None:
    assert spreadsheet_text(text).startswith("'")


def test_harmless_text_is_not_marked() -> None:
    assert spreadsheet_text("Is 1 + 1 = 2?") == "Is 1 + 1 = 2?"
