"""Which tests carry a mark, without collecting: the modules that mention it are imported, their functions looked at."""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _pytest.mark.structures import Mark, MarkDecorator, ParameterSet

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Marked:
    """One mark on one test."""

    path: str
    """From the repository's root."""
    test: str
    arguments: tuple[Any, ...]
    dialects: frozenset[str] | None
    """What the test's parameter ``dialect`` takes on; None if it has none."""


def marked(name: str) -> list[Marked]:
    """Every use of a mark on a test function or on one of its parameters, by path and name. A test that is always skipped has none."""
    found: list[Marked] = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if f"mark.{name}(" not in path.read_text():
            continue
        place = path.relative_to(ROOT)
        module = importlib.import_module(".".join(place.with_suffix("").parts))
        for test, function in sorted(vars(module).items()):
            if test.startswith("test_") and callable(function):
                marks: list[Mark] = getattr(function, "pytestmark", [])
                if not any(mark.name == "skip" for mark in marks):
                    found += [Marked(place.as_posix(), test, mark.args, _dialects(marks)) for mark in _all(marks) if mark.name == name]
    return found


def _all(marks: list[Mark]) -> Iterator[Mark]:
    yield from marks
    for mark in marks:
        for values in mark.args[1] if mark.name == "parametrize" else ():
            for inner in values.marks if isinstance(values, ParameterSet) else ():
                yield inner.mark if isinstance(inner, MarkDecorator) else inner


def _dialects(marks: list[Mark]) -> frozenset[str] | None:
    for mark in marks:
        if mark.name != "parametrize":
            continue
        names = [name.strip() for name in mark.args[0].split(",")] if isinstance(mark.args[0], str) else list(mark.args[0])
        if "dialect" in names:
            place = names.index("dialect")
            sets: list[Any] = [values.values if isinstance(values, ParameterSet) else values for values in mark.args[1]]
            return frozenset(str(values if len(names) == 1 and isinstance(values, str) else values[place]) for values in sets)
    return None
