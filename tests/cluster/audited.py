"""Played worlds, sealed and audited: what the tests of audits share."""

import asyncio
from pathlib import Path

from deep20ray_artifacts.audit import AuditReport, audit_run
from deep20ray_artifacts.private import read_private
from deep20ray_artifacts.verify import check_sealed
from deep20ray_cluster.folder import SweepFolder, make_folder
from deep20ray_cluster.journal import Journal
from deep20ray_cluster.playback import playback
from deep20ray_cluster.seal import seal_run

from .blind import Played
from .test_seal import memories

Run = tuple[Path, Path]
"""A sealed folder and its private archive."""


async def sealed_of(played: Played, folder: SweepFolder) -> Run:
    """A played world, sealed."""
    assert played.plan is not None
    journal = Journal(folder.journal)
    await journal.append(*played.events)
    path = seal_run(played.plan, played.plan.runs[0], folder, journal, memories(played.plan, journal))
    journal.close()
    assert path is not None
    return path, folder.private(path.name)


def audits(run: Run) -> tuple[AuditReport, AuditReport]:
    """From public tables, and with the archive."""
    checked = check_sealed(run[0])
    files = read_private(run[1], checked.statement.predicate)
    assert files is not None
    archive = {key: call.recomputed for key, call in playback(checked, files).items()}
    return audit_run(checked), audit_run(checked, archive)


def sealing(played: Played, root: Path) -> Run:
    """As ``sealed_of``, for tests outside a loop."""
    return asyncio.run(sealed_of(played, make_folder(root)))
