"""Runs that equal a release contract, and the contract; a test changes one thing."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from deep20ray.canonical import canonical, digest_of
from deep20ray_artifacts.contract import Contract
from deep20ray_artifacts.qualification import contract_facts
from deep20ray_artifacts.signing import load_private, sign_payload
from tests.artifacts import builder

SCORES = {f"T-{number:04}": [1 + number % 3, 2, 1] for number in range(1, 11)}
"""Ten subjects in three rounds, as the edition wants it."""


def release_draft(model_id: str = "alpha", hours: int = 0, **more: Any) -> builder.RunDraft:
    """A complete run of real models, as a contract wants it."""
    given: dict[str, Any] = {"scores": SCORES, "simulated": False, "completed_at": builder.COMPLETED_AT + timedelta(hours=hours), **more}
    return builder.draft(model_id=model_id, **given)


def replan(run: builder.RunDraft, plan: dict[str, Any]) -> builder.RunDraft:
    """The run with another plan."""
    run.plan = canonical(plan)
    run.rows["run"][0]["plan_sha256"] = digest_of(plan)
    return run


def contract_of(*runs: builder.RunDraft, id_: str = "edition-1.1-r1", **changed: Any) -> Contract:
    """The contract that these runs equal."""
    subjects = [{name: row[name] for name in ("subject_id", "category", "subject_sha256")} for row in runs[0].rows["subjects"]]
    facts = [contract_facts(run.plan, subjects, id_, {}) for run in runs]
    guessers = {each["guessers"][0]["model_id"]: each["guessers"][0] for each in facts}
    return Contract.of({**facts[0], "guessers": list(guessers.values()), **changed})


def signed_contract(path: Path, contract: Contract, key: Path) -> Path:
    """A contract's file, signed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(sign_payload(contract.statement(), load_private(key)))
    return path


def sealed(run: builder.RunDraft, root: Path, key: Path) -> Path:
    """The run's folder, signed."""
    folder = builder.recorded(run).seal(root)
    builder.force_sign(folder, key)
    return folder


def plan_of(run: builder.RunDraft) -> dict[str, Any]:
    """Its plan, to be changed."""
    plan: dict[str, Any] = json.loads(run.plan)
    return plan


def at(hours: int) -> datetime:
    """A time of completion."""
    return builder.COMPLETED_AT + timedelta(hours=hours)
