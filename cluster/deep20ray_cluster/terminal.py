"""What commands share: their options of one meaning, and what they say. One line each, whatever a name or a message in it holds.

Data goes to stdout, narration to stderr.
"""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

_TRUST: Final = typer.Option("--trust", help="A trust file (.json) or public key (.pub); repeatable.")
Trust = Annotated[list[Path], _TRUST]
MaybeTrust = Annotated[list[Path] | None, _TRUST]
"""Where there is something to do without it."""
Json = Annotated[bool, typer.Option("--json", help="The result as JSON on stdout.")]


def complain(text: str) -> None:
    """Narration or an error, on stderr."""
    print(f"deep20ray: {one_line(text)}", file=sys.stderr)


def one_line(text: str) -> str:
    """Without line breaks, control characters, or whatever else doesn't print."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())
