"""Credentials: a reference becomes a key here, inside the process that uses it. Errors name the file, never its content."""

import stat
from pathlib import Path
from typing import assert_never

from deep20ray_actors.config import CredentialRef, FileCredential, LiteralCredential
from deep20ray_actors.errors import CredentialUnusable

_MAX_BYTES = 8192


def read(reference: CredentialRef) -> str | None:
    """The key, or None where none is configured (then no Authorization header is sent).

    Raises:
        CredentialUnusable: no such file, a file that group or others can read, or content that can't be a key.
    """
    match reference:
        case None:
            return None
        case LiteralCredential(value):
            return _checked(value, "the credential given")
        case FileCredential(path):
            return _checked(_content(Path(path)), path)
        case _:
            assert_never(reference)


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & 0o077:
                raise CredentialUnusable(f"{path}: others may read this key (mode {mode:04o}); run chmod 600 on it")
            return file.read(_MAX_BYTES).decode("ascii")
    except OSError as error:
        raise CredentialUnusable(f"{path}: can't be read ({error.strerror}); give the path of a file that holds the key alone") from None
    except UnicodeDecodeError:
        raise CredentialUnusable(f"{path}: not a key; the file must hold the key alone") from None


def _checked(value: str, where: str) -> str:
    key = value.strip()
    # A space or control character would change the header's meaning, or end it.
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise CredentialUnusable(f"{where}: not a key; it must be one line of printable ASCII without spaces")
    return key
