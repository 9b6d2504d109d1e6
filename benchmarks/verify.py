"""What verifying costs: one run, verified and loaded, beside hashing its files and reading their tables raw.

    python -m benchmarks.verify [--turns 1000000]

Raw is what any reader pays who wants the tables and knows that the bytes are the signed ones: SHA-256 over every file, and Arrow's own
reader over every table. Verified adds all else: the folder, the signature, layout and schema, full validation, every trial played
through the rules again, and all tables held against each other. Both read the same files, warm, in turn; the best of each counts.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from deep20ray.canonical import Digest, sha256
from deep20ray.editions import EDITION_1_1
from deep20ray.seeds import trial_id, variation_token
from deep20ray.subjects import Cohort, protocol_version
from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.limits import Limits
from deep20ray_artifacts.rowdigest import REDACTABLE
from deep20ray_artifacts.schemas import TABLES, schema_digest
from deep20ray_artifacts.signing import load_private, new_key, sign_payload
from deep20ray_artifacts.statement import RunFacts, RunLimits, build_statement
from deep20ray_artifacts.tables import ARROW_MEDIA_TYPE, BATCH_ROWS, FileEntry, build_table, write_plan
from deep20ray_artifacts.verify import ATTESTATION_NAME, verify_run
from tests.artifacts import builder

GOAL = 1.5
ROUNDS = 1000
LIMITS = Limits(attestation_bytes=1 << 20, file_bytes=8 << 30, run_bytes=32 << 30, table_rows=1 << 26, record_batches=100_000)


def made(root: Path, turns: int, key: Path) -> Path:
    """A signed run of about so many turns: one failed trial of 40 questions and a guess, as often as it takes."""
    one = builder.draft(scores={"T-0001": [EDITION_1_1.failure_score]}, simulated=True)
    each = len(one.rows["turns"])
    trials = -(-turns // each)
    rounds = min(trials, ROUNDS)
    subjects = tuple(builder.make_subject(f"T-{number:04}") for number in range(1, -(-trials // rounds) + 1))
    cohort = Cohort("bench", subjects)
    protocol = protocol_version(EDITION_1_1, cohort)
    seed = one.facts["run_seed"]
    places = [(subject.id, round_) for subject in subjects for round_ in range(1, rounds + 1)]
    ids = pa.array([trial_id(protocol, seed, subject, round_) for subject, round_ in places])
    tables = {name: build_table(name, rows) for name, rows in one.rows.items()}
    for name in ("trials", "turns", "evidence", "audits", "usage"):
        tables[name] = _tiled(tables[name], ids)
    tables["trials"] = _set(tables["trials"], "subject_id", [subject for subject, _ in places])
    tables["trials"] = _set(tables["trials"], "round", [round_ for _, round_ in places])
    tables["trials"] = _set(tables["trials"], "variation", [variation_token(seed, round_) for _, round_ in places])
    one.rows["subjects"] = [builder.subject_row(subject) for subject in subjects]
    one.rows["trials"] = [{"trial_id": id_, "subject_id": s, "round": r} for id_, (s, r) in zip(ids.to_pylist(), places, strict=True)]
    run = one.rows["run"][0] | {"cohort": cohort.id, "cohort_sha256": cohort.digest, "protocol_version": protocol}
    run |= {"planned_trials": len(places), "scored_trials": len(places)}
    one.rows["run"] = [run]
    one.facts |= {"cohort_sha256": cohort.digest, "protocol_version": protocol}
    one.facts["limits"] = RunLimits(
        questions=EDITION_1_1.question_limit, failure_score=EDITION_1_1.failure_score, rounds=rounds, subjects=len(subjects)
    )
    plan = builder.plan_of(one.facts, one.rows, cohort)
    run["plan_sha256"] = one.facts["plan_sha256"] = sha256(plan)
    tables |= {name: build_table(name, one.rows[name]) for name in ("run", "subjects", "roles")}
    folder = root / str(one.facts["run_id"])
    folder.mkdir()
    entries = [write_plan(plan, folder)] + [_written(name, table, folder) for name, table in tables.items()]
    facts = RunFacts.model_validate({**one.facts, "redactable": {name: Digest("0" * 64) for name in REDACTABLE}})
    (folder / ATTESTATION_NAME).write_bytes(sign_payload(build_statement(facts, entries), load_private(key)))
    return folder


def _tiled(table: pa.Table, ids: pa.Array) -> pa.Table:
    """The table once per id, the column ``trial_id`` changed to it."""
    index = pa.array([row for _ in range(len(ids)) for row in range(table.num_rows)], pa.int32())
    owner = pa.array([n for n in range(len(ids)) for _ in range(table.num_rows)], pa.int32())
    return _set(table.take(index), "trial_id", ids.take(owner))


def _set(table: pa.Table, name: str, values: Any) -> pa.Table:
    field = table.schema.field(name)
    column = values if isinstance(values, pa.Array) else pa.array(values, field.type)
    return table.set_column(table.schema.get_field_index(name), field, column)


def _written(name: str, table: pa.Table, folder: Path) -> FileEntry:
    path = folder / f"{name}.arrow"
    with pa.ipc.new_file(path, TABLES[name]) as writer:
        for batch in table.combine_chunks().to_batches(max_chunksize=BATCH_ROWS):
            writer.write_batch(batch)
    data = path.read_bytes()
    return FileEntry(path.name, len(data), table.num_rows, sha256(data), schema_digest(TABLES[name]), ARROW_MEDIA_TYPE)


def raw(folder: Path) -> Mapping[str, pa.Table]:
    """Hashes every file and reads every table, unchecked."""
    tables = {}
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        sha256(data)
        if path.suffix == ".arrow":
            with pa.ipc.open_file(pa.BufferReader(data)) as reader:
                tables[path.stem] = reader.read_all()
    return tables


def best(action: Callable[[], object], times: int) -> float:
    """Seconds of the fastest of so many goes."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        found.append(time.perf_counter() - began)
    return min(found)


def main() -> int:
    """The command: 0 if the goal is met, 1 if it isn't."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=1)
    asked = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="bench-verify-"))
    try:
        key = new_key(root / "keys", "bench", throwaway=True)
        folder = made(root, asked.turns, key.private)
        trusted = [load_public(key.public)]
        size = sum(path.stat().st_size for path in folder.iterdir())
        plain = best(lambda: raw(folder), asked.times)
        whole = best(lambda: verify_run(folder, trusted, LIMITS), asked.times)
    finally:
        shutil.rmtree(root)
    print(f"bench-verify: {asked.turns} turns, {size / 1e6:.0f} MB: raw {plain:.2f} s, verified and loaded {whole:.2f} s")
    ratio = whole / plain
    print(f"bench-verify: ratio {ratio:.2f}, goal {GOAL}")
    return 0 if ratio <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
