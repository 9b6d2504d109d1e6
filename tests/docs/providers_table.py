"""The table of what each dialect supports and which test shows it, made of the code. ``python -m tests.docs.providers_table --write``."""

import sys
from collections.abc import Iterable

from deep20ray_actors.config import Dialect
from deep20ray_actors.providers.features import HOSTED, SUPPORT, Feature, Server, Support
from tests.docs.marks import ROOT, Marked, marked

PAGE = ROOT / "docs" / "providers.md"
BEGIN, END = "<!-- made by tests/docs/providers_table.py: begin -->", "<!-- end -->"


def table() -> str:
    """Both tables, as Markdown."""
    shows, hosts = marked("shows"), marked("hosted")
    head = ["", *(f"`{dialect}`" for dialect in Dialect), "shown by"]
    rows = [
        [
            feature.value,
            *(_cell(SUPPORT[dialect][feature]) for dialect in Dialect),
            _links(each for each in shows if each.arguments[0] is feature),
        ]
        for feature in Feature
    ]
    own = [
        [
            hosted.server.value,
            f"`{hosted.dialect}`",
            "a real one" if hosted.driven else "bodies of its shape; never driven here",
            hosted.remark,
            _links(each for each in hosts if each.arguments == (hosted.server, hosted.dialect)),
        ]
        for hosted in HOSTED
    ]
    return f"{_markdown([head, *rows])}\n\n{_markdown([['your own server', 'as', 'known by', 'what to know', 'shown by'], *own])}"


def _cell(support: Support) -> str:
    word = "yes" if support.there else "no"
    return f"{word}: {support.note}" if support.note else word


def _links(shown: Iterable[Marked]) -> str:
    return ", ".join(f"[{test}](../{path})" for path, test in sorted({(each.path, each.test) for each in shown}))


def _markdown(rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def parts(page: str) -> tuple[str, str, str]:
    """A page before, in and after the markers."""
    before, _, rest = page.partition(f"{BEGIN}\n")
    inside, _, after = rest.partition(f"\n{END}")
    return before, inside, after


def main(arguments: list[str]) -> None:
    """Prints the tables, or writes them into the page."""
    if arguments != ["--write"]:
        print(table())
        return
    before, _, after = parts(PAGE.read_text())
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}")


if __name__ == "__main__":
    main(sys.argv[1:])

__all__ = ["BEGIN", "END", "PAGE", "Server", "parts", "table"]
