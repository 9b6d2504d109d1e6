"""Worlds of signed runs; the common site is built once."""

from pathlib import Path

import pytest

from tests.publisher.sites import World, hostile_draft, incomplete_draft, scripted_draft


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An empty world."""
    return World.at(tmp_path)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A preview of four complete runs, one of them scripted, and an incomplete one."""
    world = World.at(tmp_path_factory.mktemp("publisher"))
    world.add("alpha", hours=10)
    world.add("beta", {"T-0001": [5, 3, 4], "T-0008": [12, 41, 20]}, hours=11)
    world.add("gamma", {"T-0001": [9, 9, 9], "T-0008": [41, 41, 41]}, hours=12, cost_microusd=None)
    world.add_draft(scripted_draft())
    world.add_draft(incomplete_draft())
    return world.build()


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A preview of one hostile run."""
    world = World.at(tmp_path_factory.mktemp("hostile"))
    world.add_draft(hostile_draft())
    return world.build()
