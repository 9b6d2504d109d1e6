"""Fixtures of the driver's tests."""

from collections.abc import Callable

import pytest

from tests.ray_fixture import quiet_ray

from .command import Ended, inside

__all__ = ["quiet_ray"]


@pytest.fixture
def deep20ray(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """The command line within this process."""
    return lambda *words: inside(capfd, monkeypatch, *words)


@pytest.fixture
def playing(quiet_ray: None, deep20ray: Callable[..., Ended]) -> Callable[..., Ended]:
    """The command line within this process and a Ray that several tests share."""
    return lambda *words: deep20ray(*words, "--progress", "none")
