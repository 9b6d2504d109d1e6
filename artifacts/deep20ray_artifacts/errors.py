"""What artifacts refuse, one class per boundary crossed.

Deep20RayError
├── UsageError (2)
│   ├── TrustRefused        a trust file that can't be used, or a key that is named twice
│   ├── KeyRefused          a key file that can't be used, or would be overwritten
│   └── WriteFailed         a folder or file that can't be written (permissions, a full disk)
├── InvalidRecord (1)       a caller's mistake: rows or facts that fit no public table or statement
└── VerificationError (4)
    ├── FolderRefused       an entry that is missing, unlisted, linked, too large or no regular file
    ├── EnvelopeRefused     an attestation that is no strict DSSE envelope
    ├── SignatureRefused    no valid signature by a key that may sign this run
    ├── StatementRefused    signed bytes that are no statement of this kind, or name another run
    ├── DocumentRefused     a signed document, such as a contract, that is none of its kind
    ├── CatalogBroken       a catalog that is older than one seen before, forgets a run or has another for it
    ├── ContentRefused      a file that isn't the signed one
    ├── ArchiveRefused      a private archive that isn't the one that the statement commits to
    ├── TableRefused        Arrow bytes outside the one accepted form
    └── RecordRefused       tables that contradict each other, the statement or the rules of the game
"""

from deep20ray.errors import Deep20RayError, UsageError


class KeyRefused(UsageError):
    """A key file that can't be used, or would be overwritten."""


class TrustRefused(UsageError):
    """A trust file that can't be used, or a key that is named twice."""


class WriteFailed(UsageError):
    """A folder or file that can't be written."""


class InvalidRecord(Deep20RayError):
    """A caller's mistake: rows or facts that fit no public table or statement."""


class VerificationError(Deep20RayError):
    """A run that must not be trusted. The message says what, where, and what to do."""

    exit_code = 4


class FolderRefused(VerificationError):
    """An entry that is missing, unlisted, linked, too large or no regular file."""


class EnvelopeRefused(VerificationError):
    """An attestation that is no strict DSSE envelope."""


class SignatureRefused(VerificationError):
    """No valid signature by a key that may sign this run."""


class StatementRefused(VerificationError):
    """Signed bytes that are no statement of this kind, or name another run."""


class DocumentRefused(VerificationError):
    """A signed document, such as a contract, that is none of its kind."""


class CatalogBroken(VerificationError):
    """A catalog that is older than one seen before, forgets a run or has another for it."""


class ContentRefused(VerificationError):
    """A file that isn't the signed one."""


class ArchiveRefused(VerificationError):
    """A private archive that isn't the one that the statement commits to."""


class TableRefused(VerificationError):
    """Arrow bytes outside the one accepted form."""


class RecordRefused(VerificationError):
    """Tables that contradict each other, the statement or the rules of the game."""
