"""The whole system on recorded games: nothing differs, and of a changed recording exactly the changed trial does."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.replay.builder import DATA, made


def run(folder: Path, *more: str, seconds: int = 600) -> tuple[int, list[str], str]:
    """The whole command: exit code, lines, and what it said beside them."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.replay", str(folder), *more], capture_output=True, text=True, timeout=seconds, check=False
    )
    return done.returncode, [line for line in done.stdout.splitlines() if "pages (preview)" not in line], done.stderr


@pytest.mark.full
def test_unchanged_recordings_have_no_mismatch(tmp_path: Path) -> None:
    code, lines, said = run(made(tmp_path / "data"))
    assert len(lines) == 1, said
    assert lines[-1].startswith("replay: 1 runs, 6 trials, 0 mismatches, max |difference| ")
    assert code == 0


@pytest.mark.full
def test_a_changed_final_token_is_exactly_that_trial(tmp_path: Path) -> None:
    def change(row: dict[str, Any]) -> None:
        if (row["target_id"], row["trial"], row["turn"]) == ("T-0007", "trial-002", 3):
            row["answer"] = "NO"

    code, lines, said = run(made(tmp_path / "data", change))
    assert lines[:-1] == ["BX-1 T-0007 round 2: turn 3: recorded ask 3 NO YES YES; played ask 3 YES YES YES"], said
    assert ", 1 mismatches, " in lines[-1]
    assert code == 1


@pytest.mark.full
def test_a_changed_reviewer_whom_no_judge_follows_is_exactly_that_trial(tmp_path: Path) -> None:
    def change(row: dict[str, Any]) -> None:
        if (row["target_id"], row["trial"], row["turn"]) == ("T-0007", "trial-001", 3):
            row["reviewer"] = "UNKNOWN"

    code, lines, said = run(made(tmp_path / "data", change))
    assert [line.split(", ")[0] for line in lines[:-1]] == ["BX-1 T-0007 round 1: infrastructure"], said
    assert ", 1 mismatches, " in lines[-1]
    assert code == 1


@pytest.mark.full
def test_a_folder_in_which_nothing_can_be_played_to_its_end_still_ends(tmp_path: Path) -> None:
    def change(row: dict[str, Any]) -> None:
        if row["turn"] == 1:
            row["judge"] = None

    code, lines, said = run(made(tmp_path / "data", change))
    assert len(lines) == 7, said
    assert ", 6 mismatches, " in lines[-1]
    assert code == 1


@pytest.mark.full
def test_a_changed_verdict_is_exactly_that_trial(tmp_path: Path) -> None:
    def verdict(row: dict[str, Any]) -> None:
        if (row["target_id"], row["trial"], row["validator"]) == ("T-0001", "trial-003", "YES"):
            row["validator"] = "NO"

    code, lines, said = run(made(tmp_path / "data", verdict=verdict))
    assert [line.split(":")[0] for line in lines[:-1]] == ["BX-1 T-0001 round 3"], said
    assert lines[-1].startswith("replay: 1 runs, 6 trials, 1 mismatches, max |difference| ")
    assert code == 1


def test_a_used_out_folder_and_a_folder_of_another_form_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    for more in (["--out", str(tmp_path / "used")], []):
        code, lines, said = run(tmp_path, *more)
        assert (code, lines) == (2, [])
        assert said.count("\n") == 1
        assert said.startswith("replay: ")


@pytest.mark.full
@pytest.mark.skipif(not DATA.is_dir(), reason=f"recorded games are not there ({DATA.name} beside the checkout, under shared/data)")
def test_the_recorded_runs_come_out_as_recorded() -> None:
    code, lines, said = run(DATA, seconds=1800)
    assert lines[:-1] == [], said
    assert lines[-1].startswith("replay: 6 runs, 210 trials, 0 mismatches")
    assert code == 0
