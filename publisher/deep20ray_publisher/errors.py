"""What the publisher refuses. Each message names the run or folder and says what to do.

Deep20RayError
├── UsageError (2)
│   ├── InputMissing     a folder of runs that isn't there or holds none
│   └── OutRefused       an output folder that isn't ours to replace, or can't be written
└── PublicationRefused (4)
    ├── NotOfficial      runs that no release contract covers
    ├── SelectionTie     two newest runs of one model
    ├── AuditFailed      a run whose record contradicts itself, or lacks a call
    ├── RunMissing       a run of the catalog that isn't there
    ├── SiteFaulty       a built site with broken links, foreign files or the like
    └── CatalogRefused   runs that can't stand on one site together
"""

from deep20ray.errors import Deep20RayError, UsageError


class InputMissing(UsageError):
    """A folder of runs that isn't there or holds none."""


class OutRefused(UsageError):
    """An output folder that isn't ours to replace, or can't be written."""


class PublicationRefused(Deep20RayError):
    """Verified runs that must not be published as asked."""

    exit_code = 4


class NotOfficial(PublicationRefused):
    """Runs that no release contract covers."""


class SelectionTie(PublicationRefused):
    """Two newest runs of one model: nothing but chance could choose."""


class AuditFailed(PublicationRefused):
    """A run whose record contradicts itself, or lacks a call."""


class RunMissing(PublicationRefused):
    """A run of the catalog that isn't there."""


class CatalogRefused(PublicationRefused):
    """Runs that can't stand on one site together."""


class SiteFaulty(PublicationRefused):
    """A built site with broken links, foreign files or the like."""
