"""What every command shares: how a line is shown, how something is complained of, what playing needs."""

import sys
from importlib.util import find_spec

from deep20ray.errors import UsageError


def line(text: str) -> str:
    """One line, whatever a name or a message in it holds."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def complain(text: str) -> None:
    """One line on stderr."""
    print(f"deep20ray: {line(text)}", file=sys.stderr)


def needs_run_extra() -> None:
    """Refuses where what plays isn't installed.

    Raises:
        UsageError: naming what is missing.
    """
    missing = [name for name in ("ray", "httpx", "httpx_aiohttp", "psutil", "genai_prices") if find_spec(name) is None]
    if missing:
        raise UsageError(f"{missing[0]} is not installed here, and playing needs it: pip install 'deep20ray[run]'")
