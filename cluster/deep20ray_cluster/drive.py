"""One drive: the owed trials of a sweep, played at tables that share pools and gates, until all is played or something stops it.

Replies go to the journal. What it remembers of a trial is what the journal holds when the trial begins, and is dropped when it ends: of
the others it keeps ids and where they stand. It starts no process but through its pools, and seals nothing.
"""

import asyncio
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from deep20ray.answers import Role
from deep20ray.errors import Deep20RayError
from deep20ray_cluster.breaker import BREAKER, Breaker
from deep20ray_cluster.budget import Budget, Withheld
from deep20ray_cluster.errors import ClusterFailed, JournalError
from deep20ray_cluster.gates import Clock, Gate, Sleep
from deep20ray_cluster.journal import Event, Journal
from deep20ray_cluster.limits import Change
from deep20ray_cluster.line import Line, RunDesk
from deep20ray_cluster.memory import MAX_ATTEMPTS, Memory, Standing
from deep20ray_cluster.owner import Answers
from deep20ray_cluster.plan import Plan, PlannedTrial, TrialKey, research_policy
from deep20ray_cluster.pools import Handle, Pool
from deep20ray_cluster.progress import Board, Progress
from deep20ray_cluster.ray_local import Session
from deep20ray_cluster.routes import account_of, guesser_route, limits_of, seconds_of, weigher
from deep20ray_cluster.sweep import Sweep
from deep20ray_cluster.table import Draining, Infrastructure, Parked, Table


class Drive:
    """One drive's tables, pools and gates."""

    def __init__(
        self,
        plan: Plan,
        journal: Journal,
        standings: Mapping[TrialKey, Standing],
        recall: Callable[[TrialKey], Memory],
        progress: Progress,
        start: Mapping[Role, Callable[[], Handle]],
        started: Callable[[], None],
        answers: Answers,
        breaker: Breaker,
        budget: Budget | None = None,
        *,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        record: Callable[[Change], None] = lambda _: None,
        retuned: Callable[[], Sweep | None] = lambda: None,
        asked: Callable[[], str | None] = lambda: None,
    ) -> None:
        """``recall`` reads what the journal remembers of a trial, in a thread. ``clock`` and ``sleep`` are the gates', ``record`` is told
        what changes at them, and ``retuned`` gives other settings of theirs, if there are any; ``asked`` says why the drive should
        stop, if anybody asked for it."""
        self._plan = plan
        self._journal = journal
        self._standings = standings
        self._recall = recall
        self._progress = progress
        self._pools = {role: Pool(role.value, starter, started=started) for role, starter in start.items()}
        accounts = account_of(plan.sweep)
        gates = {name: Gate(name, limits, clock=clock, sleep=sleep, record=record) for name, limits in limits_of(plan.sweep).items()}
        self._line = Line(self._pools, gates, accounts, seconds_of(plan.sweep), budget, weigher(plan))
        self._retuned = retuned
        self._answers = answers
        self._breaker = breaker
        self._asked = asked
        self._broken: ClusterFailed | JournalError | None = None
        self._interrupted = False
        self._runs = {run.id: (run, guesser_route(index)) for index, run in enumerate(plan.runs)}
        self._research = research_policy(plan.sweep)
        self._board = Board(plan, standings, self._line)

    async def play(self, owed: list[PlannedTrial], session: Session) -> tuple[str | None, bool]:
        """Plays the trials. Returns why it stopped early, if it did, and whether by Ctrl-C.

        Raises:
            Resumable: see ``deep20ray_cluster.errors``.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._interrupt, asyncio.current_task())
        watch = asyncio.create_task(self._watch(session))
        try:
            for pool in self._pools.values():
                pool.open(session.workers)
            # Those in the middle of an answer first: they take it up before anyone can ask for the same.
            waiting = deque(sorted(owed, key=lambda trial: not self._standings[trial.key].midway))
            with self._progress.showing(self._board):
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self._plan.sweep.sweep.max_trials, len(waiting))):
                        group.create_task(self._seat(waiting))
            if self._broken is not None:
                raise self._broken
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
        except ExceptionGroup as group_error:
            raise _first(group_error) from None
        finally:
            watch.cancel()
            await asyncio.gather(*(pool.close() for pool in self._pools.values()))
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
        return self._line.stopped, self._interrupted

    async def _watch(self, session: Session) -> None:
        """Fails all pools when Ray itself has died: its actors and pending calls may not notice. Until then, sees to other limits."""
        while (trouble := session.trouble()) is None:
            if (sweep := self._retuned()) is not None:
                self._line.retune(limits_of(sweep))
            if (reason := self._asked()) is not None and self._line.stopping is None:
                self._line.stop(reason)
                self._progress.say(f"{reason}: no new call starts, {self._line.in_flight} are in flight")
            await asyncio.sleep(1)
        for pool in self._pools.values():
            pool.fail(ClusterFailed(f"{trouble}, then resume"))

    def _interrupt(self, task: "asyncio.Task[Any] | None") -> None:
        """The first Ctrl-C stops new calls and waits for those in flight; the second ends at once, and they count as lost."""
        if self._interrupted:
            if task is not None:
                task.cancel()
            return
        self._interrupted = True
        self._line.stop("interrupted")
        self._progress.say(f"stopping: {self._line.in_flight} calls are in flight; press Ctrl-C again to end at once and lose them")

    async def _seat(self, waiting: "deque[PlannedTrial]") -> None:
        """Plays one trial after another: as many seats as trials may be in play, and no task for one that only waits."""
        while waiting:
            await self._trial(waiting.popleft())

    async def _remembered(self, key: TrialKey) -> Memory:
        return await asyncio.to_thread(self._recall, key) if self._standings[key].begun else Memory()

    async def _trial(self, trial: PlannedTrial) -> None:
        if not self._line.open(trial.run_id):
            return
        try:
            memory = await self._remembered(trial.key)
        except JournalError as error:
            self._broken = self._broken or error
            self._line.stop(str(error))
            return
        self._open(trial, memory)
        run, route = self._runs[trial.run_id]
        desk = RunDesk(self._line, run.id)
        edition, answers = self._plan.edition, self._answers
        table = Table(trial, edition, run.seed, route, self._research, desk, self._journal, memory, _now_ms, answers)
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
        except Withheld as withheld:
            self._withheld(trial, memory, table, withheld)
        except Draining:
            pass
        except ClusterFailed as error:
            # One role is gone; what the others were asked for is paid, so it is waited for.
            self._broken = self._broken or error
            self._line.stop(str(error))
        else:
            self._breaker.ended(trial.run_id)
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

    def _withheld(self, trial: PlannedTrial, memory: Memory, table: Table, withheld: Withheld) -> None:
        """Notes a call that no budget has room for; the sweep's own stops it, a model's only that model's trials."""
        turn, call = table.waits_for
        body = {"worst_microusd": withheld.amount}
        self._journal.note(Event(trial.run_id, trial.id, memory.attempt, turn, "withheld", call, 0, _now_ms(), body))
        if withheld.run is None:
            self._line.stop(withheld.reason)
        else:
            self._progress.say(f"{withheld.reason}; the other models play on")

    async def _failed(self, trial: PlannedTrial, memory: Memory, failure: Infrastructure) -> None:
        body = {"cause": failure.cause, "detail": failure.detail}
        await self._journal.append(
            Event(trial.run_id, trial.id, memory.attempt, failure.turn, "infrastructure", failure.call, 0, _now_ms(), body)
        )
        self._board.failed(failure.cause)
        last = f"the last one at its {failure.call} call: {failure.cause} {failure.detail}".rstrip()
        match self._breaker.failed(trial.run_id, failure.call):
            case "sweep":
                self._line.stop(f"{BREAKER} trials in a row ended by infrastructure at other roles than the Guesser, {last}")
            case "run":
                run, _ = self._runs[trial.run_id]
                reason = f"{BREAKER} trials in a row of {run.contestant.id} ended by infrastructure, {last}"
                self._line.close(run.id, reason)
                if len(self._runs) > 1:
                    self._progress.say(f"{reason}; the other models play on")
            case None:
                pass


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that a user should see first out of a group."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            return _first(error)
        if isinstance(error, Deep20RayError):
            return error
    return group.exceptions[0]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
