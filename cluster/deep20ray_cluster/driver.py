"""The driver: plans a sweep into a folder or takes one up again, has its owed trials played, and seals the runs that are finished."""

import asyncio
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import deep20ray_cohorts
from deep20ray.reuse import ReusePolicy
from deep20ray_actors.config import CredentialRef
from deep20ray_artifacts.files import write_atomic
from deep20ray_cluster.archive import archive_of, read_archive
from deep20ray_cluster.breaker import Breaker
from deep20ray_cluster.budget import Budget, check_budget
from deep20ray_cluster.control import asked_of, taken_up
from deep20ray_cluster.drive import Drive
from deep20ray_cluster.errors import Interrupted, OutputError, ResultsFailed
from deep20ray_cluster.folder import Held, SweepFolder, check_unused, descendants, end_processes, hold, make_folder, open_folder
from deep20ray_cluster.journal import Journal
from deep20ray_cluster.memory import Standing, recall, standings
from deep20ray_cluster.owner import Owner
from deep20ray_cluster.plan import Plan, PlannedTrial, TrialKey, check_same, load_cohort, resolve, terms_of, with_archive
from deep20ray_cluster.price_list import load_prices
from deep20ray_cluster.progress import Progress
from deep20ray_cluster.ray_local import session_in_use, starters
from deep20ray_cluster.results import Place, check_place, copy_run, keys_withheld
from deep20ray_cluster.retuning import recorder, retuner
from deep20ray_cluster.reuse import Archive
from deep20ray_cluster.routes import credentials_of, routes_of
from deep20ray_cluster.seal import seal_run
from deep20ray_cluster.simulation import check_reach, simulator_for
from deep20ray_cluster.sweep import Sweep, parse_sweep


@dataclass(frozen=True, slots=True)
class Options:
    """How to drive: none of it changes what is played."""

    environ: MutableMapping[str, str]
    address: str | None = None
    progress: Progress = field(default_factory=Progress)
    results: str | None = None
    """Where sealed runs are copied to, instead of where the sweep file says."""
    approve: Callable[[Plan], None] = lambda _: None
    """Is shown the plan of a new sweep before anything is written; it raises to stop it."""

    def place(self, sweep: Sweep) -> Place | None:
        """Where results go, if anywhere."""
        uri = self.results or sweep.sweep.results
        return None if uri is None else Place(uri, sweep.sweep.results_private)


@dataclass(frozen=True, slots=True)
class Done:
    """How a drive ended."""

    folder: SweepFolder
    sealed: tuple[Path, ...]
    scored: int
    owed: int
    """Trials without a score that may still get one."""
    failed: int
    """Those of them whose current attempt ended by infrastructure: only ``repair`` goes on with them."""
    given_up: int
    """Trials whose attempts are used up."""
    stopped: str | None
    interrupted: bool
    budget: str | None = None
    """Which budgets are reached, in words."""
    uncopied: str | None = None
    """Why sealed runs could not be copied to where results go."""


def start(sweep: Sweep, text: str, base: Path, out: Path, options: Options) -> Done:
    """Plans a sweep into a new folder and plays it.

    Args:
        sweep: its settings; ``text`` is the file they came from, kept in the folder; ``base`` is what its paths are relative to.
        out: a folder that holds no sweep yet.

    Raises:
        UsageError, Resumable: see ``deep20ray_cluster.errors``.
    """
    cohort = load_cohort(sweep, base)
    prices_file = base / (sweep.sweep.prices_file or "")
    plan = resolve(sweep, cohort, datetime.now(UTC), load_prices(sweep, prices_file))
    check_budget(plan)
    if (place := options.place(sweep)) is not None:
        check_place(place)
    archive = None
    if sweep.sweep.reuse is ReusePolicy.ARCHIVE:
        subjects = {subject.trusted.digest for subject in cohort.subjects}
        # The plan's time is a whole second; what was signed within it is earlier all the same.
        now = datetime.fromisoformat(plan.created_at) + timedelta(milliseconds=999)
        archive = read_archive(sweep.sweep, base, terms_of(plan), subjects, now)
        plan = with_archive(plan, archive_of(archive))
    credentials = credentials_of(sweep, options.environ, here=options.address is None)
    options.approve(plan)
    folder = make_folder(out)
    with _interruptible(folder) as ctrl_c, hold(folder) as held:
        check_unused(folder)  # again: another driver may have come first
        write_atomic(folder.sweep_file, text.encode())
        if sweep.sweep.cohort not in deep20ray_cohorts.names():
            write_atomic(folder.cohort_file, (base / sweep.sweep.cohort).read_bytes())
        if sweep.sweep.prices_file is not None:
            write_atomic(folder.prices_file, prices_file.read_bytes())
        if archive is not None:
            write_atomic(folder.archive_file, archive)
        # The plan comes last: a folder with a plan has all else.
        Journal(folder.journal).close()
        write_atomic(folder.plan, plan.data)
        return _copied(_drive(plan, folder, held, credentials, options, ctrl_c), options.place(sweep))


def resume(out: Path, options: Options, *, repair: bool = False, again: bool = False) -> Done:
    """Goes on with a sweep; with ``repair`` also opens a new attempt of each trial that ended by infrastructure.

    ``again``: even if it was cancelled.

    Raises:
        PlanMismatch: the folder's sweep file resolves to another plan now.
        SweepCancelled: it was cancelled, and ``again`` isn't said.
        UsageError, Resumable: see ``deep20ray_cluster.errors``.
    """
    folder = open_folder(out)
    with _interruptible(folder) as ctrl_c:
        plan = load_plan(folder)
        credentials = credentials_of(plan.sweep, options.environ, here=options.address is None)
        with hold(folder) as held:
            taken_up(folder, again=again)
            return _copied(_drive(plan, folder, held, credentials, options, ctrl_c, repair=repair), options.place(plan.sweep))


def load_plan(folder: SweepFolder) -> Plan:
    """The plan of an existing folder, resolved again and compared.

    Raises:
        PlanMismatch, OutputError, SweepError
    """
    try:
        text, planned = folder.sweep_file.read_text(encoding="utf-8"), folder.plan.read_bytes()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise OutputError(f"{folder.root}: sweep.toml or plan.json can't be read ({reason}); restore them from a copy") from None
    sweep = parse_sweep(text, str(folder.sweep_file))
    base = folder.root
    cohort = (
        load_cohort(sweep.model_copy(update={"sweep": sweep.sweep.model_copy(update={"cohort": "cohort.toml"})}), base)
        if folder.cohort_file.exists()
        else load_cohort(sweep, base)
    )
    plan = resolve(sweep, cohort, _created(folder, planned), load_prices(sweep, folder.prices_file))
    if sweep.sweep.reuse is ReusePolicy.ARCHIVE:
        plan = with_archive(plan, _saved_archive(folder))
    check_same(planned, plan)
    return plan


def _saved_archive(folder: SweepFolder) -> Archive:
    try:
        return archive_of(folder.archive_file.read_bytes())
    except OSError as error:
        raise OutputError(f"{folder.archive_file}: can't be read ({error.strerror}); restore it from a copy") from None


def _created(folder: SweepFolder, planned: bytes) -> datetime:
    try:
        return datetime.fromisoformat(json.loads(planned)["created_at"]).astimezone(UTC)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise OutputError(f"{folder.plan}: not a plan; restore it from a copy, or start the sweep in another folder") from None


class _CtrlC:
    """Remembers Ctrl-C: Python drops a KeyboardInterrupt that is raised inside an import's callback or a finaliser."""

    def __init__(self) -> None:
        self._pressed = False

    def __call__(self, _number: int, _frame: object) -> None:
        self._pressed = True
        raise KeyboardInterrupt

    def unraisable(self, dropped: "sys.UnraisableHookArgs") -> None:
        """A dropped Ctrl-C is no news; anything else is shown as ever."""
        if dropped.exc_type is not KeyboardInterrupt:
            sys.__unraisablehook__(dropped)

    def check(self) -> None:
        """Raises what was dropped."""
        if self._pressed:
            raise KeyboardInterrupt


@contextmanager
def _interruptible(folder: SweepFolder) -> Iterator[_CtrlC]:
    """Ctrl-C outside the play: while planning, starting, stopping or sealing."""
    pressed = _CtrlC()
    handled = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, pressed) if handled else None
    shown, sys.unraisablehook = sys.unraisablehook, pressed.unraisable
    try:
        yield pressed
    except KeyboardInterrupt:
        verb = "resume" if folder.plan.exists() else "run"
        raise Interrupted(f"interrupted; go on with `deep20ray {verb}{f' {folder.root}' if verb == 'resume' else ''}`") from None
    finally:
        sys.unraisablehook = shown
        if handled:
            signal.signal(signal.SIGINT, before or signal.default_int_handler)


def _drive(
    plan: Plan,
    folder: SweepFolder,
    held: Held,
    credentials: Mapping[str, CredentialRef],
    options: Options,
    ctrl_c: _CtrlC,
    *,
    repair: bool = False,
) -> Done:
    with closing(Journal(folder.journal, new=False)) as journal:
        stand = standings((trial.key for trial in plan.trials()), journal.marks())
        budget = Budget.of(plan, journal.events())
        owed = [trial for trial in plan.trials() if _owed(stand[trial.key], repair) and (budget is None or budget.open(trial.run_id))]
        stopped: str | None = None
        interrupted = False
        if owed:
            stopped, interrupted = _played(plan, folder, held, journal, stand, owed, credentials, options, ctrl_c, budget, repair)
            stand = standings(stand, journal.marks())
        sealed = tuple(path for run in plan.runs if (path := seal_run(plan, run, folder, journal, stand)) is not None)
    ended = sum(each.ended for each in stand.values())
    given_up = sum(each.exhausted for each in stand.values())
    failed = sum(each.failed for each in stand.values()) - given_up
    reached = None if budget is None else budget.reached
    return Done(folder, sealed, ended, len(stand) - ended - given_up, failed, given_up, stopped, interrupted, reached)


def _copied(done: Done, place: Place | None) -> Done:
    """Copies what is sealed, now or earlier, to where results go."""
    if place is None:
        return done
    try:
        for path in done.sealed:
            copy_run(place, done.folder, path.name)
    except ResultsFailed as error:
        return replace(done, uncopied=str(error))
    return done


def _played(
    plan: Plan,
    folder: SweepFolder,
    held: Held,
    journal: Journal,
    stand: Mapping[TrialKey, Standing],
    owed: list[PlannedTrial],
    credentials: Mapping[str, CredentialRef],
    options: Options,
    ctrl_c: _CtrlC,
    budget: Budget | None,
    repair: bool,
) -> tuple[str | None, bool]:
    """Plays what is owed. Returns why it stopped early, if it did, and whether by Ctrl-C."""
    before = frozenset(descendants())

    def started() -> None:
        # Only what this drive started: a program that uses the driver has children of its own.
        held.record([process for process in descendants() if process not in before])

    with ExitStack() as stack:
        stack.enter_context(keys_withheld(options.environ))
        simulator = stack.enter_context(simulator_for(plan.sweep))
        # Where Ray died, its agents live on.
        leftovers = stack.enter_context(ExitStack())
        session = stack.enter_context(session_in_use(options.environ, options.address, plan.sweep.sweep.workers_per_role))
        if session.own:
            leftovers.callback(lambda: end_processes(held.processes))
        started()
        check_reach(plan.sweep, session)
        start = starters(routes_of(plan, credentials, simulator()), session.cluster)
        answers = Owner.of(plan, journal.events)
        drive = Drive(
            plan,
            journal,
            stand,
            partial(recall, journal),
            options.progress,
            start,
            started,
            answers,
            Breaker() if repair else Breaker.of(journal.marks()),
            budget,
            record=recorder(folder.gates),
            retuned=retuner(folder.sweep_file, options.progress.say),
            asked=asked_of(folder, options.progress.say),
        )
        ctrl_c.check()
        return asyncio.run(drive.play(owed, session))


def _owed(standing: Standing, repair: bool) -> bool:
    if standing.ended or standing.exhausted:
        return False
    return repair or not standing.failed
