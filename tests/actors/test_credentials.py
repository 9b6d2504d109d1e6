"""Keys come out of references; errors name the file and never the key."""

from pathlib import Path

import pytest

from deep20ray_actors.config import FileCredential, LiteralCredential
from deep20ray_actors.credentials import read
from deep20ray_actors.errors import CredentialUnusable


def key_file(folder: Path, content: bytes, mode: int = 0o600) -> FileCredential:
    path = folder / "key"
    path.write_bytes(content)
    path.chmod(mode)
    return FileCredential(str(path))


def test_references(tmp_path: Path) -> None:
    assert read(None) is None
    assert read(LiteralCredential(" abc ")) == "abc"
    assert read(key_file(tmp_path, b"abc\n")) == "abc"
    assert "abc" not in repr(LiteralCredential("abc"))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(CredentialUnusable, match="chmod 600") as caught:
        read(key_file(tmp_path, b"s3cret", mode))
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b" \n", b"s3cret s3cret", b"s3cret\r\nx: y", b"s3cret\xff"])
def test_content_that_is_no_key_is_refused_unseen(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CredentialUnusable) as caught:
        read(key_file(tmp_path, content))
    assert "s3cret" not in str(caught.value) and caught.value.__cause__ is None


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CredentialUnusable, match="nowhere"):
        read(FileCredential(str(tmp_path / "nowhere")))
