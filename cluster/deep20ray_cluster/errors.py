"""What the driver refuses, and the exit code of each.

Deep20RayError
├── UsageError (2)
│   ├── SweepError          a sweep file, a setting or a credential that can't be used
│   ├── PlanMismatch        the folder's plan is not what its sweep file resolves to
│   ├── RunLocked           another driver holds the folder
│   ├── SweepCancelled      the sweep was cancelled, and a resume didn't say --again
│   └── OutputError         a folder or file that can't be read or written
├── JournalError (2)        the journal can't be read: not a database, a broken chain
├── Resumable (3)           stopped before the end; ``resume`` goes on
│   ├── JournalFull         the journal can't take more (a full disk)
│   ├── SealFailed          everything is journalled, but the artifacts could not be written
│   ├── ResultsFailed       a sealed run could not be copied to where results go
│   └── ClusterFailed       Ray didn't start or can't be reached, or its workers were lost more often than the budget allows
└── Interrupted (130)       Ctrl-C
"""

from deep20ray.errors import Deep20RayError, UsageError


class SweepError(UsageError):
    """A sweep file, a setting or a credential that can't be used."""


class PlanMismatch(UsageError):
    """The folder's plan is not what its sweep file resolves to."""


class RunLocked(UsageError):
    """Another driver holds the folder."""


class SweepCancelled(UsageError):
    """The sweep was cancelled, and a resume didn't say that it should go on all the same."""


class OutputError(UsageError):
    """A folder or file that can't be read or written."""


class JournalError(Deep20RayError):
    """The journal can't be read: not a database, or a broken chain."""

    exit_code = 2


class Resumable(Deep20RayError):
    """The sweep stopped before its end; ``resume`` goes on from the last journalled reply."""

    exit_code = 3


class JournalFull(Resumable):
    """The journal can't take more."""


class SealFailed(Resumable):
    """Everything is journalled, but the artifacts could not be written."""


class ResultsFailed(Resumable):
    """A sealed run could not be copied to where results go; it is whole here."""


class ClusterFailed(Resumable):
    """Ray didn't start or can't be reached, or its workers were lost more often than the budget allows."""


class Interrupted(Deep20RayError):
    """Ctrl-C: what was in flight is journalled."""

    exit_code = 130
