"""Bad input through the command line: one line on stderr, the documented exit code, no traceback, and nothing written or paid for."""

import asyncio
import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deep20ray_cluster import cli, driver
from deep20ray_cluster.seal import seal_run

from .command import Ended, Running, calls, command, events, run, sealed
from .worlds import become, scripted, sweep_text

Command = Callable[..., Ended]


def write(folder: Path, text: str) -> Path:
    path = folder / "sweep.toml"
    path.write_text(text)
    return path


def sweep(url: str = "http://127.0.0.1:9", **changes: Any) -> str:
    return sweep_text(url, **changes)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[sweep]", "[sweep", "not valid TOML"),
        ("rounds = 1", "rounds = 1\ntypo = 1", "sweep.typo: unknown key; see docs/sweep-file.md"),
        ('account = "judge"', 'account = "nobody"', "names account 'nobody'"),
        ('edition = "1.1"', 'edition = "9.9"', "9.9"),
        ('cohort = "core-1.1"', 'cohort = "no-such.toml"', "no-such.toml"),
        ('subjects = ["T-0001"]', 'subjects = ["T-9999"]', "T-9999"),
        ("rounds = 1", 'rounds = 1\npolicy = "evidence-first"', "sweep.policy"),
        ("attempts = 4", 'attempts = 4\napi_key = "env:NO_SUCH_KEY_SET"', "the environment variable NO_SUCH_KEY_SET is not set; export it"),
        ("attempts = 4", 'attempts = 4\napi_key = "file:/no/such/key"', "/no/such/key: can't be read"),
    ],
)
def test_a_bad_sweep_is_refused_before_anything_is_written(tmp_path: Path, deep20ray: Command, old: str, new: str, says: str) -> None:
    out = tmp_path / "out"
    done = deep20ray("run", write(tmp_path, sweep().replace(old, new, 1)), "--out", out)
    assert (done.code, done.out) == (2, "")
    assert says in done.complaint
    assert len(done.err.splitlines()) == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("subjects = [", "not valid TOML"),
        ('id = "mine"', "subjects"),
        ('id = "mine"\nextra = 1\nsubjects = []', "cohort.toml"),
        (
            'id = "mine"\n[[subjects]]\nid = "T-1000"\ncategory = "thing"\ncanonical_name = ""\ndescription = "x"',
            "cohort.toml",
        ),
    ],
)
def test_a_bad_cohort_is_refused_with_its_file(tmp_path: Path, deep20ray: Command, text: str, says: str) -> None:
    (tmp_path / "cohort.toml").write_text(text)
    done = deep20ray("run", write(tmp_path, sweep(cohort="cohort.toml")), "--out", tmp_path / "out")
    assert done.code == 2
    assert "cohort.toml" in done.complaint and says in done.complaint
    assert not (tmp_path / "out").exists()


def test_a_key_file_that_others_may_read_is_refused(tmp_path: Path, deep20ray: Command) -> None:
    key = tmp_path / "key"
    key.write_text("secret-key-text")
    key.chmod(0o644)
    done = deep20ray("run", write(tmp_path, sweep().replace("attempts = 4", f'api_key = "file:{key}"', 1)), "--out", tmp_path / "out")
    assert done.code == 2
    assert f"{key}: group or others may read it; chmod 600 it" in done.complaint
    assert "secret" not in done.err


def test_an_out_folder_that_can_not_be_written(tmp_path: Path, deep20ray: Command) -> None:
    (tmp_path / "file").write_text("")
    done = deep20ray("run", write(tmp_path, sweep()), "--out", tmp_path / "file" / "out")
    assert done.code == 2
    assert "can't be written (Not a directory); choose another folder with --out" in done.complaint


def test_a_read_only_out_folder(tmp_path: Path, deep20ray: Command, tiny_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    done = deep20ray("run", write(tmp_path, sweep()), "--out", tiny_disk / "out")
    assert done.code == 2
    assert "Read-only file system" in done.complaint


def test_a_progress_mode_that_does_not_exist(tmp_path: Path, deep20ray: Command) -> None:
    done = deep20ray("run", write(tmp_path, sweep()), "--out", tmp_path / "out", "--progress", "loud")
    assert done.code == 2
    assert "auto, plain or none" in done.complaint


def planned(folder: Path, deep20ray: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sweep's folder as a driver leaves it that was stopped before its first call."""

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    out = folder / "out"
    with monkeypatch.context() as patch:
        patch.setattr(driver, "_drive", stop)
        done = deep20ray("run", write(folder, sweep()), "--out", out)
    assert done.code == 130
    assert f"go on with `deep20ray resume {out}`" in done.complaint
    return out


def test_a_folder_that_holds_a_sweep_is_not_overwritten(tmp_path: Path, deep20ray: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    out = planned(tmp_path, deep20ray, monkeypatch)
    plan = (out / "plan.json").read_bytes()
    done = deep20ray("run", tmp_path / "sweep.toml", "--out", out)
    assert done.code == 2
    assert f"already holds a sweep; go on with `deep20ray resume {out}`" in done.complaint
    assert (out / "plan.json").read_bytes() == plan


@pytest.mark.parametrize("verb", ["resume", "repair"])
def test_resuming_what_is_no_sweep(tmp_path: Path, deep20ray: Command, verb: str) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        done = deep20ray(verb, folder)
        assert done.code == 2
        assert f"{folder}: no sweep here" in done.complaint


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("plan.json", b"{", "not a plan; restore it from a copy"),
        ("plan.json", b"[]", "not a plan"),
        ("plan.json", b'{"created_at": 5}', "not a plan"),
        ("plan.json", b'{"created_at": "0001-01-01T00:00:00+23:00"}', "not a plan"),
        ("plan.json", b"[" * 100_000, "not a plan"),
        ("plan.json", b"\xff\xfe", "not a plan"),
        ("sweep.toml", b"[sweep", "not valid TOML"),
        ("sweep.toml", b"\xff", "restore"),
        ("journal.sqlite", b"not a database" * 100, "not a readable journal"),
    ],
)
def test_resuming_what_is_spoilt(
    tmp_path: Path, deep20ray: Command, monkeypatch: pytest.MonkeyPatch, file: str, content: bytes, says: str
) -> None:
    out = planned(tmp_path, deep20ray, monkeypatch)
    for tail in ("-wal", "-shm"):
        (out / f"{file}{tail}").unlink(missing_ok=True)
    (out / file).write_bytes(content)
    done = deep20ray("resume", out)
    assert done.code == 2
    assert says in done.complaint and str(out) in done.complaint
    assert len(done.err.splitlines()) == 1


def test_resuming_a_changed_sweep_names_what_differs(tmp_path: Path, deep20ray: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    out = planned(tmp_path, deep20ray, monkeypatch)
    (out / "sweep.toml").write_text((out / "sweep.toml").read_text().replace('model = "judge"', 'model = "other"'))
    done = deep20ray("resume", out)
    assert done.code == 2
    assert "support.judge.requested_model" in done.complaint
    assert "start a new sweep" in done.complaint


def test_resuming_without_the_journal_pays_for_nothing_again(tmp_path: Path, deep20ray: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    out = planned(tmp_path, deep20ray, monkeypatch)
    (out / "journal.sqlite").unlink()
    done = deep20ray("resume", out)
    assert done.code == 2
    assert "there is no journal here; restore it" in done.complaint


def test_a_broken_chain(tmp_path: Path, deep20ray: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    out = planned(tmp_path, deep20ray, monkeypatch)
    db = sqlite3.connect(out / "journal.sqlite")
    db.execute("INSERT INTO events VALUES (1, 'r', 't', 1, 1, 'closed', '', 0, 1, '{}', 'x')")
    db.commit()
    db.close()
    done = deep20ray("resume", out)
    assert done.code == 2
    assert "the chain of run r is broken; restore the file from a copy" in done.complaint


def test_an_unexpected_error_is_one_line_and_debug_shows_more(tmp_path: Path, deep20ray: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("of\nours")

    monkeypatch.setattr(driver, "resolve", fail)
    path = write(tmp_path, sweep())
    done = deep20ray("run", path, "--out", tmp_path / "out")
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert done.complaint.startswith("internal error: ZeroDivisionError: of ours; ")
    with pytest.raises(ZeroDivisionError):
        deep20ray("--debug", "run", path, "--out", tmp_path / "out2")


def test_ctrl_c_outside_the_play_is_130(tmp_path: Path, deep20ray: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(driver, "resolve", interrupt)
    done = deep20ray("run", write(tmp_path, sweep()), "--out", tmp_path / "out")
    assert (done.code, done.complaint) == (130, "interrupted")


def test_ctrl_c_while_ray_starts_is_130(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Running("run", write(tmp_path, sweep()), "--out", out) as process:
        process.until(lambda: (out / "plan.json").exists())
        os.kill(process.process.pid, signal.SIGINT)
        done = process.end()
    assert done.code == 130
    assert f"resume {out}" in done.complaint


def test_the_real_process_too(tmp_path: Path) -> None:
    done = run("run", write(tmp_path, "x = 1"), "--out", tmp_path / "out")
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert run("verify", tmp_path, "--trust", tmp_path / "no.pub").code in (2, 4)


def test_a_control_character_in_a_name_is_not_printed(tmp_path: Path, deep20ray: Command) -> None:
    done = deep20ray("resume", tmp_path / "a\x1b[31m\nb")
    assert done.code == 2
    assert "\x1b" not in done.err and len(done.err.splitlines()) == 1


def test_the_simulators_port_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        words = [sys.executable, "-m", "deep20ray_actors.simulator", "--port", str(port)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert str(port) in done.stderr and "Traceback" not in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("mounting a small file system is not permitted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path, leave: int) -> Path:
    """Fills a file system but for some bytes."""
    ballast = disk / "ballast"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    ballast.write_bytes(b"x" * max(0, free - leave))
    return ballast


@pytest.mark.full
def test_a_disk_that_fills_up_in_mid_run_stops_it_and_keeps_what_was_paid(tmp_path: Path, playing: Command, tiny_disk: Path) -> None:
    with scripted(tmp_path / "world", {"say": {"statement": "x" * 1500}}) as (url, _):
        out = tiny_disk / "out"
        text = sweep_text(url, rounds=20, head="max_trials = 2")
        with pytest.MonkeyPatch.context() as patch:
            real = asyncio.run

            def filling(work):
                ballast.append(fill(tiny_disk, 120_000))
                return real(work)

            ballast: list[Path] = []
            patch.setattr(asyncio, "run", filling)
            done = playing("run", write(tmp_path, text), "--out", out)
        assert done.code == 3, done
        assert "journal.sqlite: can't be written" in done.complaint and "free space" in done.complaint
        before = events(out)
        assert calls(before, "reply").total() > 5
        subprocess.run(["mount", "-o", "remount,size=32m", str(tiny_disk)], check=True)
        done = playing("resume", out)
        assert done.code == 0, done
        after = events(out)
        assert after[: len(before)] == before
        assert all(calls(after, "started")[key] == calls(before, "started")[key] for key in calls(before, "reply"))


@pytest.mark.full
def test_a_disk_that_is_full_while_sealing_keeps_the_run_and_resume_seals_it(tmp_path: Path, playing: Command, tiny_disk: Path) -> None:
    with scripted(tmp_path / "world", {}) as (url, log):
        out = tiny_disk / "out"
        ballast: list[Path] = []
        with pytest.MonkeyPatch.context() as patch:
            real = seal_run

            def sealing(*words):
                ballast.append(fill(tiny_disk, 30_000))
                return real(*words)

            patch.setattr(driver, "seal_run", sealing)
            done = playing("run", write(tmp_path, sweep_text(url, rounds=3)), "--out", out)
        assert done.code == 3, done
        assert "is played but could not be sealed" in done.complaint
        assert f"free space, then `deep20ray resume {out}`" in done.complaint
        assert not (out / "runs").exists() or not [path for path in (out / "runs").iterdir() if not path.name.startswith(".")]
        seen = log.read_text()
        ballast[0].unlink()
        done = playing("resume", out)
        assert (done.code, done.out.strip()) == (0, str(sealed(out))), done
        assert log.read_text() == seen, "sealing asks nobody"


@pytest.mark.full
def test_a_server_that_is_not_there_then_comes(tmp_path: Path, playing: Command) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    out = tmp_path / "out"
    text = sweep_text(f"http://127.0.0.1:{port}", rounds=6).replace("attempts = 4", "attempts = 1")
    done = playing("run", write(tmp_path, text), "--out", out)
    assert done.code == 3, done
    assert "guesser" in done.complaint and "can't be reached; check base_url and that it runs" in done.complaint
    assert f"deep20ray repair {out}" in done.complaint
    with scripted(tmp_path / "world", {}, port):
        done = playing("repair", out)
    assert done.code == 0, done
    assert json.loads((sealed(out) / "statement.json").read_text())["predicate"]["status"] == "complete"


@pytest.mark.full
def test_three_failed_attempts_leave_the_run_incomplete_and_sealed(tmp_path: Path, playing: Command) -> None:
    world = {"faults": {"validator": {"status": 500}}}
    with scripted(tmp_path / "world", world) as (url, _):
        out = tmp_path / "out"
        text = sweep_text(url, rounds=2).replace("attempts = 4", "attempts = 1")
        done = playing("run", write(tmp_path, text), "--out", out)
        assert done.code == 3
        assert f"deep20ray repair {out}" in done.complaint
        assert playing("resume", out).code == 3, "resume leaves failed attempts alone"
        assert playing("repair", out).code == 3
        done = playing("repair", out)
        # Not 0: a script that plays must not take an incomplete run for a whole one.
        assert (done.code, done.out.strip()) == (3, str(sealed(out))), done
        assert "sealed as incomplete" in done.complaint
        become(tmp_path / "world", {})
        assert playing("repair", out).code == 3
        assert json.loads((sealed(out) / "statement.json").read_text())["predicate"]["status"] == "incomplete"


def test_the_folder_keeps_private_things_private(tmp_path: Path, deep20ray: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    out = planned(tmp_path, deep20ray, monkeypatch)
    assert stat.S_IMODE((out / "journal.sqlite").stat().st_mode) == 0o600
    assert stat.S_IMODE((out / "lock").stat().st_mode) == 0o600
    assert command("run")[1:] == ["-m", "deep20ray_cluster.cli", "run"]
    assert cli.EXIT_CODES.count(",") == 6
