"""Whether a run's tables agree: with the statement, with each other by their keys, and with the rules.

Pure: verified tables in, nothing or a refusal out. Each trial's identity is computed again from what the statement signs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC
from typing import Any, NoReturn

import pyarrow as pa

from deep20ray.answers import Role
from deep20ray.canonical import Digest
from deep20ray.editions import Edition, edition
from deep20ray.errors import UnknownEdition
from deep20ray.seeds import trial_id, variation_token
from deep20ray.subjects import TrustedSubject
from deep20ray_artifacts.chain import head_of
from deep20ray_artifacts.errors import RecordRefused
from deep20ray_artifacts.replay import Row, check_trial
from deep20ray_artifacts.schemas import CALLS
from deep20ray_artifacts.sources import check_sources
from deep20ray_artifacts.statement import RunPredicate, time_text

_EVIDENCE_MAX = 3
_EXCERPT_MAX = 1000
_CALL = ("trial_id", "attempt", "turn", "call", "ask", "state")
_READ = {"audits": _CALL, "usage": (*_CALL, "cost_microusd"), "repairs": _CALL}
"""What is looked at of the tables with a row for each call; they are the largest."""


def check_records(predicate: RunPredicate, tables: Mapping[str, pa.Table]) -> None:
    """Checks all tables of a run.

    Raises:
        RecordRefused: the first contradiction.
    """
    rules = _rules(predicate)
    rows = {name: _rows(table.select(_READ[name]) if name in _READ else table) for name, table in tables.items()}
    _check_chain(predicate, rows["chain"])
    _check_roles(predicate, rows["roles"])
    subjects = _subjects(predicate, rows["subjects"])
    trials = _trials(predicate, subjects, rows["trials"])
    turns = _turns(trials, rows["turns"])
    for key, trial in trials.items():
        check_trial(rules, subjects[trial["subject_id"]]["category"], trial, turns[key])
    _check_run(predicate, rows["run"], trials)
    by_turn = {(row["trial_id"], row["turn"]): row for row in rows["turns"]}
    _check_evidence(by_turn, rows["evidence"])
    _check_violations(by_turn, rows["violations"])
    _check_calls(trials, rows)
    check_sources(rows["run"][0], trials, rows)


def _rules(predicate: RunPredicate) -> Edition:
    try:
        rules = edition(predicate.edition)
    except UnknownEdition as error:
        _refuse("statement", str(error))
    limits = predicate.limits
    if (limits.questions, limits.failure_score) != (rules.question_limit, rules.failure_score):
        _refuse("statement", f"its limits aren't those of edition {rules.id}")
    if predicate.policy not in {str(policy) for policy in rules.policies}:
        _refuse("statement", f"edition {rules.id} has no policy {predicate.policy!r}")
    return rules


def _check_chain(predicate: RunPredicate, rows: list[Row]) -> None:
    if [row["seq"] for row in rows] != list(range(1, predicate.journal.events + 1)):
        _refuse("chain.arrow", "it doesn't number the journal's events from 1 to the last")
    events = [row["event_sha256"] for row in rows]
    if not all(_is_digest(event) for event in events) or head_of(events) != predicate.journal.head:
        _refuse("chain.arrow", "its events don't lead to the journal's head")


def _check_roles(predicate: RunPredicate, rows: list[Row]) -> None:
    by_role = _unique("roles.arrow", rows, ("role",))
    if {key[0] for key in by_role} != set(Role):
        _refuse("roles.arrow", "it must list the five roles, each once")
    guesser = by_role["guesser",]
    if (guesser["provider"], guesser["requested_model"]) != (predicate.model.provider, predicate.model.requested):
        _refuse("roles.arrow", "its guesser isn't the model that the statement names")


def _subjects(predicate: RunPredicate, rows: list[Row]) -> dict[str, Row]:
    by_id = _unique("subjects.arrow", rows, ("subject_id",))
    if len(by_id) != predicate.limits.subjects:
        _refuse("subjects.arrow", f"it has {len(by_id)} subjects where the statement gives {predicate.limits.subjects}")
    for row in rows:
        trusted = TrustedSubject(row["name"], tuple(row["aliases"]), row["description"])
        if trusted.digest != row["subject_sha256"]:
            _refuse("subjects.arrow", f"the digest of {row['subject_id']!r} isn't that of its name, aliases and description")
    return {row["subject_id"]: row for row in rows}


def _trials(predicate: RunPredicate, subjects: Mapping[str, Row], rows: list[Row]) -> dict[str, Row]:
    _unique("trials.arrow", rows, ("trial_id",))
    _unique("trials.arrow", rows, ("subject_id", "round"))
    for row in rows:
        where = f"trial {row['trial_id'][:12]}"
        if row["subject_id"] not in subjects or not 1 <= row["round"] <= predicate.limits.rounds:
            _refuse(where, f"subject {row['subject_id']!r}, round {row['round']} isn't part of the run")
        identity = trial_id(Digest(predicate.protocol_version), predicate.run_seed, row["subject_id"], row["round"])
        if (row["trial_id"], row["variation"]) != (identity, variation_token(predicate.run_seed, row["round"])):
            _refuse(where, "its identity doesn't follow from protocol version, run seed, subject and round")
    if len(rows) != len(subjects) * predicate.limits.rounds:
        _refuse("trials.arrow", "it must list every subject's every round, played or not")
    return {row["trial_id"]: row for row in rows}


def _turns(trials: Mapping[str, Row], rows: list[Row]) -> dict[str, list[Row]]:
    by_trial: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["trial_id"] not in trials:
            _refuse("turns.arrow", f"it has a turn of trial {row['trial_id'][:12]!r}, which isn't part of the run")
        by_trial[row["trial_id"]].append(row)
    return by_trial


def _check_run(predicate: RunPredicate, rows: list[Row], trials: Mapping[str, Row]) -> None:
    if len(rows) != 1:
        _refuse("run.arrow", "it must have one row")
    run = rows[0]
    stated = predicate.model_dump(include=set(run)) | {"model_id": predicate.model.id}
    scored = [trial for trial in trials.values() if trial["status"] == "scored"]
    stated |= {"planned_trials": len(trials), "scored_trials": len(scored)}
    stated["status"] = "complete" if len(scored) == len(trials) else "incomplete"
    if stated["status"] != predicate.status:
        _refuse("statement", f"it says the run is {predicate.status}, but {len(scored)} of {len(trials)} trials are scored")
    for name, value in stated.items():
        found = run[name] if not name.endswith("_at") or run[name] is None else time_text(run[name].astimezone(UTC))
        if found != value:
            _refuse("run.arrow", f"{name} isn't what the statement and the trials give")
    if predicate.completed_at is not None and time_text(max(trial["completed_at"] for trial in scored)) != predicate.completed_at:
        _refuse("statement", "completed_at isn't the time of the last terminal event")


def _check_evidence(turns: Mapping[tuple[str, int], Row], rows: list[Row]) -> None:
    numbers: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row in rows:
        key = (row["trial_id"], row["turn"])
        if key not in turns or turns[key]["kind"] != "ask":
            _refuse("evidence.arrow", f"it has evidence for trial {key[0][:12]!r}, turn {key[1]}, where no question was asked")
        if row["kind"] not in {"excerpt", "summary"} or len(row["excerpt"]) > _EXCERPT_MAX or not _is_digest(row["text_sha256"]):
            _refuse("evidence.arrow", f"an item of trial {key[0][:12]}, turn {key[1]} isn't of the published form")
        numbers[key].append(row["number"])
    for key, found in numbers.items():
        if sorted(found) != list(range(1, len(found) + 1)) or len(found) > _EVIDENCE_MAX:
            _refuse("evidence.arrow", f"trial {key[0][:12]}, turn {key[1]}: items are numbered from 1 to at most {_EVIDENCE_MAX}")


def _check_violations(turns: Mapping[tuple[str, int], Row], rows: list[Row]) -> None:
    listed = {key: (row["kind"], row["counted"]) for key, row in _unique("violations.arrow", rows, ("trial_id", "turn")).items()}
    played = {key: (row["violation_kind"], row["counted"]) for key, row in turns.items() if row["kind"] == "violation"}
    if listed != played:
        _refuse("violations.arrow", "its violations aren't those of the turns")


def _check_calls(trials: Mapping[str, Row], rows: Mapping[str, list[Row]]) -> None:
    for table in ("audits", "usage", "repairs"):
        states = {"superseded", "lost"} if table == "repairs" else {"terminal", "superseded", "lost"}
        for row in rows[table]:
            trial = trials.get(row["trial_id"])
            # A call of the turn that was being played when the trial stopped has no turn row yet.
            if trial is None or not 1 <= row["turn"] <= trial["turns"] + 1 or not 1 <= row["attempt"] <= max(1, trial["attempts"]):
                _refuse(f"{table}.arrow", f"it has a call of trial {row['trial_id'][:12]!r} that belongs to no turn or attempt of the run")
            if row["call"] not in CALLS or row["state"] not in states or row["ask"] < 0:
                _refuse(f"{table}.arrow", f"a call of trial {row['trial_id'][:12]} is of an unknown kind or state")
    key = ("trial_id", "attempt", "turn", "call", "ask")
    audits, usage = (_unique(f"{name}.arrow", rows[name], key) for name in ("audits", "usage"))
    if not usage.keys() <= audits.keys():
        _refuse("usage.arrow", "it counts a call that audits.arrow doesn't have")


def _unique(where: str, rows: Iterable[Row], columns: tuple[str, ...]) -> dict[tuple[Any, ...], Row]:
    keyed = [(tuple(row[column] for column in columns), row) for row in rows]
    key, times = (Counter(key for key, _ in keyed).most_common(1) or [((), 1)])[0]
    if times > 1:
        _refuse(where, f"{', '.join(columns)} {key!r} stands {times} times")
    return dict(keyed)


def _rows(table: pa.Table) -> list[Row]:
    rows: list[Row] = table.to_pylist()
    return rows


def _is_digest(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


def _refuse(where: str, why: str) -> NoReturn:
    raise RecordRefused(f"{where}: {why}; the run must be sealed again")
