"""``python -m deep20ray``: finds the command through its entry point, so that the rules import nothing above them."""

import sys
from importlib.metadata import entry_points


def main() -> int:
    """Runs the installed ``deep20ray`` command."""
    (command,) = entry_points(group="console_scripts", name="deep20ray")
    result: object = command.load()()
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
