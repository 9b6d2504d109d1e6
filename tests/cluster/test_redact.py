"""Redacting as a command, from a played and signed run to the site that shows it."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.signing import NewKey, new_key, sign_run
from deep20ray_cluster.folder import make_folder
from deep20ray_publisher import site

from .command import Ended
from .test_seal import journal_of, make_plan, sealed

Play = Callable[..., Ended]


@pytest.fixture
def key(tmp_path: Path) -> NewKey:
    """A lasting key."""
    return new_key(tmp_path / "keys", "mine")


@pytest.fixture
def run(tmp_path: Path, key: NewKey) -> Path:
    """A played run, signed."""

    async def make() -> Path:
        plan, folder = make_plan(), make_folder(tmp_path / "out")
        journal = await journal_of(plan, folder.journal)
        path = sealed(plan, folder, journal)
        journal.close()
        return path

    path = asyncio.run(make())
    sign_run(path, key.private)
    return path


def test_a_field_is_redacted_signed_verified_audited_and_shown(run: Path, key: NewKey, tmp_path: Path, deep20ray: Play) -> None:
    words = ("--field", "guess_name", "--reason", "a name that was <b>asked</b> to be taken down", "--trust", key.public)
    done = deep20ray("redact", run, "--turn", "T-0001:2:4", *words, "--out", tmp_path / "redacted")
    # The four games guess the same plane.
    assert done.code == 0 and "4 fields redacted" in done.out, done
    target = tmp_path / "redacted" / run.name
    assert deep20ray("verify", target, "--trust", key.public).code == 4, "not signed yet"
    assert deep20ray("sign", target, "--key", key.private).code == 0
    shown = deep20ray("verify", target, "--trust", key.public)
    assert shown.code == 0 and shown.out.count("redacted: trial ") == 4
    assert "guess_name: a name that was <b>asked</b> to be taken down; 20" in shown.out
    public = deep20ray("audit", target, "--trust", key.public)
    assert public.code == 0 and "redacted since" in public.out
    site.build([target.parent], [load_public(key.public)], tmp_path / "site", preview=True)
    page = next((tmp_path / "site").glob("e/1.1/runs/*/t-0001-r2.html")).read_text()
    assert "a name that was &lt;b&gt;asked&lt;/b&gt; to be taken down" in page and "redacted:sha256:" in page and ">plane<" not in page
    assert "redaction.dsse.json" in next((tmp_path / "site").glob("e/1.1/runs/*/index.html")).read_text()
    copy = next((tmp_path / "site").glob(f"e/1.1/data/*/{run.name}"))
    assert deep20ray("verify", copy, "--trust", key.public).code == 0
    assert b"plane" not in b"".join(path.read_bytes() for path in copy.iterdir())


def test_the_private_archive_still_shows_all(run: Path, key: NewKey, tmp_path: Path, deep20ray: Play) -> None:
    words = ("--field", "question", "--reason", "x", "--trust", key.public, "--out", tmp_path / "redacted")
    assert deep20ray("redact", run, "--turn", "T-0001:1:1", *words).code == 0
    target = tmp_path / "redacted" / run.name
    assert deep20ray("sign", target, "--key", key.private).code == 0
    whole = deep20ray("audit", target, "--trust", key.public, "--private", tmp_path / "out" / "private" / run.name)
    # The scripted desk makes no requests, which the archive shows; every message is still the recorded one.
    assert "another message" not in whole.out and "its request isn't" in whole.out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--turn", "T-0001:9:1", "--field", "question"), "there is no such turn"),
        (("--turn", "nonsense", "--field", "question"), "there is no such turn"),
        (("--turn", "T-0001:1:1", "--field", "score"), "can't be redacted"),
        (("--turn", "T-0001:1:1", "--field", "excerpt"), "needs its number"),
        (("--turn", "T-0001:1:1", "--field", "excerpt", "--number", "3"), "there is no excerpt 3"),
    ],
)
def test_what_is_not_there_cannot_be_redacted(
    run: Path, key: NewKey, tmp_path: Path, deep20ray: Play, words: tuple[str, ...], complaint: str
) -> None:
    done = deep20ray("redact", run, *words, "--reason", "x", "--trust", key.public, "--out", tmp_path / "redacted")
    assert done.code == 2 and complaint in done.complaint, done
    assert not (tmp_path / "redacted").exists()


def test_a_redaction_never_overwrites(run: Path, key: NewKey, deep20ray: Play) -> None:
    words = ("--turn", "T-0001:1:1", "--field", "question", "--reason", "x", "--trust", key.public, "--out", run.parent)
    done = deep20ray("redact", run, *words)
    assert done.code == 2 and "exists" in done.complaint
