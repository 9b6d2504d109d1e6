"""What an actor says of itself: its code by a digest of the sources, and the keys that it misses."""

import shutil
from pathlib import Path

from deep20ray.answers import Role
from deep20ray_actors.config import FileCredential, LiteralCredential, SearchConfig
from deep20ray_actors.greeting import SHIPPED, code_digest, unusable_keys
from tests.actors.support import route


def test_the_digest_is_the_sources_and_not_where_they_lie(tmp_path: Path) -> None:
    for package in SHIPPED:
        shutil.copytree(package, tmp_path / package.name)
    copies = [tmp_path / package.name for package in SHIPPED]
    assert code_digest(copies) == code_digest()
    (copies[0] / "__pycache__").mkdir(exist_ok=True)
    (copies[0] / "__pycache__" / "game.pyc").write_bytes(b"compiled")
    assert code_digest(copies) == code_digest(), "compiled files are no part of it"


def test_any_other_byte_and_any_other_file_is_other_code(tmp_path: Path) -> None:
    package = tmp_path / "deep20ray"
    package.mkdir()
    (package / "game.py").write_text("LIMIT = 40\n")
    before = code_digest([package])
    (package / "game.py").write_text("LIMIT = 41\n")
    changed = code_digest([package])
    (package / "more.py").touch()
    assert len({before, changed, code_digest([package])}) == 3


def test_each_key_that_can_not_be_read_is_named_once_and_never_shown(tmp_path: Path) -> None:
    good, open_ = tmp_path / "good", tmp_path / "open"
    for path, mode in ((good, 0o600), (open_, 0o644)):
        path.write_text("secret\n")
        path.chmod(mode)
    missing = FileCredential(str(tmp_path / "missing"))
    routes = {
        "a": route(Role.ORACLE, "http://x", credential=FileCredential(str(good))),
        "b": route(Role.ORACLE, "http://x", credential=missing, search=SearchConfig("http://x", credential=FileCredential(str(open_)))),
        "c": route(Role.ORACLE, "http://x", credential=missing),
        "d": route(Role.ORACLE, "http://x", credential=LiteralCredential("secret")),
    }
    found = unusable_keys(routes)
    assert [str(tmp_path / name) in text for name, text in zip(("missing", "open"), found, strict=True)] == [True, True]
    assert "secret" not in "".join(found)
