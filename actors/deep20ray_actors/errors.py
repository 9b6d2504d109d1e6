"""What the actors raise on purpose, before any call is made. Once calls run, only outcomes come back.

Deep20RayError
├── RouteRefused            a route that is not this role's, or can't be called
└── CredentialUnusable      a credential file that is missing, empty, or open to others
"""

from deep20ray.errors import UsageError


class RouteRefused(UsageError):
    """An actor was given a route that is not its own role's, or that no request can be built for."""


class CredentialUnusable(UsageError):
    """A credential reference that yields no key."""
