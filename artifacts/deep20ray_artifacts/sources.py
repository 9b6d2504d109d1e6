"""Reused answers in a run's tables: the summary by source, and whether the turns that claim a source may have it.

Pure, over rows. What another run's turn really said can't be seen from here; what the run's own tables tell of it must agree. Times
aren't compared: the order of turns is the journal's, and a host's clock may jump.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from deep20ray.reuse import ReusePolicy, folded
from deep20ray_artifacts.errors import RecordRefused
from deep20ray_artifacts.replay import Row
from deep20ray_artifacts.schemas import ADJUDICATION_CALLS
from deep20ray_artifacts.statement import RUN_ID

_SOURCE = ("source_run", "source_trial", "source_turn", "source_at", "source_policy")
_ANSWER = ("final_token", "path", "oracle", "oracle_basis", "reviewer", "reviewer_basis", "judge", "judge_basis")
_ITEM = ("number", "url", "excerpt", "kind", "verified", "retrieved_at", "text_sha256")
_Turn = tuple[str, int]


def source_rows(turns: Sequence[Row], statements: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows of table ``sources`` for a run's turns. ``statements`` has the statement digest of each archived run."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in turns:
        if row.get("source_run") is not None:
            groups[row["source_run"]].append(row)
    return [_summary(run, hits, statements) for run, hits in sorted(groups.items())]


def _summary(run: str, hits: Sequence[Row], statements: Mapping[str, str]) -> dict[str, Any]:
    policy = ReusePolicy(hits[0]["source_policy"])
    costs = [row["source_cost_microusd"] for row in hits]
    return {
        "source_run": run,
        "source_policy": (ReusePolicy.RUN if policy is ReusePolicy.TRIAL else policy).value,
        "statement_sha256": statements.get(run) if policy is ReusePolicy.ARCHIVE else None,
        "answers": len({(row["source_trial"], row["source_turn"]) for row in hits}),
        "hits": len(hits),
        "disputed": sum(row["disputed"] for row in hits),
        "cost_microusd": None if None in costs else sum(costs),
        "first_at": min(row["source_at"] for row in hits),
        "last_at": max(row["source_at"] for row in hits),
    }


def check_sources(run: Row, trials: Mapping[str, Row], rows: Mapping[str, Sequence[Row]]) -> None:
    """Checks every turn's source, the marks of disputed answers, the costs of answering and the summary.

    Raises:
        RecordRefused: the first contradiction.
    """
    policy = _policy(run)
    costs: dict[_Turn, list[int | None]] = defaultdict(list)
    for row in rows["usage"]:
        if row["state"] == "terminal" and row["call"] in ADJUDICATION_CALLS:
            costs[row["trial_id"], row["turn"]].append(row["cost_microusd"])
    evidence: dict[_Turn, list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows["evidence"]:
        evidence[row["trial_id"], row["turn"]].append(tuple(row[name] for name in _ITEM))
    turns = {(row["trial_id"], row["turn"]): row for row in rows["turns"]}
    own = _Own(run["run_id"], trials, turns, costs, {place: sorted(items) for place, items in evidence.items()})
    for row in rows["turns"]:
        where = f"trial {row['trial_id'][:12]}, turn {row['turn']}"
        if row["disputed"] and (policy is ReusePolicy.OFF or row["kind"] != "ask" or row["degenerate"]):
            _refuse(where, "only a question whose answer may be reused can be disputed")
        if any(row[name] is not None for name in (*_SOURCE, "source_cost_microusd")):
            _check_source(policy, row, own, where)
    _check_disputed(policy, trials, rows["turns"])
    _check_costs(trials, rows["turns"], costs)
    _check_summary(rows["turns"], rows["sources"])


class _Own:
    """What a run's tables say of its own turns."""

    def __init__(
        self,
        run: str,
        trials: Mapping[str, Row],
        turns: Mapping[_Turn, Row],
        costs: Mapping[_Turn, list[int | None]],
        evidence: Mapping[_Turn, list[tuple[Any, ...]]],
    ) -> None:
        self.run, self.trials, self.turns, self.costs, self.evidence = run, trials, turns, costs, evidence


def _policy(run: Row) -> ReusePolicy:
    try:
        return ReusePolicy(run["reuse_policy"])
    except ValueError:
        _refuse("run.arrow", f"there is no reuse policy {run['reuse_policy']!r}")


def _check_source(policy: ReusePolicy, row: Row, own: _Own, where: str) -> None:
    """A turn that says where its answer comes from."""
    if row["kind"] != "ask" or row["degenerate"]:
        _refuse(where, "only the answer to a question can be reused, and a degenerate one's never")
    if any(row[name] is None for name in _SOURCE):
        _refuse(where, "its source isn't whole: run, trial, turn, time and policy")
    if not RUN_ID.fullmatch(row["source_run"]) or row["source_turn"] < 1 or len(row["source_trial"]) != 64:
        _refuse(where, "its source is no turn of a run")
    if own.costs.get((row["trial_id"], row["turn"])):
        _refuse(where, "its answer is reused, and yet adjudicators were called")
    inside = row["source_run"] == own.run
    same_trial = inside and row["source_trial"] == row["trial_id"]
    needed = ("trial",) if same_trial else ("run",) if inside else ("sweep", "archive")
    if row["source_policy"] not in needed or not policy.reaches(ReusePolicy(row["source_policy"])):
        _refuse(where, f"a run with reuse policy {policy} can't have an answer from there")
    if inside:
        _check_own_source(row, own, where)


def _check_own_source(row: Row, own: _Own, where: str) -> None:
    """The source is one of the run's own turns: it must say the same."""
    place = (row["source_trial"], row["source_turn"])
    source = own.turns.get(place)
    if source is None or source["kind"] != "ask" or source["source_run"] is not None:
        _refuse(where, "its source is no question that was answered afresh")
    one, other = own.trials[row["trial_id"]]["subject_id"], own.trials[place[0]]["subject_id"]
    if one != other or folded(source["question"]) != folded(row["question"]):
        _refuse(where, "its source answers another question")
    if any(row[name] != source[name] for name in _ANSWER) or own.evidence.get(place) != own.evidence.get((row["trial_id"], row["turn"])):
        _refuse(where, "its answer or evidence isn't its source's")
    if row["source_at"] != source["completed_at"] or (place[0] == row["trial_id"] and place[1] >= row["turn"]):
        _refuse(where, "its source isn't an earlier turn")
    if row["source_cost_microusd"] != _total(own.costs.get(place, [])):
        _refuse(where, "its source did not cost that")


def _check_disputed(policy: ReusePolicy, trials: Mapping[str, Row], turns: Sequence[Row]) -> None:
    """Answers that disagree within the run are marked, every one."""
    if policy is ReusePolicy.OFF:
        return
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in turns:
        if row["kind"] == "ask" and not row["degenerate"]:
            scope = row["trial_id"] if policy is ReusePolicy.TRIAL else trials[row["trial_id"]]["subject_id"]
            groups[scope, folded(row["question"])].append(row)
    for rows in groups.values():
        if len({row["final_token"] for row in rows}) > 1 and not all(row["disputed"] for row in rows):
            _refuse(f"trial {rows[0]['trial_id'][:12]}, turn {rows[0]['turn']}", "its question has other answers, and it isn't disputed")


def _check_costs(trials: Mapping[str, Row], turns: Sequence[Row], costs: Mapping[_Turn, list[int | None]]) -> None:
    by_trial: dict[str, list[int | None]] = defaultdict(list)
    for (trial_id, _), parts in costs.items():
        by_trial[trial_id] += parts
    hits: dict[str, list[Row]] = defaultdict(list)
    for row in turns:
        if row["source_run"] is not None:
            hits[row["trial_id"]].append(row)
    for key, trial in trials.items():
        reused = [row["source_cost_microusd"] for row in hits[key]]
        expected = {
            "reused_answers": len(reused),
            "adjudication_cost_microusd": _total(by_trial[key]),
            "fresh_adjudication_cost_microusd": _total([*by_trial[key], *reused]),
        }
        for name, value in expected.items():
            if trial[name] != value:
                _refuse(f"trial {key[:12]}", f"{name} is {trial[name]} where its turns and calls give {value}")


def _check_summary(turns: Sequence[Row], rows: Sequence[Row]) -> None:
    archived = {row["source_run"]: row["statement_sha256"] for row in rows if row["statement_sha256"] is not None}
    if not all(len(digest) == 64 and set(digest) <= set("0123456789abcdef") for digest in archived.values()):
        _refuse("sources.arrow", "a statement is named by its digest")
    policies: dict[str, set[str]] = defaultdict(set)
    for row in turns:
        if row["source_run"] is not None:
            policies[row["source_run"]].add(row["source_policy"])
    if any({"sweep", "archive"} <= found for found in policies.values()):
        _refuse("sources.arrow", "a run is of the sweep or of the archive, not of both")
    if list(rows) != source_rows(turns, archived) or any(
        (row["source_policy"] == "archive") != (row["statement_sha256"] is not None) for row in rows
    ):
        _refuse("sources.arrow", "its summary isn't that of the turns")


def _total(parts: Sequence[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _refuse(where: str, why: str) -> NoReturn:
    raise RecordRefused(f"{where}: {why}; the run must be sealed again")
