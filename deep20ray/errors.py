"""The root of every error that deep20ray raises on purpose.

Deep20RayError
├── UnknownEdition          an edition id that is not defined
├── InvalidCohort           a subject list that can't be played
├── IllegalEvent            the game was given an event that it did not ask for
├── deep20ray_actors.errors, deep20ray_artifacts.errors, deep20ray_cluster.errors, ...

Each class carries the exit code that the command line ends with, so that a message and its code are decided in one place:
0 done, 1 internal error, 2 usage or configuration, 3 incomplete but resumable, 4 verification failed, 5 budget, 130 interrupted.
"""

from typing import ClassVar


class Deep20RayError(Exception):
    """One line for the user: what is wrong, where, and what to do."""

    exit_code: ClassVar[int] = 1


class UsageError(Deep20RayError):
    """The command, a file it names or a setting is not usable."""

    exit_code = 2


class UnknownEdition(UsageError):
    """No edition has this id."""


class InvalidCohort(UsageError):
    """A subject list that can't be played."""


class IllegalEvent(Deep20RayError):
    """A caller's mistake: the game was given an event that it did not ask for."""
