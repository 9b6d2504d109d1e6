"""A page's bytes as readable text, in a process of its own that its parent may kill: the parser's time and memory are not bounded.

Two megabytes of table cells, attributes or a doctype hold the parser up for minutes, some of it in a regular expression that lets no
other thread run; nested blocks take it hundreds of megabytes. So this process has a limit of memory, and of processor time for each
page; past either it ends, and its parent starts another. Once it runs it opens no file and no connection, and it is given no secret.

Frames in: a line of JSON {"kind", "charset", "size", "max_text"}, then that many bytes. Frames out: 4 bytes of length, then UTF-8.
"""

import codecs
import contextlib
import json
import re
import resource
import signal
import sys
import unicodedata
from typing import Any, BinaryIO

import trafilatura

from deep20ray_actors.providers.jsontext import storable

CPU_SECONDS = 6.0
"""Of processor time for one page; two megabytes of plain articles take one."""
_MEMORY = 1 << 30
_META = re.compile(rb"<meta[^>]{0,512}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# Labels mean what browsers take them for; whatever else Python can decode, such as compression, is no charset of a page.
_CHARSETS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "tis-620": "cp874",
    **{name: name for name in ("utf-8", "utf-16-le", "utf-16-be", "koi8-r", "koi8-u", "gb18030", "big5", "euc_jp", "iso2022_jp")},
    **{name: name for name in ("cp932", "cp949", "cp874", "mac-roman", *(f"cp125{number}" for number in range(9)))},
    **{f"iso8859-{number}": f"iso8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    "utf-16": "utf-16-le",
}


def page_text(body: bytes, kind: str, charset: str | None, max_text: int) -> str:
    """The readable text of a page, ``max_text`` characters at most; empty if there is none.

    Args:
        body: as sent, without compression.
        kind: the content type, "text/plain" or a kind of HTML.
        charset: what the header said of it.
        max_text: characters.
    """
    source = decoded(body, charset)
    if kind == "text/plain":
        return _tidy(source[: max_text * 20], max_text)
    text = trafilatura.extract(source, favor_recall=True, include_comments=False, include_tables=True)
    return _tidy(text or "", max_text)


def decoded(body: bytes, charset: str | None) -> str:
    """By its byte order mark, the header, or its own meta element, else UTF-8; what can't be read is U+FFFD."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    meta = _META.search(body[:4096])
    named = _codec(charset) or (_codec(meta[1].decode("ascii")) if meta else None)
    return body.decode(named or "utf-8", "replace")


def _codec(label: str | None) -> str | None:
    if label is None or not re.fullmatch(r"[A-Za-z0-9_:.-]{1,40}", label):
        return None
    try:
        return _CHARSETS.get(codecs.lookup(label).name)
    except LookupError:
        return None


def _tidy(text: str, limit: int) -> str:
    """Lines without space around or doubled within, at most one empty line between them, no control characters."""
    visible = "".join(each if each.isspace() or unicodedata.category(each) not in ("Cc", "Cf") else "" for each in storable(text))
    lines = "\n".join(" ".join(line.split()) for line in visible.splitlines())
    return re.sub(r"\n{3,}", "\n\n", lines).strip()[:limit].rstrip()


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Reads pages until the parent closes its end. Anything unforeseen ends the process, which the parent takes for an answer."""
    while line := requests.readline(4096):
        asked: dict[str, Any] = json.loads(line)
        body = requests.read(asked["size"])
        # Ends the process by itself, in the middle of whatever it does, should its parent be gone.
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        text = page_text(body, asked["kind"], asked["charset"], asked["max_text"]).encode()
        signal.setitimer(signal.ITIMER_PROF, 0)
        replies.write(len(text).to_bytes(4, "big") + text)
        replies.flush()


def confine() -> None:
    """Loads everything that reading may need, then gives up memory, files and connections beyond that."""
    for name in {*_CHARSETS, *_CHARSETS.values()}:
        codecs.lookup(name)
    # Short text goes through every stage of the extraction, whose word lists are files.
    page_text(b"<html><body><div><p>One line.</p></div><table><tr><td>a</td></tr></table></body></html>", "text/html", None, 100)
    limits = ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 3))
    for which, limit in limits:
        # Not every system knows every limit, macOS none of memory.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(which, (limit, limit))


if __name__ == "__main__":
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    confine()
    serve(sys.stdin.buffer, sys.stdout.buffer)
