"""A run's journal events as rows of the public tables. Pure: the same events give the same rows, in the same order."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deep20ray.canonical import canonical
from deep20ray_actors.outcomes import Audit, is_fault
from deep20ray_artifacts.schemas import ADJUDICATION_CALLS, CALLS
from deep20ray_artifacts.sources import source_rows
from deep20ray_cluster.journal import Event
from deep20ray_cluster.memory import Memory
from deep20ray_cluster.plan import Plan, PlannedRun, PlannedTrial, fetch_policy, search_backend
from deep20ray_cluster.prices import total
from deep20ray_cluster.records import read_audit, read_outcome
from deep20ray_cluster.spending import is_free, known_cost

Rows = dict[str, list[dict[str, Any]]]
"""Rows by table name."""

_CALL_ORDER = {name: number for number, name in enumerate(CALLS)}
_ROLE_OF = {"queries": "oracle"}
"""The role of a call that isn't named after it."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of a trial, as far as it came."""

    key: Mapping[str, Any]
    """The columns that identify it, ``state`` included."""
    message: str
    audit: Audit | None
    outcome: str
    cause: str | None
    cost: int | None
    prompt: tuple[str, str] | None


def run_rows(plan: Plan, run: PlannedRun, events: Sequence[Event], disputed: Collection[tuple[str, int]] = ()) -> Rows:
    """All rows of one run but the chain's. ``disputed`` are the (trial, turn) whose question has answers that disagree."""
    rows: Rows = defaultdict(list)
    by_trial: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        by_trial[event.trial].append(event)
    served: dict[str, set[str]] = defaultdict(set)
    for trial in sorted(run.trials, key=lambda each: (each.subject.id, each.round)):
        calls = list(_calls(plan, run, by_trial[trial.id]))
        for call in calls:
            if call.audit is not None and call.audit.served_model is not None:
                served[_ROLE_OF.get(call.key["call"], call.key["call"])].add(call.audit.served_model)
        turns = _turn_rows(rows, trial, by_trial[trial.id], disputed)
        rows["trials"].append(_trial_row(trial, by_trial[trial.id], calls, turns))
        _call_rows(rows, calls)
    rows["subjects"] = [_subject_row(trial) for trial in _one_per_subject(run)]
    rows["roles"] = list(_role_rows(plan, run, served))
    rows["sources"] = source_rows(rows["turns"], {} if plan.archive is None else plan.archive.statements)
    rows["run"] = [_run_row(plan, run, rows["trials"])]
    return rows


def _run_row(plan: Plan, run: PlannedRun, trials: list[dict[str, Any]]) -> dict[str, Any]:
    scored = [row for row in trials if row["status"] == "scored"]
    complete = len(scored) == len(trials)
    started = [row["started_at"] for row in trials if row["started_at"] is not None]
    return {
        "run_id": run.id,
        "sweep": plan.sweep.sweep.name,
        "edition": plan.edition.id,
        "cohort": plan.cohort.id,
        "cohort_sha256": plan.cohort.digest,
        "protocol_version": plan.protocol,
        "policy": plan.policy.value,
        "run_seed": run.seed,
        "model_id": run.contestant.id,
        "model_name": run.name,
        "simulated": plan.sweep.simulated,
        "status": "complete" if complete else "incomplete",
        "planned_trials": len(trials),
        "scored_trials": len(scored),
        "started_at": min(started),
        "completed_at": max(row["completed_at"] for row in scored) if complete else None,
        "plan_sha256": plan.digest,
        "search_backend": search_backend(plan.sweep),
        "fetch_policy": fetch_policy(plan.sweep),
        "reuse_policy": plan.sweep.sweep.reuse.value,
        "software": plan.document["software"],
    }


def _role_rows(plan: Plan, run: PlannedRun, served: Mapping[str, set[str]]) -> Iterator[dict[str, Any]]:
    planned = next(entry for entry in plan.document["runs"] if entry["run_id"] == run.id)
    for role, entry in {"guesser": planned["guesser"], **plan.document["support"]}.items():
        yield {
            "role": role,
            "provider": entry["provider"],
            "requested_model": entry["requested_model"],
            "effort": entry["effort"],
            "sampling": canonical(entry["sampling"]).decode(),
            "max_output_tokens": entry["max_output_tokens"],
            "prompt_revision": entry["prompt_revision"],
            "prompt_sha256": entry["prompt_sha256"],
            "config_sha256": entry["config_sha256"],
            "served_models": sorted(served[role]),
        }


def _one_per_subject(run: PlannedRun) -> list[PlannedTrial]:
    return sorted({trial.subject.id: trial for trial in run.trials}.values(), key=lambda trial: trial.subject.id)


def _subject_row(trial: PlannedTrial) -> dict[str, Any]:
    subject = trial.subject
    return {
        "subject_id": subject.id,
        "name": subject.trusted.canonical_name,
        "aliases": list(subject.trusted.aliases),
        "description": subject.trusted.description,
        "category": subject.category,
        "reference": subject.reference,
        "subject_sha256": subject.trusted.digest,
    }


def _turn_rows(rows: Rows, trial: PlannedTrial, events: Iterable[Event], disputed: Collection[tuple[str, int]]) -> list[dict[str, Any]]:
    """Adds a trial's turns, evidence and violations; returns the turns."""
    before = len(rows["turns"])
    for event in events:
        if event.kind != "closed":
            continue
        body = event.body
        place = {"trial_id": trial.id, "turn": event.turn}
        rows["turns"].append(
            place
            | {
                "kind": body["kind"],
                "counted": body["counted"],
                "counted_questions": body["counted_questions"],
                "question": body.get("question"),
                "guess_name": body.get("name"),
                "guess_description": body.get("description"),
                "final_token": body.get("verdict") if body["kind"] == "guess" else body["token"],
                "path": body.get("path"),
                "verdict": body.get("verdict"),
                "degenerate": body.get("degenerate", False),
                "repeated": body["repeated"],
                "violation_kind": body.get("violation"),
                "disputed": (trial.id, event.turn) in disputed,
                "completed_at": event.at,
            }
            | {f"source_{name}": value for name, value in body.get("reused", {}).items()}
            | {column: body.get(column) for role in ("oracle", "reviewer", "judge") for column in (role, f"{role}_basis")}
        )
        rows["evidence"] += [place | item for item in body.get("evidence", ())]
        if body["kind"] == "violation":
            text = {"kind": body["violation"], "counted": body["counted"], "finish_reason": body["finish_reason"], "text": body["text"]}
            rows["violations"].append(place | text)
    return rows["turns"][before:]


def _trial_row(trial: PlannedTrial, events: list[Event], calls: list[_Call], turns: list[dict[str, Any]]) -> dict[str, Any]:
    ended = next((event for event in events if event.kind == "ended"), None)
    memory_cause = next((event.body["cause"] for event in reversed(events) if event.kind == "infrastructure"), None)
    guesses = [turn for turn in turns if turn["kind"] == "guess"]
    asks = [turn for turn in turns if turn["kind"] == "ask"]
    violations = [turn for turn in turns if turn["kind"] == "violation"]
    kept = [call for call in calls if call.key["state"] == "terminal"]
    answering = [call.cost for call in kept if call.key["call"] in ADJUDICATION_CALLS]
    reused = [turn for turn in asks if "source_run" in turn]
    started = min((event.at for event in events), default=None)
    status = "scored" if ended else "infrastructure" if memory_cause and _stopped(events) else "unfinished"
    return {
        "trial_id": trial.id,
        "subject_id": trial.subject.id,
        "round": trial.round,
        "variation": trial.variation,
        "status": status,
        "success": ended.body["reason"] == "success" if ended else None,
        "terminal_reason": ended.body["reason"] if ended else None,
        "counted_questions": ended.body["counted"] if ended else None,
        "score": ended.body["score"] if ended else None,
        "turns": len(turns),
        "asks": len(asks),
        "guesses": len(guesses),
        "rejected_guesses": sum(turn["verdict"] == "NO" for turn in guesses),
        "repeated_guesses": sum(turn["repeated"] for turn in guesses),
        "violations": len(violations),
        "counted_penalties": sum(turn["counted"] for turn in violations),
        "unknown_answers": sum(turn["final_token"] == "UNKNOWN" for turn in asks),
        "degenerate_questions": sum(turn["degenerate"] for turn in asks),
        "attempts": max((event.attempt for event in events), default=0),
        "cause": None if ended else memory_cause,
        "started_at": started,
        "completed_at": ended.at if ended else None,
        "cost_microusd": total([call.cost for call in kept]),
        "guesser_cost_microusd": total([call.cost for call in kept if call.key["call"] == "guesser"]),
        "reused_answers": len(reused),
        "adjudication_cost_microusd": total(answering),
        "fresh_adjudication_cost_microusd": total([*answering, *(turn["source_cost_microusd"] for turn in reused)]),
        "duration_ms": ended.at - started if ended and started is not None else None,
    }


def _stopped(events: list[Event]) -> bool:
    """Whether the last attempt ended by infrastructure and no other was opened."""
    return Memory.of(events).failed is not None


def _calls(plan: Plan, run: PlannedRun, events: list[Event]) -> Iterator[_Call]:
    """Every call of a trial, in order, with the state that the whole journal gives it."""
    last = max((event.attempt for event in events), default=1)
    failures = {(event.attempt, event.turn, event.call): event.body["cause"] for event in events if event.kind == "infrastructure"}
    newest = {(event.turn, event.call): (event.attempt, event.ask) for event in events if event.kind == "started"}
    answered = {(event.attempt, event.turn, event.call, event.ask): event for event in events if event.kind in ("reply", "lost")}
    for event in sorted((e for e in events if e.kind == "started"), key=lambda e: (e.turn, _CALL_ORDER[e.call], e.attempt, e.ask)):
        end = answered.get((event.attempt, event.turn, event.call, event.ask))
        cause = failures.get((event.attempt, event.turn, event.call))
        if cause is None and end is not None and end.kind == "reply" and (event.attempt, event.ask) < newest[event.turn, event.call]:
            # The sweep stopped at this fault, quota or a credential say, and the call was made again in the same attempt.
            cause = end.body["type"].lower() if is_fault(read_outcome(end.body)) else None
        if cause is None and event.attempt < newest[event.turn, event.call][0]:
            # It followed from a call that a repair made anew, and so was made anew with it.
            cause = next((failures[key] for key in failures if key[1] == event.turn and key[0] >= event.attempt), None)
        again = event.attempt < last or (event.attempt, event.ask) < newest[event.turn, event.call]
        state = "lost" if end is None or end.kind == "lost" else "superseded" if cause and again else "terminal"
        audit = read_audit(end.body) if end is not None and end.kind == "reply" else None
        key = {"trial_id": event.trial, "attempt": event.attempt, "turn": event.turn, "call": event.call, "ask": event.ask, "state": state}
        outcome = "lost" if audit is None or end is None else end.body["type"].lower()
        yield _Call(key, event.body["message_sha256"], audit, outcome, cause, _cost(plan, run, event.call, end), _prompt(plan, event.call))


def _cost(plan: Plan, run: PlannedRun, call: str, end: Event | None) -> int | None:
    if end is None or end.kind != "reply":
        return 0 if is_free(plan.document, call) else None
    return known_cost(plan.document, run.id, call, read_outcome(end.body), read_audit(end.body))


def _prompt(plan: Plan, call: str) -> tuple[str, str] | None:
    prompt = next((prompt for role, prompt in plan.prompts.items() if role.value == _ROLE_OF.get(call, call)), None)
    return None if prompt is None else (prompt.revision, prompt.digest)


def _call_rows(rows: Rows, calls: list[_Call]) -> None:
    for call in calls:
        audit = call.audit
        revision, digest = call.prompt or (None, None)
        rows["audits"].append(
            {
                **call.key,
                "prompt_revision": revision,
                "prompt_sha256": digest,
                "message_sha256": call.message,
                "request_sha256": audit.request_digest if audit else None,
                "requested_model": audit.requested_model if audit else None,
                "served_model": audit.served_model if audit else None,
                "fingerprint": audit.fingerprint if audit else None,
                "seed_sent": audit.seed_sent if audit else False,
                "outcome": call.outcome,
                "wire_tries": audit.wire_tries if audit else 0,
                "latency_ms": audit.latency_ms if audit else None,
            }
        )
        usage = audit.usage if audit else None
        meters = ("input_fresh", "input_cache_read", "input_cache_write_5m", "input_cache_write_1h", "output_visible", "output_reasoning")
        rows["usage"].append(
            {
                **call.key,
                **{meter: getattr(usage, meter) if usage else None for meter in meters},
                "searches": usage.searches if usage else 0,
                "pages": usage.pages if usage else 0,
                "cost_microusd": call.cost,
            }
        )
        if call.key["state"] != "terminal":
            rows["repairs"].append({**call.key, "cause": call.cause or "lost", "cost_microusd": call.cost})
