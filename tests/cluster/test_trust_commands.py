"""Trust file, catalog and keys as commands, from an offline machine's point of view: the base installation does it all."""

from collections.abc import Callable
from pathlib import Path

import pytest

from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.signing import NewKey, new_key
from tests.artifacts.builder import sealed_run

from .command import Ended

Play = Callable[..., Ended]


@pytest.fixture
def key(tmp_path: Path) -> NewKey:
    return new_key(tmp_path / "keys", "mine")


def test_a_catalog_from_trust_file_to_site(tmp_path: Path, key: NewKey, deep20ray: Play) -> None:
    run = sealed_run(tmp_path / "runs", key.private)
    trust, one, two = (tmp_path / name for name in ("trust.json", "c1.json", "c2.json"))
    assert deep20ray("trust", "init", trust).code == 0
    assert deep20ray("trust", "add", trust, key.public, "--since", "2026-01-01", "--until", "2099-12-31").code == 0
    assert f"{key.keyid} mine: 2026-01-01 to 2099-12-31; runs, documents, catalog; every edition" in deep20ray("trust", "show", trust).out
    assert deep20ray("verify", run, "--trust", trust).code == 0

    assert deep20ray("catalog", "add", one, run, "--id", "ours", "--trust", trust).code == 0
    assert deep20ray("sign", one, "--key", key.private).code == 0
    first = tmp_path / "c1.dsse.json"
    assert f"{run.name} listed" in deep20ray("catalog", "verify", first, "--trust", trust).out

    gone = ("catalog", "withdraw", two, run.name, "--reason", "a <wrong> search", "--after", first, "--trust", trust)
    assert deep20ray(*gone).code == 0
    assert deep20ray("sign", two, "--key", key.private).code == 0
    second = tmp_path / "c2.dsse.json"
    shown = deep20ray("catalog", "verify", second, "--previous", first, "--trust", trust)
    assert shown.code == 0 and f"{run.name} withdrawn: a <wrong> search" in shown.out
    back = deep20ray("catalog", "verify", first, "--previous", second, "--trust", trust)
    assert back.code == 4 and "version 2 was seen before" in back.complaint

    assert deep20ray("trust", "revoke", trust, key.keyid[:12], "--reason", "lost").code == 0
    for words in (("verify", run), ("catalog", "verify", second)):
        refused = deep20ray(*words, "--trust", trust)
        assert refused.code == 4 and "is revoked (lost)" in refused.complaint


def test_mistakes_are_one_line(tmp_path: Path, key: NewKey, deep20ray: Play) -> None:
    trust = tmp_path / "trust.json"
    assert deep20ray("trust", "init", trust).code == 0
    for words, why in [
        (("trust", "init", trust), "name a new file"),
        (("trust", "init", tmp_path / "trust"), "ends in .json"),
        (("trust", "add", trust, key.public, "--until", "soon"), "write a day as"),
        (("trust", "add", trust, key.public, "--until", "2099-01-01", "--edition", "9.9"), "unknown"),
        (("trust", "revoke", trust, key.keyid[:11], "--reason", "x"), "no key"),
        (("trust", "show", key.public), "no trust file"),
        (("catalog", "add", tmp_path / "c.dsse.json", tmp_path, "--trust", key.public), "trust"),
        (("catalog", "withdraw", tmp_path / "c.json", "x", "--reason", "x", "--trust", key.public), "--id"),
    ]:
        ended = deep20ray(*words)
        assert ended.code in (2, 4) and why in ended.complaint, (words, ended)


def test_an_encrypted_key_takes_its_passphrase_from_a_file(tmp_path: Path, deep20ray: Play) -> None:
    secret = tmp_path / "passphrase"
    secret.write_text("correct horse\n")
    assert deep20ray("keys", "new", "locked", "--dir", tmp_path, "--passphrase-file", secret).code == 0
    shown = deep20ray("keys", "show", tmp_path / "locked.pub")
    assert shown.out.strip() == load_public(tmp_path / "locked.pub").keyid
    draft = tmp_path / "c.json"
    run = sealed_run(tmp_path / "runs", new_key(tmp_path, "other").private)
    assert deep20ray("catalog", "add", draft, run, "--id", "ours", "--trust", tmp_path / "other.pub").code == 0
    without = deep20ray("sign", draft, "--key", tmp_path / "locked.key")
    assert without.code == 2 and "--passphrase-file" in without.complaint
    secret.write_text("wrong\n")
    wrong = deep20ray("sign", draft, "--key", tmp_path / "locked.key", "--passphrase-file", secret)
    assert wrong.code == 2 and "passphrase is wrong" in wrong.complaint and "wrong\n" not in wrong.err
    secret.write_text("correct horse\n")
    assert deep20ray("sign", draft, "--key", tmp_path / "locked.key", "--passphrase-file", secret).code == 0
