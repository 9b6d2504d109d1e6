"""Whether a run's subjects are those of its cohort, as the cohort's own list has them, and its prompts revisions that are pinned here."""

import json
from typing import Any

import deep20ray_cohorts
import deep20ray_prompts
from deep20ray.subjects import Cohort
from deep20ray_artifacts.errors import RecordRefused
from deep20ray_artifacts.verify import SealedRun


def compared_cohort(run: SealedRun, named: str | None) -> str:
    """Compares a run's subjects with a list: the one that is named, or the built-in one of the run's cohort.

    Returns:
        What was compared, in words; or why nothing was.

    Raises:
        RecordRefused: the list is the run's cohort, and a subject isn't as it stands there; or the named list is another cohort.
        InvalidCohort: the named list can't be read.
    """
    name = run.tables["run"]["cohort"][0].as_py()
    wanted = run.statement.predicate.cohort_sha256
    if named is None and name not in deep20ray_cohorts.names():
        return f"{name} not compared: no built-in one; give its file with --cohort"
    cohort = deep20ray_cohorts.load(named or name)
    if cohort.digest != wanted:
        if named is not None:
            raise RecordRefused(
                f"run {run.statement.predicate.run_id}: {named} isn't the cohort that it was played with; give that one's file"
            )
        return f"{name} not compared: it was played with another revision than this version has"
    _check(cohort, run)
    return f"{name}: every subject is as its list has it"


def _check(cohort: Cohort, run: SealedRun) -> None:
    listed = {each.id: (each.category, each.reference, each.trusted.digest) for each in cohort.subjects}
    for row in run.tables["subjects"].to_pylist():
        if listed.get(row["subject_id"]) != (row["category"], row["reference"], row["subject_sha256"]):
            raise RecordRefused(f"subjects.arrow: {row['subject_id']!r} isn't as cohort {cohort.id} has it; the run must be sealed again")
    planned: Any = json.loads(run.plan).get("cohort")
    if not isinstance(planned, dict) or planned.get("sha256") != cohort.digest:
        raise RecordRefused("plan.json: its cohort isn't the statement's; the run must be sealed again")


def unpinned_prompts(run: SealedRun) -> list[str]:
    """The revisions that a run was played with and whose text this version doesn't have."""
    pinned = {(entry.revision, entry.sha256) for entry in deep20ray_prompts.index()}
    rows = run.tables["roles"].to_pylist()
    return [row["prompt_revision"] for row in rows if (row["prompt_revision"], row["prompt_sha256"]) not in pinned]
