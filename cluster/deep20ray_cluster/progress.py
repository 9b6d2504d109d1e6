"""Live progress: one line per model and a footer. On a terminal it redraws; elsewhere it prints a plain line now and then."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table as RichTable
from rich.text import Text

from deep20ray_cluster.line import Line
from deep20ray_cluster.memory import Standing
from deep20ray_cluster.plan import Plan, PlannedTrial, TrialKey

if TYPE_CHECKING:
    from deep20ray_cluster.table import Table


class Board:
    """Counters that the driver moves and the progress display reads."""

    def __init__(self, plan: Plan, standings: Mapping[TrialKey, Standing], line: Line) -> None:
        self.plan = plan
        self.line = line
        self.done: Counter[str] = Counter()
        self.causes: Counter[str] = Counter()
        self.tables: dict[TrialKey, tuple[PlannedTrial, Table]] = {}
        for run in plan.runs:
            self.done[run.id] = sum(standings[trial.key].ended for trial in run.trials)

    def playing(self, trial: PlannedTrial, table: "Table") -> None:
        """A trial has begun or goes on."""
        self.tables[trial.key] = (trial, table)

    def left(self, trial: PlannedTrial) -> None:
        """A trial isn't in play any more."""
        self.tables.pop(trial.key, None)

    def scored(self, trial: PlannedTrial) -> None:
        """A trial has its score."""
        self.done[trial.run_id] += 1

    def failed(self, cause: str) -> None:
        """An attempt ended by infrastructure."""
        self.causes[cause] += 1

    def rows(self) -> list[tuple[str, int, int, int, str]]:
        """Per model: name, done, planned, in play, what they wait for."""
        result = []
        for run in self.plan.runs:
            waits = Counter(table.waits_for[1] for trial, table in self.tables.values() if trial.run_id == run.id)
            what = ", ".join(f"{call} {count}" for call, count in waits.most_common(3))
            result.append((run.name, self.done[run.id], len(run.trials), sum(waits.values()), what))
        return result

    def footer(self) -> str:
        """One line over all models."""
        done, planned = sum(self.done.values()), sum(len(run.trials) for run in self.plan.runs)
        text = f"{done}/{planned} trials, {self.line.calls} calls, {self.line.in_flight} in flight, {self.line.throttled} throttled"
        if self.causes:
            text += ", infrastructure: " + ", ".join(f"{cause} {count}" for cause, count in self.causes.most_common())
        return text + (f", stopping: {self.line.stopping}" if self.line.stopping else "")


@dataclass(frozen=True, slots=True)
class Progress:
    """How progress is shown: on stderr; ``mode`` is auto, plain or none."""

    mode: str = "none"
    console: Console = field(default_factory=lambda: Console(stderr=True))
    plain_seconds: float = 10.0

    def say(self, text: str) -> None:
        """One line, now."""
        self.console.print(Text(f"deep20ray: {text}"), soft_wrap=True)

    @contextmanager
    def showing(self, board: Board) -> Iterator[None]:
        """Shows the board while the block runs. Call it inside the running loop."""
        if self.mode == "none":
            yield
            return
        live = self.mode == "auto" and self.console.is_terminal
        task = asyncio.create_task(self._live(board) if live else self._plain(board))
        try:
            yield
        finally:
            task.cancel()

    async def _live(self, board: Board) -> None:
        with Live(console=self.console, auto_refresh=False, transient=True) as display:
            while True:
                display.update(_drawn(board), refresh=True)
                await asyncio.sleep(0.25)

    async def _plain(self, board: Board) -> None:
        while True:
            self.console.print(Text(board.footer()))
            await asyncio.sleep(self.plain_seconds)


def _drawn(board: Board) -> Group:
    table = RichTable(box=None, pad_edge=False)
    for column in ("model", "done", "in play", "waiting for"):
        table.add_column(column, justify="left" if column in ("model", "waiting for") else "right")
    for name, done, planned, playing, what in board.rows():
        table.add_row(Text(name), f"{done}/{planned}", str(playing), what)
    return Group(table, Text(board.footer(), style="dim"))
