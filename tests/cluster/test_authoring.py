"""The commands for subject lists and prompts, as their users meet them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .command import Ended

Command = Callable[..., Ended]


def test_a_list_of_names_is_written_completed_and_played_on(deep20ray: Command, tmp_path: Path) -> None:
    names, out = tmp_path / "names.txt", tmp_path / "kitchen.toml"
    names.write_text("kettle\nladle\n")
    done = deep20ray("cohort", "new", "kitchen", "--names", names, "--out", out)
    assert (done.code, done.out) == (0, f"{out}\n") and "2 subjects" in done.err
    assert deep20ray("cohort", "lint", out).code == 2
    out.write_text(out.read_text().replace('description = ""', 'description = "A tool. Not a pot."'))
    done = deep20ray("cohort", "lint", out, "--json")
    told = json.loads(done.out)
    assert done.code == 0 and told["errors"] == 0 and {finding["kind"] for finding in told["findings"]} == {"no reference"}
    again = deep20ray("cohort", "new", "kitchen", "--names", names, "--out", out)
    assert again.code == 2 and "there is such a file already" in again.complaint


def test_a_name_that_the_guide_gives_away_is_an_error(deep20ray: Command, tmp_path: Path) -> None:
    out = tmp_path / "mine.toml"
    out.write_text(
        '\nid = "mine"\n[[subjects]]\nid = "S-1"\ncategory = "thing"\ncanonical_name = "comic"\ndescription = "Pages, not a film."\n'
        'reference = "https://example.org/\\u001b[31m"\n'
    )
    done = deep20ray("cohort", "lint", out)
    assert done.code == 2 and "error S-1: shown: 'comic' stands in the guide of edition 1.1" in done.out
    assert deep20ray("cohort", "lint", out, "--edition", "1.0").code == 0
    assert "choose 1.0 or 1.1" in deep20ray("cohort", "lint", out, "--edition", "2").complaint
    assert "can't be read" in deep20ray("cohort", "lint", tmp_path / "none.toml").complaint


def test_two_prompts_are_compared(deep20ray: Command) -> None:
    assert "guesser-1.1-r1 " in deep20ray("prompts", "list").out
    rows = json.loads(deep20ray("prompts", "list", "--json").out)
    assert len({row["revision"] for row in rows}) == len(rows) > 10
    done = deep20ray("prompts", "diff", "guesser-1.1-r1", "guesser-1.1-r2")
    assert done.code == 0 and done.out.startswith("--- guesser-1.1-r1\n+++ guesser-1.1-r2\n@@")
    assert deep20ray("prompts", "diff", "guesser-1.1-r1", "guesser-1.1-r1").out == ""
    assert "there is no such prompt" in deep20ray("prompts", "diff", "guesser-1.1-r1", "guesser-9").complaint


def test_an_option_can_stand_in_the_environment(deep20ray: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEP20RAY_PROMPTS_LIST_JSON", "1")
    assert json.loads(deep20ray("prompts", "list").out)
