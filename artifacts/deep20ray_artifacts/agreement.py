"""Whether a run's plan, its tables and its statement tell one story: what was planned was played, and what was spent adds up.

Pure: the plan's canonical bytes and verified tables in, nothing or a refusal out. ``records`` holds the tables against the rules of
the game; this module holds them against what was settled before the first call, and sums against their parts.
"""

from collections.abc import Mapping
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from deep20ray.answers import Role
from deep20ray.canonical import canonical, digest_of
from deep20ray.editions import edition
from deep20ray.errors import InvalidCohort
from deep20ray.subjects import Cohort, Subject, TrustedSubject, protocol_version
from deep20ray_artifacts import strict_json
from deep20ray_artifacts.errors import RecordRefused
from deep20ray_artifacts.statement import RunPredicate

_PLAN = "plan.json"
_ROLE_COLUMNS = ("provider", "requested_model", "effort", "max_output_tokens", "prompt_revision", "prompt_sha256", "config_sha256")
_CALL = ("trial_id", "attempt", "turn", "call", "ask", "state")
_METERS = ("input_fresh", "input_cache_read", "input_cache_write_5m", "input_cache_write_1h", "output_visible", "output_reasoning")


def check_agreement(predicate: RunPredicate, plan: bytes, tables: Mapping[str, pa.Table]) -> None:
    """Compares plan, statement and tables.

    Raises:
        RecordRefused: the first contradiction.
    """
    document: dict[str, Any] = strict_json.loads(plan)
    try:
        _check_settings(predicate, document, tables["run"].to_pylist()[0])
        planned = _planned_run(predicate, document)
        _check_roles(document, planned, tables)
        _check_trials(planned, tables["trials"])
        _check_cohort(predicate, document, tables["subjects"])
    except (KeyError, TypeError, AttributeError):
        _refuse(_PLAN, "it isn't the plan of a sweep")
    _check_served(tables)
    _check_spending(tables)


def _check_settings(predicate: RunPredicate, plan: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    stated = {
        "edition": (plan["edition"]["id"], predicate.edition),
        "edition's rules": (plan["edition"]["sha256"], edition(predicate.edition).digest),
        "cohort": (plan["cohort"]["id"], run["cohort"]),
        "cohort's digest": (plan["cohort"]["sha256"], predicate.cohort_sha256),
        "protocol version": (plan["protocol_version"], predicate.protocol_version),
        "policy": (plan["policy"], predicate.policy),
        "scoring": (plan["scoring"], predicate.scoring),
        "sweep": (plan["sweep"], predicate.sweep),
        "software": (plan["software"], run["software"]),
        "reuse policy": (plan["reuse_policy"], run["reuse_policy"]),
        "fetch policy": (plan["fetch_policy"], run["fetch_policy"]),
        "search back-end": (plan["search"]["backend"], run["search_backend"]),
        "word on simulation": (plan["simulated"], predicate.simulated),
    }
    for what, (planned, found) in stated.items():
        if planned != found:
            _refuse(_PLAN, f"its {what} isn't that of the statement and the tables")


def _planned_run(predicate: RunPredicate, plan: Mapping[str, Any]) -> Mapping[str, Any]:
    entries = [entry for entry in plan["runs"] if entry["run_id"] == predicate.run_id]
    if len(entries) != 1:
        _refuse(_PLAN, f"it plans this run {len(entries)} times")
    entry: Mapping[str, Any] = entries[0]
    if (entry["model_id"], entry["run_seed"]) != (predicate.model.id, predicate.run_seed):
        _refuse(_PLAN, "its model or seed isn't that of the statement")
    return entry


def _check_roles(plan: Mapping[str, Any], planned: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
    run = tables["run"].to_pylist()[0]
    if planned["model_name"] != run["model_name"]:
        _refuse(_PLAN, "its model's name isn't that of run.arrow")
    simulated = plan["search"]["backend"] == "embedded"
    for row in tables["roles"].to_pylist():
        entry = planned["guesser"] if row["role"] == Role.GUESSER else plan["support"][row["role"]]
        for name in _ROLE_COLUMNS:
            if entry[name] != row[name]:
                _refuse("roles.arrow", f"the {row['role']}'s {name} isn't what the plan gives")
        if canonical(entry["sampling"]).decode() != row["sampling"]:
            _refuse("roles.arrow", f"the {row['role']}'s sampling isn't what the plan gives")
        if digest_of({name: value for name, value in entry.items() if name != "config_sha256"}) != entry["config_sha256"]:
            _refuse(_PLAN, f"the digest of the {row['role']}'s settings isn't theirs")
        simulated = simulated or row["provider"] == "simulator"
    if simulated and not run["simulated"]:
        _refuse("run.arrow", "a part of it was simulated, and it doesn't say so")


def _check_trials(planned: Mapping[str, Any], trials: pa.Table) -> None:
    names = ("trial_id", "subject_id", "round")
    listed = [tuple(entry[name] for name in names) for entry in planned["trials"]]
    played = zip(*(trials.column(name).to_pylist() for name in names), strict=True)
    if sorted(listed) != sorted(played):
        _refuse("trials.arrow", "its trials aren't those that were planned")


def _check_cohort(predicate: RunPredicate, plan: Mapping[str, Any], subjects: pa.Table) -> None:
    """The subjects are those of the plan; where they are the whole cohort, they give its digest and the protocol version."""
    rows = {row["subject_id"]: row for row in subjects.to_pylist()}
    listed, size = plan["cohort"]["subjects"], plan["cohort"]["size"]
    if sorted(listed) != sorted(rows) or not len(rows) <= size:
        _refuse("subjects.arrow", "its subjects aren't those that were planned")
    if len(rows) < size:
        return  # a part of a cohort: nothing public gives the rest, and no release contract takes such a run
    told = {key: TrustedSubject(row["name"], tuple(row["aliases"]), row["description"]) for key, row in rows.items()}
    try:
        whole = tuple(Subject(key, rows[key]["category"], rows[key]["reference"], told[key]) for key in listed)
        cohort = Cohort(plan["cohort"]["id"], whole)
    except InvalidCohort as error:
        _refuse("subjects.arrow", str(error))
    if cohort.digest != predicate.cohort_sha256:
        _refuse("subjects.arrow", "the cohort's digest isn't that of these subjects")
    if protocol_version(edition(predicate.edition), cohort) != predicate.protocol_version:
        _refuse("statement", "the protocol version doesn't follow from the edition and these subjects")


def _check_served(tables: Mapping[str, pa.Table]) -> None:
    """Who answered for a role, by its audits, is who ``roles`` says."""
    audits = tables["audits"].select(["call", "served_model"])
    pairs = audits.filter(pc.is_valid(audits.column("served_model"))).group_by(["call", "served_model"]).aggregate([]).to_pylist()
    served: dict[str, set[str]] = {role: set() for role in Role}
    for pair in pairs:
        role = "oracle" if pair["call"] == "queries" else pair["call"]
        if role in served:
            served[role].add(pair["served_model"])
    for row in tables["roles"].to_pylist():
        if row["served_models"] != sorted(served[row["role"]]):
            _refuse("roles.arrow", f"the {row['role']}'s served models aren't those of its audits")


def _check_spending(tables: Mapping[str, pa.Table]) -> None:
    usage, trials = tables["usage"], tables["trials"]
    for name in (*_METERS, "searches", "pages", "cost_microusd"):
        least = pc.min(usage.column(name)).as_py()
        if least is not None and least < 0:
            _refuse("usage.arrow", f"a call's {name} is below zero")
    if usage.num_rows != tables["audits"].num_rows:
        _refuse("usage.arrow", "it doesn't have a row for each call of audits.arrow")
    terminal = pc.equal(usage.column("state"), "terminal")
    whole = _costs(usage.filter(terminal))
    guesser = _costs(usage.filter(pc.and_(terminal, pc.equal(usage.column("call"), Role.GUESSER.value))))
    names = ("trial_id", "cost_microusd", "guesser_cost_microusd", "started_at", "completed_at", "duration_ms")
    for row in trials.select(names).to_pylist():
        where = f"trial {row['trial_id'][:12]}"
        if row["cost_microusd"] != whole.get(row["trial_id"], 0):
            _refuse(where, f"cost_microusd is {row['cost_microusd']} where its calls give {whole.get(row['trial_id'], 0)}")
        if row["guesser_cost_microusd"] != guesser.get(row["trial_id"], 0):
            _refuse(
                where, f"guesser_cost_microusd is {row['guesser_cost_microusd']} where its calls give {guesser.get(row['trial_id'], 0)}"
            )
        _check_duration(row, where)
    again = usage.filter(pc.invert(terminal)).select([*_CALL, "cost_microusd"])
    if _as_set(again) != _as_set(tables["repairs"].select([*_CALL, "cost_microusd"])):
        _refuse("repairs.arrow", "its calls and costs aren't the superseded and lost ones of usage.arrow")


def _check_duration(row: Mapping[str, Any], where: str) -> None:
    start, end = row["started_at"], row["completed_at"]
    lasted = None if start is None or end is None else round((end - start).total_seconds() * 1000)
    if row["duration_ms"] != lasted:
        _refuse(where, f"duration_ms is {row['duration_ms']} where its times give {lasted}")


def _costs(usage: pa.Table) -> dict[str, int | None]:
    """What each trial's calls cost, None where one of them is unknown."""
    whole = pc.ScalarAggregateOptions(skip_nulls=False, min_count=0)
    sums = usage.group_by("trial_id").aggregate([("cost_microusd", "sum", whole)])
    return dict(zip(sums.column("trial_id").to_pylist(), sums.column("cost_microusd_sum").to_pylist(), strict=True))


def _as_set(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=str)


def _refuse(where: str, why: str) -> NoReturn:
    raise RecordRefused(f"{where}: {why}; the run must be sealed again")
