"""Documentation that can't drift: what exists is documented, what is documented exists, and the examples parse."""

import re
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel

from deep20ray.errors import Deep20RayError
from deep20ray_cluster import settings, sweep
from deep20ray_cluster.cli import app
from deep20ray_publisher.cli import app as publisher_app
from tests.docs.commands import PAGE, leaves, reference

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = {path: path.read_text() for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]}
EXIT_CODES = {0, 1, 2, 3, 4, 5, 130}
SECTIONS: dict[str, tuple[type[BaseModel]]] = {
    "`[sweep]`": (sweep.SweepHead,),
    "`[accounts.NAME]`": (sweep.Account,),
    "`[search]`": (settings.Search,),
    "`[support.oracle]`": (sweep.Model,),
    "`[[models]]`": (sweep.Contestant,),
    '`[prices."MODEL"]`': (sweep.Price,),
}


def section(title: str) -> str:
    text = PAGES[ROOT / "docs" / "sweep-file.md"]
    (found,) = [part for part in text.split("\n## ")[1:] if part.startswith(title)]
    return found


@pytest.mark.parametrize("title", SECTIONS)
def test_every_setting_of_a_sweep_file_is_documented(title: str) -> None:
    inherited = set(sweep.Model.model_fields) if title == "`[[models]]`" else set()
    for kind in SECTIONS[title]:
        missing = [name for name in kind.model_fields if name not in inherited and f"`{name}`" not in section(title)]
        assert not missing, f"docs/sweep-file.md, {title}: {missing}"


@pytest.mark.parametrize("title", SECTIONS)
def test_every_documented_setting_exists(title: str) -> None:
    first_cells = re.findall(r"^\| (`.*?) \|", section(title), re.MULTILINE)
    documented = {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}
    known = {name for kind in SECTIONS[title] for name in kind.model_fields}
    assert documented <= known


def shown(value: object) -> str:
    """A default as the tables write it."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def test_documented_defaults_are_the_defaults() -> None:
    compared = 0
    for title, (kind,) in SECTIONS.items():
        for names, default in re.findall(r"^\| ([^|]+) \| ([\d, ]+|true|false|`\"[^|]+\"`) \|", section(title), re.MULTILINE):
            values = [value.strip(' `"') for value in default.split(",")]
            for name, value in zip(re.findall(r"`(\w+)`", names), values, strict=True):
                assert shown(kind.model_fields[name].default) == value, f"{title} {name}"
                compared += 1
    assert compared >= 12


def test_the_readmes_sweep_file_is_one() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    assert sweep.parse_sweep(example, "README.md").models[0].id == "small-model"


def test_the_documented_prices_accounts_and_cohort_are_such(tmp_path: Path) -> None:
    from deep20ray_cohorts import load

    prices, accounts, example = re.findall(r"```toml\n(.*?)```", PAGES[ROOT / "docs" / "sweep-file.md"], re.DOTALL)
    assert sweep.parse_prices(prices, "prices.toml")
    kinds = {sweep.Account.model_validate(account).kind for account in tomllib.loads(accounts)["accounts"].values()}
    assert kinds == {"openai-chat", "openai-responses", "anthropic", "gemini", "openrouter"}
    assert tomllib.loads(example)["id"] == "mine"
    (tmp_path / "mine.toml").write_text(example)
    assert load(str(tmp_path / "mine.toml")).subjects[0].id == "S-0001"


ALL = {words for words, _ in (*leaves(app, "deep20ray"), *leaves(publisher_app, "deep20ray-publisher"))}


def test_commands_were_found() -> None:
    assert {"deep20ray run", "deep20ray keys new", "deep20ray-publisher build"} <= ALL


def test_the_reference_of_commands_is_what_the_code_says() -> None:
    assert PAGE.read_text() == reference(), "make it anew: python -m tests.docs.commands --write"


def test_every_command_in_the_documents_exists() -> None:
    for page, text in PAGES.items():
        for line in re.findall(r"^ {4}(deep20ray(?:-publisher)? .*)$", text, re.MULTILINE):
            assert any(line.startswith(command) for command in ALL), f"{page.name}: {line}"


def test_every_exit_code_is_documented_and_no_other() -> None:
    rows = re.findall(r"^\| (\d+) \|", PAGES[ROOT / "docs" / "exit-codes.md"], re.MULTILINE)
    assert {int(row) for row in rows} == EXIT_CODES


def subclasses(kind: type[Deep20RayError]) -> list[type[Deep20RayError]]:
    return [kind, *(deeper for each in kind.__subclasses__() for deeper in subclasses(each))]


def test_every_error_ends_with_a_documented_code() -> None:
    assert {each.exit_code for each in subclasses(Deep20RayError)} <= EXIT_CODES


def test_links_lead_somewhere() -> None:
    for page, text in PAGES.items():
        for target in re.findall(r"\]\(([^)#]+)", text):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_make_targets_named_in_documents_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for page, text in PAGES.items():
        for target in re.findall(r"(?:^ {4}|`)make ([a-z][a-z-]*)", text, re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page.name}: make {target}"
