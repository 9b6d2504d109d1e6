"""Identities, variation tokens and sampling seeds: fixed for ever by golden values, and dependent on what they may depend on alone."""

import hashlib
import hmac
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep20ray.answers import Role
from deep20ray.canonical import Digest, canonical, digest_of
from deep20ray.seeds import SCHEME, sampling_seed, trial_id, variation_token

VECTOR = json.loads((Path(__file__).parents[1] / "vectors" / "seeds.json").read_text())

seeds = st.text(min_size=1, max_size=20)
rounds = st.integers(1, 1_000)
turns = st.integers(1, 60)
protocols = st.binary(max_size=8).map(lambda data: Digest(hashlib.sha256(data).hexdigest()))


@pytest.mark.failure_case(16)
def test_golden_values() -> None:
    """If this fails, recorded runs can't be repeated any more: name a new scheme instead."""
    assert VECTOR["scheme"] == SCHEME
    assert len(VECTOR["cases"]) == 6
    for case in VECTOR["cases"]:
        trial = trial_id(Digest(case["protocol"]), case["run_seed"], case["subject"], case["round"])
        assert trial == case["trial_id"]
        assert variation_token(case["run_seed"], case["round"]) == case["variation"]
        assert {f"{role}/{turn}": sampling_seed(case["run_seed"], trial, role, turn) for role in Role for turn in (1, 2, 41)} == case[
            "seeds"
        ]


@given(seeds, rounds, protocols, st.text(max_size=12), st.sampled_from(Role), turns)
def test_against_the_definition_written_again(run_seed: str, round_: int, protocol: Digest, subject: str, role: Role, turn: int) -> None:
    def dump(value: dict[str, object]) -> bytes:
        return canonical(value)

    trial = hashlib.sha256(dump({"protocol": protocol, "run_seed": run_seed, "subject": subject, "round": round_})).hexdigest()
    assert trial_id(protocol, run_seed, subject, round_) == trial
    mac = hmac.new(run_seed.encode(), dump({"scheme": SCHEME, "trial": trial, "role": role.value, "turn": turn}), "sha256").digest()
    expected = int.from_bytes(mac[:4], "big") % 2**31
    assert sampling_seed(run_seed, trial_id(protocol, run_seed, subject, round_), role, turn) == expected
    assert 0 <= expected < 2**31


@given(seeds, rounds, rounds)
def test_the_variation_token_is_one_per_round(run_seed: str, one: int, other: int) -> None:
    assert (variation_token(run_seed, one) == variation_token(run_seed, other)) == (one == other)
    assert len(variation_token(run_seed, one)) == 12


@given(seeds, protocols, st.tuples(st.text(max_size=8), rounds, turns), st.tuples(st.text(max_size=8), rounds, turns))
def test_trials_roles_and_turns_have_seeds_of_their_own(
    run_seed: str, protocol: Digest, a: tuple[str, int, int], b: tuple[str, int, int]
) -> None:
    (subject_a, round_a, turn_a), (subject_b, round_b, turn_b) = a, b
    one, other = trial_id(protocol, run_seed, subject_a, round_a), trial_id(protocol, run_seed, subject_b, round_b)
    assert (one == other) == ((subject_a, round_a) == (subject_b, round_b))
    drawn = {
        (trial, role, turn): sampling_seed(run_seed, trial, role, turn) for trial, turn in ((one, turn_a), (other, turn_b)) for role in Role
    }
    assert len(set(drawn.values())) == len(drawn)


def test_another_run_seed_or_protocol_is_another_game() -> None:
    protocols_ = [digest_of({"n": n}) for n in range(2)]
    ids = {trial_id(protocol, seed, "T-0001", 1) for protocol in protocols_ for seed in ("a", "b")}
    assert len(ids) == 4
    assert sampling_seed("a", trial_id(protocols_[0], "a", "T-0001", 1), Role.JUDGE, 1) != sampling_seed(
        "b", trial_id(protocols_[0], "a", "T-0001", 1), Role.JUDGE, 1
    )
