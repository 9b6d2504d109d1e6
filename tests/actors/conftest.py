"""Fixtures of the actors' tests."""

from tests.ray_fixture import quiet_ray

__all__ = ["quiet_ray"]
