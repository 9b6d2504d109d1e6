"""A bounded share of the fuzzing, of each kind of input; ``make fuzz`` runs as much as one likes."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.artifacts.fuzz import Draw, Targets

TARGETS = Targets()


@pytest.mark.parametrize("kind", ["envelope", "stated", "trusted", "listed", "arrow"])
def test_spoilt_inputs_are_refused_or_harmless(kind: str) -> None:
    refused = 0

    @settings(max_examples=150, deadline=None, database=None, derandomize=True)
    @given(st.integers(0, 2**64))
    def spoil(seed: int) -> None:
        nonlocal refused
        refused += getattr(TARGETS, kind)(Draw(f"{kind}:{seed}"))

    spoil()
    assert refused > 50, "the inputs are spoilt in earnest"


@pytest.mark.full
def test_the_command_runs_within_its_memory() -> None:
    command = [sys.executable, "-m", "tests.artifacts.fuzz", "--inputs", "2000", "--seed", "7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("fuzz: 2000 inputs, seed 7, ")
