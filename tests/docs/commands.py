"""The reference of all commands, made of the code. ``python -m tests.docs.commands --write``."""

import sys
from collections.abc import Iterator
from typing import Any

import typer
import typer.main

from deep20ray_cluster.cli import ENV_PREFIX, EXIT_CODES, app
from deep20ray_publisher.cli import app as publisher_app
from tests.docs.marks import ROOT

PAGE = ROOT / "docs" / "commands.md"
HEAD = f"""# Commands

Made of the code by `python -m tests.docs.commands --write`. `--help` says the same, and `deep20ray --install-completion` completes them
in your shell. Results go to stdout, everything else to stderr.

An option that is always the same can stand in the environment: `{ENV_PREFIX}_RUN_PROGRESS=plain` is `--progress plain` of
`deep20ray run`. A flag's word is on or off: `{ENV_PREFIX}_RUN_JSON=1`.

{EXIT_CODES} [More about them](exit-codes.md).
"""


def leaves(application: typer.Typer, name: str) -> Iterator[tuple[str, Any]]:
    """Every command with the words that call it, such as "deep20ray keys new"."""

    def walk(command: Any, words: str) -> Iterator[tuple[str, Any]]:
        inner = getattr(command, "commands", None)
        if inner is None:
            yield words, command
            return
        for key in sorted(inner):
            yield from walk(inner[key], f"{words} {key}")

    return walk(typer.main.get_command(application), name)


def reference() -> str:
    """The whole page."""
    parts = [HEAD]
    for words, command in (*leaves(app, "deep20ray"), *leaves(publisher_app, "deep20ray-publisher")):
        arguments = [each for each in command.params if each.param_type_name == "argument"]
        options = [each for each in command.params if each.param_type_name == "option" and each.name != "help"]
        shown = " ".join([words, *(_argument(each) for each in arguments), *(["[OPTIONS]"] if options else [])])
        rows = [f"| `{_argument(each)}` | {_cell(getattr(each, 'help', None))} |" for each in arguments]
        rows += [f"| {', '.join(f'`{name}`' for name in (*each.opts, *each.secondary_opts))} | {_option(each)} |" for each in options]
        table = "\n".join(["", "| | |", "|---|---|", *rows, ""]) if rows else ""
        parts.append(f"## {words}\n\n```\n{shown}\n```\n\n{_paragraphs(command.help or '')}\n{table}")
    return "\n".join(parts)


def _argument(each: Any) -> str:
    name = (each.metavar or each.name.rstrip("_")).strip("[]").upper()
    return name if each.required else f"[{name}]"


def _option(each: Any) -> str:
    told = _cell(getattr(each, "help", None))
    if each.required:
        return f"{told} Required."
    default = each.default
    if default in (None, False, (), []) or callable(default):
        return told
    return f"{told} Default: `{getattr(default, 'value', default)}`."


def _cell(text: str | None) -> str:
    return " ".join((text or "").replace("|", "\\|").split())


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


if __name__ == "__main__" and "--write" in sys.argv:
    PAGE.write_text(reference())
