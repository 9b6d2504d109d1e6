"""Keys and runs for the tests of artifacts."""

from pathlib import Path

import pytest

from deep20ray_artifacts.keys import TrustedKey, load_public
from deep20ray_artifacts.signing import NewKey, new_key


@pytest.fixture
def key(tmp_path: Path) -> NewKey:
    """A lasting key."""
    return new_key(tmp_path / "keys", "signer")


@pytest.fixture
def trusted(key: NewKey) -> list[TrustedKey]:
    """What a reader who trusts it passes in."""
    return [load_public(key.public)]
