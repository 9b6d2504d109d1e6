"""Sealing: one journal gives one folder, byte for byte; what it says of lost and superseded calls; and that it signs and verifies."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deep20ray_cohorts
from deep20ray.answers import Role
from deep20ray_actors.outcomes import Outcome, QuotaExhausted, ServerFault
from deep20ray_artifacts import tables
from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.signing import new_key, sign_run
from deep20ray_artifacts.statement import PRIVATE_NAMES
from deep20ray_artifacts.verify import verify_run
from deep20ray_cluster import seal
from deep20ray_cluster.errors import SealFailed
from deep20ray_cluster.folder import SweepFolder, make_folder
from deep20ray_cluster.journal import Event, Journal
from deep20ray_cluster.memory import Memory
from deep20ray_cluster.owner import Owner
from deep20ray_cluster.plan import Plan, PlannedTrial, research_policy, resolve
from deep20ray_cluster.pools import Lost
from deep20ray_cluster.sweep import parse_sweep
from deep20ray_cluster.table import Infrastructure, Parked, Table

from .fakes import GAME, Desk, MemoryJournal, counter, script
from .worlds import sweep_text

PRICES = '\n[prices."guesser"]\ninput_usd_per_mtok = 100\noutput_usd_per_mtok = 1000\n'
TEXT = sweep_text("http://127.0.0.1:9", subjects=("T-0001", "T-0004"), rounds=2) + PRICES
MS = 1_764_547_200_000


def make_plan() -> Plan:
    return resolve(parse_sweep(TEXT, "s.toml"), deep20ray_cohorts.load("core-1.1"), datetime(2026, 12, 1, tzinfo=UTC))


async def play(plan: Plan, trial: PlannedTrial, desk: Desk, journal: MemoryJournal, tick: Any) -> None:
    own = [event for event in journal.events if event.trial == trial.id]
    policy, known, answers = research_policy(plan.sweep), Memory.of(own), Owner.of(plan, tuple)
    table = Table(trial, plan.edition, plan.runs[0].seed, "g0", policy, desk, journal, known, tick, answers)  # type: ignore[arg-type]
    await table.play()


def note(journal: MemoryJournal, trial: PlannedTrial, attempt: int, turn: int, kind: Any, call: str, at: int, body: dict[str, Any]) -> None:
    journal.note(Event(trial.run_id, trial.id, attempt, turn, kind, call, 0, at, body))


async def journal_of(plan: Plan, path: Path, *, give_up: bool = False, desk: Any = Desk) -> Journal:
    """Four trials: one plain, one with a lost call, one repaired, one plain; with ``give_up`` the last one fails three times."""
    memory, ticks, good = MemoryJournal(), counter(), script(GAME)

    def tick() -> int:
        return MS + next_(ticks)

    def next_(source: Any) -> int:
        return int(source())

    first, second, third, fourth = plan.runs[0].trials
    await play(plan, first, desk(good), memory, tick)
    losses = iter([True])
    flaky: Any = lambda role, message, seed: Lost() if role is Role.ORACLE and next(losses, False) else good(role, message, seed)  # noqa: E731
    await play(plan, second, desk(flaky), memory, tick)

    def bad(role: Role, message: Any, seed: int | None) -> Outcome:
        return ServerFault("500") if role is Role.JUDGE else good(role, message, seed)

    for trial, attempts in ((third, 1), *(((fourth, 3),) if give_up else ())):
        for attempt in range(1, attempts + 1):
            with pytest.raises(Infrastructure) as failed:
                await play(plan, trial, desk(bad), memory, tick)
            failure = failed.value
            body = {"cause": failure.cause, "detail": "private detail"}
            note(memory, trial, attempt, failure.turn, "infrastructure", failure.call, tick(), body)
            if attempt < 3:
                note(memory, trial, attempt + 1, 0, "attempt", "", tick(), {"of": 3})
    await play(plan, third, desk(good), memory, tick)
    if not give_up:
        await play(plan, fourth, desk(good), memory, tick)
    journal = Journal(path)
    await journal.append(*memory.events)
    return journal


def memories(plan: Plan, journal: Journal) -> Any:
    events = list(journal.events())
    return {trial.key: Memory.of(event for event in events if (event.run, event.trial) == trial.key) for trial in plan.trials()}


def sealed(plan: Plan, folder: SweepFolder, journal: Journal) -> Path:
    path = seal.seal_run(plan, plan.runs[0], folder, journal, memories(plan, journal))
    assert path is not None
    return path


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    with pa.memory_map(str(folder / f"{name}.arrow")) as source:
        found: list[dict[str, Any]] = pa.ipc.open_file(source).read_all().to_pylist()
        return found


async def test_one_journal_gives_the_same_bytes_twice(tmp_path: Path) -> None:
    plan = make_plan()
    journal = await journal_of(plan, tmp_path / "journal.sqlite")
    one, two = make_folder(tmp_path / "one"), make_folder(tmp_path / "two")
    first, second = sealed(plan, one, journal), sealed(plan, two, journal)
    assert files(first) == files(second)
    assert len(files(first)) == 14
    assert files(one.root / "private") == files(two.root / "private")
    assert set(files(one.root / "private")) == {f"{plan.runs[0].id}/{name}" for name in PRIVATE_NAMES}
    assert sealed(plan, one, journal) == first, "sealed once"
    journal.close()


async def test_states_and_costs(tmp_path: Path) -> None:
    plan = make_plan()
    journal = await journal_of(plan, tmp_path / "journal.sqlite")
    folder = sealed(plan, make_folder(tmp_path / "out"), journal)
    journal.close()
    usage, audits, repairs, trials = (rows(folder, name) for name in ("usage", "audits", "repairs", "trials"))
    states = Counter((row["call"], row["state"]) for row in usage)
    assert states["judge", "superseded"] == 1
    assert sum(count for (_, state), count in states.items() if state == "lost") == 1
    assert [(row["call"], row["state"]) for row in audits] == [(row["call"], row["state"]) for row in usage]
    assert Counter(row["state"] for row in repairs) == {"lost": 1, "superseded": 1}
    per_trial = Counter((row["trial_id"], row["call"]) for row in usage if row["state"] == "terminal")
    whole = {"guesser": 7, "search": 4, "oracle": 4, "reviewer": 3, "judge": 2, "validator": 2}
    for trial in trials:
        assert {call: per_trial[trial["trial_id"], call] for call in whole} == whole
        assert (trial["score"], trial["status"]) == (6, "scored")
        # 10 input and 5 output tokens a call, by the fakes' audit.
        assert trial["guesser_cost_microusd"] == 7 * (10 * 100 + 5 * 1000)
        assert trial["cost_microusd"] is None, "the support roles have no price"
    assert sorted(trial["attempts"] for trial in trials) == [1, 1, 1, 2]


async def test_nothing_private_is_public(tmp_path: Path) -> None:
    plan = make_plan()
    journal = await journal_of(plan, tmp_path / "journal.sqlite")
    folder = sealed(plan, make_folder(tmp_path / "out"), journal)
    journal.close()
    public = b"".join(files(folder).values())
    assert b"private detail" not in public
    assert b'"statement":"private"' not in public
    assert b"127.0.0.1" not in public


@pytest.mark.parametrize("give_up", [False, True])
async def test_what_is_sealed_signs_and_verifies(tmp_path: Path, give_up: bool) -> None:
    plan = make_plan()
    journal = await journal_of(plan, tmp_path / "journal.sqlite", give_up=give_up)
    folder = sealed(plan, make_folder(tmp_path / "out"), journal)
    journal.close()
    new_key(tmp_path, "mine")
    sign_run(folder, tmp_path / "mine.key")
    verified = verify_run(folder, [load_public(tmp_path / "mine.pub")])
    predicate = verified.statement.predicate
    assert predicate.status == ("incomplete" if give_up else "complete")
    assert (predicate.completed_at is None) == give_up
    assert predicate.counts.trials == 4
    if give_up:
        failed = next(row for row in rows(folder, "trials") if row["status"] == "infrastructure")
        assert (failed["cause"], failed["attempts"], failed["score"]) == ("serverfault", 3, None)


async def test_a_run_with_owed_trials_is_not_sealed(tmp_path: Path) -> None:
    plan = make_plan()
    journal = await journal_of(plan, tmp_path / "journal.sqlite")
    some = memories(plan, journal)
    some[plan.runs[0].trials[3].key].ended = False
    folder = make_folder(tmp_path / "out")
    assert seal.seal_run(plan, plan.runs[0], folder, journal, some) is None
    assert not (folder.root / "runs").exists()
    journal.close()


async def test_a_seal_that_fails_leaves_nothing_half_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan()
    journal = await journal_of(plan, tmp_path / "journal.sqlite")
    folder = make_folder(tmp_path / "out")
    real, written = tables.write_table, []

    def failing(table: Any, path: Path) -> Any:
        written.append(path)
        if len(written) == 5:
            raise OSError(28, "No space left on device")
        return real(table, path)

    with monkeypatch.context() as patch:
        patch.setattr(tables, "write_table", failing)
        with pytest.raises(SealFailed, match=r"No space left on device.*resume"):
            sealed(plan, folder, journal)
    assert list((folder.root / "runs").iterdir()) == []
    assert sealed(plan, folder, journal).is_dir()
    journal.close()


async def test_stops_and_losses_leave_a_run_that_signs_and_has_its_costs(tmp_path: Path) -> None:
    plan = make_plan()
    memory, ticks, good = MemoryJournal(), counter(), script(GAME)

    def tick() -> int:
        return MS + ticks()

    first, *others = plan.runs[0].trials
    for _ in range(3):  # three times without credit, each time gone on from
        with pytest.raises(Parked):
            await play(
                plan,
                first,
                Desk(lambda role, message, seed: QuotaExhausted("none") if seed is not None else good(role, message, seed)),
                memory,
                tick,
            )
    losses = iter([True, True])
    flaky: Any = lambda role, message, seed: Lost() if role is Role.GUESSER and next(losses, False) else good(role, message, seed)  # noqa: E731
    await play(plan, first, Desk(flaky), memory, tick)
    for trial in others:
        await play(plan, trial, Desk(good), memory, tick)
    journal = Journal(tmp_path / "journal.sqlite")
    await journal.append(*memory.events)
    folder = sealed(plan, make_folder(tmp_path / "out"), journal)
    journal.close()
    new_key(tmp_path, "mine")
    sign_run(folder, tmp_path / "mine.key")
    verify_run(folder, [load_public(tmp_path / "mine.pub")])
    repairs = rows(folder, "repairs")
    assert [(row["ask"], row["state"], row["cause"]) for row in repairs] == [
        *((ask, "superseded", "quotaexhausted") for ask in range(3)),
        *((ask, "lost", "lost") for ask in (3, 4)),
    ]
    row = next(each for each in rows(folder, "trials") if each["trial_id"] == first.id)
    assert row["guesser_cost_microusd"] == 7 * (10 * 100 + 5 * 1000)
