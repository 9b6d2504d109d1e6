"""What goes to a terminal: one line each, whatever a name or a message in it holds. Data to stdout, narration to stderr."""

import sys


def complain(text: str) -> None:
    """Narration or an error, on stderr."""
    print(f"deep20ray: {one_line(text)}", file=sys.stderr)


def one_line(text: str) -> str:
    """Without line breaks, control characters, or whatever else doesn't print."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())
