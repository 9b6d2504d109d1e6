"""The commands that stop a sweep from another shell. They call nothing and need no Ray."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deep20ray_cluster.extra import needs_run_extra
from deep20ray_cluster.terminal import one_line

if TYPE_CHECKING:
    from deep20ray_cluster.control import Verb

SweepDir = Annotated[Path, typer.Argument(help="The folder that `run` wrote.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]


def pause(folder: SweepDir, dry_run: DryRun = False) -> None:
    """Ask the driver at work in a folder to stop: no new call starts, those in flight end and are journalled. `resume` goes on."""
    _ask(folder, "pause", dry_run)


def cancel(folder: SweepDir, dry_run: DryRun = False) -> None:
    """Stop a sweep for good, with a driver at work or without. What is journalled stays; only `resume --again` takes it up."""
    _ask(folder, "cancel", dry_run)


def _ask(folder: Path, verb: "Verb", dry_run: bool) -> None:
    needs_run_extra()
    from deep20ray_cluster.control import ask

    print(one_line(ask(folder, verb, datetime.now(UTC), dry_run=dry_run)))
