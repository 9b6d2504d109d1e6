"""The driver: resolves a sweep, plays its trials, seals its runs. It keeps ids and counters; replies go to the journal."""

import asyncio
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deep20ray_actors.config import CredentialRef
from deep20ray_artifacts.files import write_atomic

from deep20ray.answers import Role
from deep20ray.seeds import TrialId
from deep20ray_cluster.errors import ClusterFailed, Interrupted, OutputError, Resumable, SweepError
from deep20ray_cluster.folder import SweepFolder, descendants, hold, make_folder, open_folder
from deep20ray_cluster.gates import Gate
from deep20ray_cluster.journal import Event, Journal
from deep20ray_cluster.line import Line
from deep20ray_cluster.memory import MAX_ATTEMPTS, Memory
from deep20ray_cluster.plan import Plan, PlannedTrial, check_same, load_cohort, resolve
from deep20ray_cluster.pools import Handle, Pool
from deep20ray_cluster.progress import Board, Progress
from deep20ray_cluster.ray_local import ray_session, starters
from deep20ray_cluster.routes import SEARCH_GATE, account_of, credentials_of, guesser_route, routes_of
from deep20ray_cluster.seal import seal_run
from deep20ray_cluster.simulation import simulator_for
from deep20ray_cluster.sweep import Sweep, parse_sweep
from deep20ray_cluster.table import Draining, Infrastructure, Parked, Table

BREAKER = 5
"""Trials in a row, in journal order, that end by infrastructure before the sweep stops."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to drive: none of it changes what is played."""

    environ: MutableMapping[str, str]
    address: str | None = None
    progress: Progress = field(default_factory=Progress)


@dataclass(frozen=True, slots=True)
class Done:
    """How a drive ended."""

    folder: SweepFolder
    sealed: tuple[Path, ...]
    scored: int
    owed: int
    """Trials without a score."""
    stopped: str | None
    interrupted: bool


def start(sweep: Sweep, text: str, base: Path, out: Path, options: Options) -> Done:
    """Plans a sweep into a new folder and plays it.

    Args:
        sweep: its settings; ``text`` is the file they came from, kept in the folder; ``base`` is what its paths are relative to.
        out: a folder that holds no sweep yet.

    Raises:
        UsageError, Resumable: see ``deep20ray_cluster.errors``.
    """
    cohort = load_cohort(sweep, base)
    plan = resolve(sweep, cohort, datetime.now(UTC))
    credentials = credentials_of(sweep, options.environ)
    folder = make_folder(out)
    write_atomic(folder.sweep_file, text.encode())
    if (base / sweep.sweep.cohort).is_file():
        write_atomic(folder.cohort_file, (base / sweep.sweep.cohort).read_bytes())
    write_atomic(folder.plan, plan.data)
    return _drive(plan, folder, credentials, options)


def resume(out: Path, options: Options, *, repair: bool = False) -> Done:
    """Goes on with a sweep; with ``repair`` also opens a new attempt of each trial that ended by infrastructure.

    Raises:
        PlanMismatch: the folder's sweep file resolves to another plan now.
        UsageError, Resumable: see ``deep20ray_cluster.errors``.
    """
    folder = open_folder(out)
    plan = load_plan(folder)
    return _drive(plan, folder, credentials_of(plan.sweep, options.environ), options, repair=repair)


def load_plan(folder: SweepFolder) -> Plan:
    """The plan of an existing folder, resolved again and compared.

    Raises:
        PlanMismatch, OutputError, SweepError
    """
    try:
        text, planned = folder.sweep_file.read_text(encoding="utf-8"), folder.plan.read_bytes()
    except (OSError, UnicodeDecodeError) as error:
        raise OutputError(f"{folder.root}: sweep.toml or plan.json can't be read ({error})") from None
    sweep = parse_sweep(text, str(folder.sweep_file))
    base = folder.root
    cohort = (
        load_cohort(sweep.model_copy(update={"sweep": sweep.sweep.model_copy(update={"cohort": "cohort.toml"})}), base)
        if folder.cohort_file.exists()
        else load_cohort(sweep, base)
    )
    plan = resolve(sweep, cohort, _created(planned))
    check_same(planned, plan)
    return plan


def _created(planned: bytes) -> datetime:
    import json

    try:
        return datetime.fromisoformat(json.loads(planned)["created_at"])
    except (ValueError, KeyError, TypeError):
        raise OutputError("plan.json: not a plan; restore it from a copy") from None


def _drive(plan: Plan, folder: SweepFolder, credentials: Mapping[str, CredentialRef], options: Options, *, repair: bool = False) -> Done:
    with ExitStack() as stack:
        held = stack.enter_context(hold(folder))
        journal = Journal(folder.journal)
        stack.callback(journal.close)
        memories = _memories(plan, journal)
        owed = [trial for trial in plan.trials() if _owed(memories[trial.id], repair)]
        stopped: str | None = None
        interrupted = False
        if owed:
            simulator = stack.enter_context(simulator_for(plan.sweep))
            stack.enter_context(_session(options))
            drive = _Drive(
                plan,
                journal,
                memories,
                options.progress,
                starters(routes_of(plan, credentials, simulator)),
                lambda: held.record(descendants()),
            )
            stopped, interrupted = asyncio.run(drive.play(owed))
            memories = _memories(plan, journal)
        sealed = tuple(path for run in plan.runs if (path := seal_run(plan, run, folder, journal, memories)) is not None)
    missing = sum(not memory.ended for memory in memories.values())
    return Done(folder, sealed, len(memories) - missing, missing, stopped, interrupted)


@contextmanager
def _session(options: Options) -> Iterator[None]:
    import ray

    if ray.is_initialized():  # several sweeps within one Ray
        yield
        return
    with ray_session(options.environ, options.address):
        yield


def _memories(plan: Plan, journal: Journal) -> dict[TrialId, Memory]:
    events: dict[str, list[Event]] = defaultdict(list)
    for event in journal.events():
        events[event.trial].append(event)
    return {trial.id: Memory.of(events[trial.id]) for trial in plan.trials()}


def _owed(memory: Memory, repair: bool) -> bool:
    if memory.ended or memory.exhausted:
        return False
    return memory.failed is None or repair


class _Drive:
    """One drive's tables, pools and gates."""

    def __init__(
        self,
        plan: Plan,
        journal: Journal,
        memories: dict[TrialId, Memory],
        progress: Progress,
        start: Mapping[Role, Callable[[], Handle]],
        started: Callable[[], None],
    ) -> None:
        self._plan = plan
        self._journal = journal
        self._memories = memories
        self._progress = progress
        self._pools = {role: Pool(role.value, starter, started=started) for role, starter in start.items()}
        accounts = account_of(plan.sweep)
        self._line = Line(self._pools, self._gates(), accounts)
        self._failures = 0
        self._interrupted = False
        self._runs = {run.id: (run, guesser_route(index)) for index, run in enumerate(plan.runs)}
        self._board = Board(plan, memories, self._line)

    async def play(self, owed: list[PlannedTrial]) -> tuple[str | None, bool]:
        """Plays the trials. Returns why it stopped early, if it did, and whether by Ctrl-C."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._interrupt, asyncio.current_task())
        try:
            for pool in self._pools.values():
                pool.open()
            slots = asyncio.Semaphore(self._plan.sweep.sweep.max_trials)
            with self._progress.showing(self._board):
                async with asyncio.TaskGroup() as group:
                    for trial in owed:
                        group.create_task(self._trial(trial, slots))
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
        except ExceptionGroup as group_error:
            raise _first(group_error) from None
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
            await asyncio.gather(*(pool.close() for pool in self._pools.values()))
        return self._line.stopping, self._interrupted

    def _gates(self) -> dict[str, Gate]:
        gates = {
            name: Gate(
                name,
                max_concurrency=account.max_concurrency,
                requests_per_minute=account.requests_per_minute,
                clock=time.monotonic,
                sleep=asyncio.sleep,
            )
            for name, account in self._plan.sweep.accounts.items()
        }
        search = Gate(
            SEARCH_GATE,
            max_concurrency=self._plan.sweep.search.max_concurrency,
            requests_per_minute=None,
            clock=time.monotonic,
            sleep=asyncio.sleep,
        )
        return gates | {SEARCH_GATE: search}

    def _interrupt(self, task: "asyncio.Task[Any] | None") -> None:
        if self._interrupted and task is not None:
            task.cancel()
        self._interrupted = True
        self._line.stop("interrupted")

    async def _trial(self, trial: PlannedTrial, slots: asyncio.Semaphore) -> None:
        async with slots:
            if self._line.stopping is not None:
                return
            memory = self._memories[trial.id]
            self._open(trial, memory)
            run, route = self._runs[trial.run_id]
            table = Table(trial, self._plan.edition, run.seed, route, self._line, self._journal, memory, _now_ms)
            self._board.playing(trial, table)
            try:
                async with asyncio.timeout(self._plan.sweep.sweep.trial_seconds):
                    await table.play()
            except Infrastructure as failure:
                await self._failed(trial, memory, failure)
            except TimeoutError:
                await self._failed(trial, memory, Infrastructure(*table.waits_for, "trial_deadline"))
            except Parked as parked:
                self._line.stop(str(parked))
            except Draining:
                pass
            else:
                self._failures = 0
                self._board.scored(trial)
            finally:
                self._board.left(trial)

    def _open(self, trial: PlannedTrial, memory: Memory) -> None:
        """Notes what a killed driver lost, and opens the next attempt where the last one failed."""
        for event in memory.dangling:
            self._journal.note(
                Event(event.run, event.trial, event.attempt, event.turn, "lost", event.call, event.ask, _now_ms(), event.body)
            )
            memory.lose(event)
        memory.dangling = []
        if memory.failed is not None:
            memory.reopen(memory.attempt + 1)
            self._journal.note(Event(trial.run_id, trial.id, memory.attempt, 0, "attempt", "", 0, _now_ms(), {"of": MAX_ATTEMPTS}))

    async def _failed(self, trial: PlannedTrial, memory: Memory, failure: Infrastructure) -> None:
        body = {"cause": failure.cause, "detail": failure.detail}
        await self._journal.append(
            Event(trial.run_id, trial.id, memory.attempt, failure.turn, "infrastructure", failure.call, 0, _now_ms(), body)
        )
        self._failures += 1
        self._board.failed(trial, failure.cause)
        if self._failures >= BREAKER:
            self._line.stop(
                f"{BREAKER} trials in a row ended by infrastructure, the last one at its {failure.call} call: {failure.cause} {failure.detail}".rstrip()
            )


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that a user should see first out of a group."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            return _first(error)
        if isinstance(error, Resumable | ClusterFailed | SweepError | Interrupted):
            return error
    return group.exceptions[0]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
