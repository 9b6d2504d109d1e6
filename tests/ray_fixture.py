"""A local Ray that listens on loopback and calls nobody, for the few tests that need real actors."""

import os
from collections.abc import Iterator

import pytest

from deep20ray_cluster.ray_local import ray_session


@pytest.fixture(scope="session")
def quiet_ray() -> Iterator[None]:
    """One Ray for the whole test session, however many conftests import this: each of them has a fixture of its own."""
    import ray

    if ray.is_initialized():
        yield
        return
    with ray_session(os.environ):
        yield
