"""Bytes as text: charsets, white space, limits; and that the parser neither fetches nor opens anything."""

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep20ray_actors.search.text import decoded, page_text

PAGE = """<html><head><title>T</title><script>evil()</script><style>p{}</style></head><body><nav><a href="/">Home</a></nav>
<main><h1>Halley</h1><p>The comet  returns\n every 76&nbsp;years.</p><table><tr><td>Mass</td><td>2.2e14 kg</td></tr></table></main>
<div class="comments"><p>First!</p></div></body></html>"""


def test_a_pages_text() -> None:
    text = page_text(PAGE.encode(), "text/html", None, 1000)
    assert "The comet returns every 76 years." in text and "2.2e14 kg" in text and "evil" not in text
    assert "  " not in text and "\n\n\n" not in text and text == text.strip()


def test_text_is_cut() -> None:
    assert page_text(PAGE.encode(), "text/html", None, 10) == page_text(PAGE.encode(), "text/html", None, 1000)[:10].rstrip()
    assert page_text(b"x" * 500, "text/plain", None, 100) == "x" * 100


@pytest.mark.parametrize("body", [b"", b"   ", b"<html></html>", b"<html><body><script>x</script></body></html>", b"\x00\x01", b"<!--"])
def test_a_page_without_text(body: bytes) -> None:
    assert page_text(body, "text/html", None, 100) == ""


def test_plain_text_is_tidied() -> None:
    assert page_text(b" a \t b\r\n\r\n\r\n\r\nc\x00\x1b[31m\xe2\x80\x8bd ", "text/plain", "utf-8", 100) == "a b\n\nc[31md"


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        ("é".encode(), None, "é"),
        ("é".encode("latin-1"), "iso-8859-1", "é"),
        (b"\x93x\x94", "ISO-8859-1", "\u201cx\u201d"),
        ("é".encode("latin-1"), None, "\ufffd"),
        (b"<meta charset='windows-1252'>\xe9", None, "<meta charset='windows-1252'>é"),
        (
            b'<META http-equiv="x" content="text/html; charset=koi8-r">\xc1',
            None,
            '<META http-equiv="x" content="text/html; charset=koi8-r">\u0430',
        ),
        (b"<meta charset=latin1>\xc3\xa9", "utf-8", "<meta charset=latin1>é"),
        (b"\xef\xbb\xbf\xc3\xa9", "latin-1", "é"),
        (b"\xff\xfex\x00", None, "x"),
        ("日本".encode("shift_jis"), "Shift_JIS", "日本"),
        ("中文".encode("gbk"), "gb2312", "中文"),
        (b"\xfd\xfe\xfd", "utf-8", "\ufffd\ufffd\ufffd"),
    ],
)
def test_charsets(body: bytes, charset: str | None, text: str) -> None:
    assert decoded(body, charset) == text


@pytest.mark.parametrize(
    "charset", ["zlib", "zlib_codec", "hex", "rot13", "unicode_escape", "idna", "punycode", "utf-7", "../x", "", "x" * 99, "é"]
)
def test_what_is_no_charset_is_not_taken_for_one(charset: str) -> None:
    assert decoded(b"x\\x41", charset) == "x\\x41"


@given(st.binary(max_size=300), st.none() | st.text(max_size=20) | st.sampled_from(["utf-16", "iso2022_jp", "big5", "euc-kr"]))
def test_any_bytes_are_read_to_text_that_can_be_stored(body: bytes, charset: str | None) -> None:
    for kind in ("text/plain", "text/html"):
        text = page_text(body, kind, charset, 50)
        assert len(text) <= 50 and text.encode().decode() == text


OPENED: list[str] = []
LISTENING = False


def hook(event: str, arguments: tuple[Any, ...]) -> None:
    if LISTENING and event.split(".")[0] in ("open", "socket", "subprocess", "urllib", "os"):
        OPENED.append(f"{event} {arguments!r:.80}")


def test_reading_opens_no_file_and_no_connection() -> None:
    global LISTENING
    page = (
        '<!DOCTYPE html SYSTEM "http://127.0.0.1:9/x.dtd" [<!ENTITY x SYSTEM "file:///etc/passwd">]><html><head>'
        '<base href="http://127.0.0.1:9/"><link rel="stylesheet" href="http://127.0.0.1:9/a.css"><meta http-equiv="refresh" content="0;url=/">'
        '</head><body><iframe src="file:///etc/passwd"></iframe><img src="http://127.0.0.1:9/i.png"><p>&x; Some words stand here.</p></body></html>'
    )
    page_text(PAGE.encode(), "text/html", None, 1000)
    sys.addaudithook(hook)
    LISTENING = True
    try:
        text = page_text(page.encode(), "text/html", None, 1000)
    finally:
        LISTENING = False
    assert OPENED == [] and "Some words stand here." in text and "root:" not in text
