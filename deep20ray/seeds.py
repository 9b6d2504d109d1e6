"""Where a trial's identity, its variation token and its sampling seeds come from. Nothing here is random."""

import hashlib
import hmac
from typing import NewType

from deep20ray.answers import Role
from deep20ray.canonical import Digest, canonical, digest_of

TrialId = NewType("TrialId", str)
"""SHA-256 hex of (protocol version, run seed, subject id, round)."""

SCHEME = "deep20ray-seeds-v1"


def trial_id(protocol: Digest, run_seed: str, subject_id: str, round_: int) -> TrialId:
    """The identity of one (subject, round); rounds count from 1."""
    return TrialId(digest_of({"protocol": protocol, "run_seed": run_seed, "subject": subject_id, "round": round_}))


def variation_token(run_seed: str, round_: int) -> str:
    """Twelve hex digits that change the repeated-call condition between rounds and say nothing about the subject."""
    return digest_of({"scheme": SCHEME, "run_seed": run_seed, "round": round_})[:12]


def sampling_seed(run_seed: str, trial: TrialId, role: Role, turn: int) -> int:
    """The 31-bit seed of one role in one turn (turns count from 1): HMAC-SHA256 keyed with the run seed, first 4 bytes, top bit off."""
    message = canonical({"scheme": SCHEME, "trial": trial, "role": str(role), "turn": turn})
    mac = hmac.new(run_seed.encode(), message, hashlib.sha256).digest()
    return int.from_bytes(mac[:4], "big") & 0x7FFF_FFFF
