"""Played worlds, sealed and audited: what the tests of audits share."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path

from deep20ray.answers import Role
from deep20ray_actors.config import RouteConfig
from deep20ray_actors.messages import Message
from deep20ray_actors.outcomes import CallResult
from deep20ray_actors.requests import request_digest
from deep20ray_artifacts.audit import AuditReport, audit_run
from deep20ray_artifacts.private import read_private
from deep20ray_artifacts.verify import check_sealed
from deep20ray_cluster.folder import SweepFolder, make_folder
from deep20ray_cluster.journal import Journal
from deep20ray_cluster.playback import playback
from deep20ray_cluster.pools import Lost
from deep20ray_cluster.seal import seal_run

from .blind import Played
from .fakes import Desk
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


class HostDesk(Desk):
    """A scripted desk whose audits hold what a role's host would note: the request by the route, and the model that is asked for."""

    def __init__(self, play: Callable[..., object], routes: Mapping[Role, RouteConfig]) -> None:
        super().__init__(play)  # type: ignore[arg-type]
        self._routes = routes

    async def call(
        self, role: Role, route: str, message: Message, seed: int | None, before: Callable[[], Awaitable[None]]
    ) -> CallResult | Lost:
        result = await super().call(role, route, message, seed, before)
        if isinstance(result, Lost):
            return result
        own = self._routes[role]
        asked = None if result.audit.requested_model is None else own.model
        return replace(result, audit=replace(result.audit, request_digest=request_digest(own, message, seed), requested_model=asked))
