"""Earlier answers out of signed runs, verified once, when the sweep is planned, and kept in its folder by digest.

Only verified tables are read. A run whose terms aren't the sweep's is listed with what differs, and gives nothing; so is an answer about
another subject, one that was itself reused, and one that was given after the cutoff.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from deep20ray.actions import Ask
from deep20ray.answers import Policy, Token
from deep20ray.canonical import Digest, canonical, digest_of, sha256
from deep20ray.editions import edition
from deep20ray.reuse import ADJUDICATORS, Adjudicator, Terms, answer_key
from deep20ray_artifacts.schemas import ADJUDICATION_CALLS
from deep20ray_artifacts.statement import time_text
from deep20ray_artifacts.trust import load_trust
from deep20ray_artifacts.verify import SealedRun, VerifiedRun, verify_run
from deep20ray_cluster.errors import OutputError, SweepError
from deep20ray_cluster.prices import total
from deep20ray_cluster.reuse import FACTS, Archive, ArchivedRun, Record, Source
from deep20ray_cluster.sweep import SweepHead

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ITEM = ("number", "url", "excerpt", "kind", "verified", "text_sha256")


def read_archive(head: SweepHead, base: Path, terms: Terms, subjects: Collection[Digest], now: datetime) -> bytes:
    """Verifies the runs that a sweep names and writes down what of them it can use; see ``archive_of``.

    Args:
        base: what the paths are relative to.
        subjects: digests of the sweep's trusted subjects.
        now: the cutoff, where the sweep names none.

    Raises:
        VerificationError, KeyRefused: a run or a key that must not be used.
        SweepError: a run is named twice, or its plan doesn't say how it searched.
    """
    keys = load_trust([base / path for path in head.reuse_trust])
    cutoff = (head.reuse_cutoff or now).astimezone(UTC)
    runs: dict[str, dict[str, Any]] = {}
    answers: list[dict[str, Any]] = []
    for path in head.reuse_archive:
        run = verify_run(base / path, keys)
        run_id = run.statement.predicate.run_id
        if run_id in runs:
            raise SweepError(f"sweep.reuse_archive: run {run_id} is named twice; name it once")
        theirs = terms_of_run(run, path)
        differs = list(_differences(terms.parts, theirs.parts))
        found = [] if differs else list(_answers(run, theirs, subjects, cutoff))
        answers += found
        runs[run_id] = {
            "run_id": run_id,
            "statement_sha256": run.statement_sha256,
            "keyid": run.keyid,
            "answers": len(found),
            "differs": differs,
        }
    answers.sort(key=lambda answer: (answer["at"], answer["run"], answer["trial"], answer["turn"]))
    return canonical({"archive_schema": 1, "cutoff": time_text(cutoff), "runs": [runs[name] for name in sorted(runs)], "answers": answers})


def archive_of(data: bytes) -> Archive:
    """What ``read_archive`` wrote.

    Raises:
        OutputError: it is something else.
    """
    try:
        value = json.loads(data)
        runs = tuple(ArchivedRun(**{**run, "differs": tuple(run["differs"])}) for run in value["runs"])
        answers = tuple((Digest(answer["key"]), _record(answer)) for answer in value["answers"])
        return Archive(value["cutoff"], runs, answers, sha256(data))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise OutputError("archive.json: not what the sweep was planned with; restore it from a copy") from None


def _record(answer: Mapping[str, Any]) -> Record:
    source = Source(answer["run"], answer["trial"], answer["turn"], answer["at"])
    return Record(source, Token(answer["token"]), canonical(answer["facts"]), answer["cost_microusd"], archived=True)


def terms_of_run(run: SealedRun, path: str) -> Terms:
    """A checked run's own terms. Raises SweepError where its plan doesn't say how it searched."""
    predicate, plan = run.statement.predicate, json.loads(run.plan)
    if not isinstance(plan.get("search"), dict):
        raise SweepError(f"sweep.reuse_archive: {path}: its plan doesn't say how it searched; leave the run out")
    roles = {row["role"]: Adjudicator(row["config_sha256"], row["prompt_sha256"]) for row in run.tables["roles"].to_pylist()}
    return Terms(
        edition(predicate.edition).tokens,
        Policy(predicate.policy),
        {role: roles[role.value] for role in ADJUDICATORS},
        digest_of(plan["search"]),
        run.tables["run"]["fetch_policy"][0].as_py(),
    )


def _differences(ours: Mapping[str, Any], theirs: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """The names of the parts that differ, such as ``adjudicators.judge.prompt_sha256``."""
    for name, value in ours.items():
        if isinstance(value, dict):
            yield from _differences(value, theirs[name], f"{within}{name}.")
        elif value != theirs[name]:
            yield within + name


def _answers(run: VerifiedRun, terms: Terms, subjects: Collection[Digest], cutoff: datetime) -> Iterator[dict[str, Any]]:
    """Its fresh answers about those subjects, of turns that closed by the cutoff."""
    digests = {row["subject_id"]: Digest(row["subject_sha256"]) for row in run.tables["subjects"].to_pylist()}
    subject_of = {row["trial_id"]: digests[row["subject_id"]] for row in run.tables["trials"].to_pylist()}
    evidence: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in run.tables["evidence"].to_pylist():
        item = {name: row[name] for name in _ITEM} | {"retrieved_at": _ms(row["retrieved_at"])}
        evidence[row["trial_id"], row["turn"]].append(item)
    costs: dict[tuple[str, int], list[int | None]] = defaultdict(list)
    for row in run.tables["usage"].to_pylist():
        if row["state"] == "terminal" and row["call"] in ADJUDICATION_CALLS:
            costs[row["trial_id"], row["turn"]].append(row["cost_microusd"])
    # What was redacted is no answer to anyone's question any more.
    gone = {(field.trial_id, field.turn) for field in (run.redaction.redacted if run.redaction else ())}
    for row in run.tables["turns"].to_pylist():
        if (row["trial_id"], row["turn"]) in gone:
            continue
        subject = subject_of[row["trial_id"]]
        fresh = row["kind"] == "ask" and row["source_run"] is None and not Ask(row["question"]).degenerate
        if not fresh or subject not in subjects or row["completed_at"] > cutoff:
            continue
        at = (row["trial_id"], row["turn"])
        said = {name: row[name] for name in FACTS if row.get(name) is not None}
        yield {
            "key": answer_key(subject, row["question"], terms),
            "run": run.statement.predicate.run_id,
            "trial": row["trial_id"],
            "turn": row["turn"],
            "at": _ms(row["completed_at"]),
            "token": row["final_token"],
            "facts": said | {"evidence": sorted(evidence[at], key=lambda item: item["number"])},
            "cost_microusd": total(costs[at]) if costs[at] else None,
        }


def _ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)
