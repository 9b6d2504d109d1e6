"""Habits that no linter holds: modules stay one thing and say what they are."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("deep20ray", "actors", "artifacts", "cluster", "cohorts", "prompts", "publisher")
MODULES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
LONGEST = 400
SCREEN = 60


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_stays_one_thing(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_says_what_it_is(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert not tree.body or ast.get_docstring(tree)


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_functions_fit_a_screen(path: Path) -> None:
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in functions
        if node.end_lineno and node.end_lineno - node.lineno >= SCREEN
    ]
    assert not long


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_only_the_boundary_catches_everything(path: Path) -> None:
    wide = {"Exception", "BaseException"}
    caught = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler) and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in wide))
    ]
    # An actor's call becomes a fault; the command line ends with code 1.
    boundaries = {"actors/deep20ray_actors/host.py", "cluster/deep20ray_cluster/cli.py"}
    assert len(caught) <= (name(path) in boundaries), caught


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_nothing_below_the_command_line_reads_the_environment(path: Path) -> None:
    if path.name in ("cli.py", "__main__.py"):
        return
    reads = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in ("environ", "getenv", "environb")
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
    ]
    assert not reads
