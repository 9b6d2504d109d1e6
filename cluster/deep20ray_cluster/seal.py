"""Sealing: a finished run's journal becomes its public folder, its private archive and one statement over both.

Nothing else writes artifacts. The folder appears whole, by a rename, or not at all; nothing here signs. A run is finished when every
trial is scored or has used up its attempts.
"""

import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from deep20ray.canonical import canonical
from deep20ray_artifacts import statement, tables
from deep20ray_artifacts.errors import WriteFailed
from deep20ray_artifacts.files import sync_folder, write_atomic
from deep20ray_artifacts.private import EVENTS, ROUTES, write_private
from deep20ray_artifacts.rowdigest import all_rows_digests
from deep20ray_artifacts.schemas import TABLES
from deep20ray_cluster.errors import SealFailed
from deep20ray_cluster.folder import SweepFolder
from deep20ray_cluster.journal import Event, Journal, chain_of
from deep20ray_cluster.memory import Standing
from deep20ray_cluster.owner import disputed_turns
from deep20ray_cluster.plan import Plan, PlannedRun, TrialKey
from deep20ray_cluster.recorded import recorded_routes
from deep20ray_cluster.rows import run_rows

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seal_run(plan: Plan, run: PlannedRun, folder: SweepFolder, journal: Journal, standings: Mapping[TrialKey, Standing]) -> Path | None:
    """Seals one run if it is finished. Returns its folder, sealed now or earlier, or None while trials are owed.

    Raises:
        SealFailed: the artifacts can't be written; the journal still holds everything.
    """
    if not all(standings[trial.key].ended or standings[trial.key].exhausted for trial in run.trials):
        return None
    target = folder.sealed(run.id)
    if target.exists():
        return target
    events = list(journal.events(run.id))
    temporary = target.with_name(f".{run.id}.part")
    try:
        private = write_private(folder.private(run.id), private_files(plan, run, events))
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        _write_public(plan, run, events, disputed_turns(plan, run.id, journal.events()), private, temporary)
        sync_folder(temporary)
        temporary.rename(target)
        sync_folder(target.parent)
    except (OSError, WriteFailed) as error:
        shutil.rmtree(temporary, ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SealFailed(
            f"run {run.id} is played but could not be sealed ({reason}); free space, then `deep20ray resume {folder.root}`"
        ) from None
    return target


def _write_public(
    plan: Plan,
    run: PlannedRun,
    events: list[Event],
    disputed: Collection[tuple[str, int]],
    private: tuple[statement.PrivateFile, ...],
    folder: Path,
) -> None:
    digests, head = chain_of(events)
    rows: dict[str, list[dict[str, Any]]] = dict(run_rows(plan, run, events, disputed))
    rows["chain"] = [{"seq": seq, "event_sha256": digest} for seq, digest in enumerate(digests, start=1)]
    built = {name: tables.build_table(name, rows.get(name, [])) for name in TABLES}
    files = [tables.write_table(table, folder / f"{name}.arrow") for name, table in built.items()]
    files.append(tables.write_plan(plan.data, folder))
    row = rows["run"][0]
    completed = row["completed_at"]
    facts = statement.RunFacts(
        run_id=run.id,
        sweep=row["sweep"],
        edition=row["edition"],
        cohort_sha256=row["cohort_sha256"],
        protocol_version=row["protocol_version"],
        policy=row["policy"],
        plan_sha256=row["plan_sha256"],
        journal=statement.Journal(events=len(events), head=head),
        private=private,
        redactable=statement.RowDigests.model_validate(all_rows_digests(built)),
        model=statement.Model(
            id=run.contestant.id, provider=plan.sweep.accounts[run.contestant.account].kind, requested=run.contestant.model
        ),
        run_seed=run.seed,
        limits=statement.RunLimits(
            questions=plan.edition.question_limit,
            failure_score=plan.edition.failure_score,
            rounds=max(trial.round for trial in run.trials),
            subjects=len({trial.subject.id for trial in run.trials}),
        ),
        started_at=_time(row["started_at"]),
        completed_at=None if completed is None else _time(completed),
        status=row["status"],
        simulated=row["simulated"],
    )
    write_atomic(folder / "statement.json", statement.build_statement(facts, files))


def private_files(plan: Plan, run: PlannedRun, events: Sequence[Event]) -> dict[str, bytes]:
    """The files of a run's private archive: its events in full, and how each role was called."""
    lines = [canonical(asdict(event)) + b"\n" for event in events]
    return {EVENTS: b"".join(lines), ROUTES: canonical(recorded_routes(plan, run))}


def _time(milliseconds: int) -> str:
    return statement.time_text(_EPOCH + timedelta(milliseconds=milliseconds))
