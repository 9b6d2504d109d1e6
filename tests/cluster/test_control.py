"""Pause and cancel: the files, who believes them, and real drivers that are stopped by them."""

import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from deep20ray.errors import UsageError
from deep20ray_cluster.control import CANCELLED, PAUSED, ask, asked_of, at_work, taken_up
from deep20ray_cluster.errors import OutputError, SweepCancelled
from deep20ray_cluster.folder import SweepFolder, hold

from .command import Running, calls, events, run, sealed, sent
from .test_system import SLOW, check_nothing_paid_twice, check_whole, write
from .worlds import become, scripted

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    folder = SweepFolder(tmp_path)
    folder.plan.write_text(json.dumps({"runs": [{"run_id": "one"}]}))
    folder.sweep_file.write_text("")
    return folder


def asked(folder: SweepFolder) -> tuple[str | None, list[str]]:
    """What a driver hears, asked twice, and what it says about it."""
    said: list[str] = []
    hears = asked_of(folder, said.append)
    hears()
    return hears(), said


def test_a_pause_reaches_the_driver_at_work_and_not_the_next(folder: SweepFolder) -> None:
    with hold(folder):
        assert at_work(folder)
        assert asked(folder) == (None, [])
        assert "would be asked to pause" in ask(folder.root, "pause", NOW, dry_run=True)
        assert not folder.pause.exists()
        assert ask(folder.root, "pause", NOW).startswith("asked to pause")
        assert stat.S_IMODE(folder.pause.stat().st_mode) == 0o600
        assert asked(folder) == (PAUSED, [])
        assert ask(folder.root, "pause", NOW).startswith("already asked to pause")
    assert not at_work(folder)
    with hold(folder):
        taken_up(folder, again=False)
        assert asked(folder) == (None, [])


def test_nothing_to_pause_is_one_line(folder: SweepFolder) -> None:
    with pytest.raises(UsageError, match="nothing to pause"):
        ask(folder.root, "pause", NOW)
    with pytest.raises(OutputError, match="no sweep here"):
        ask(folder.root / "elsewhere", "cancel", NOW)
    folder.sealed("one").mkdir(parents=True)
    with pytest.raises(UsageError, match="already finished"):
        ask(folder.root, "pause", NOW)
    with pytest.raises(UsageError, match="already finished"):
        ask(folder.root, "cancel", NOW)
    folder.plan.write_text("[")
    with pytest.raises(OutputError, match="not a plan"):
        ask(folder.root, "cancel", NOW)


def test_a_cancelled_sweep_stays_so_until_it_is_taken_up_again(folder: SweepFolder) -> None:
    assert "no driver is at work" in ask(folder.root, "cancel", NOW)
    assert json.loads(folder.cancelled.read_text()) == {"verb": "cancel", "at": "2026-03-01T00:00:00+00:00"}
    assert ask(folder.root, "cancel", NOW).startswith("already cancelled")
    with pytest.raises(SweepCancelled, match="--again"):
        taken_up(folder, again=False)
    assert folder.cancelled.exists()
    taken_up(folder, again=True)
    assert not folder.cancelled.exists()
    taken_up(folder, again=False)


def test_a_live_driver_sees_a_cancel_before_a_pause(folder: SweepFolder) -> None:
    with hold(folder):
        ask(folder.root, "pause", NOW)
        ask(folder.root, "cancel", NOW)
        assert asked(folder) == (CANCELLED, [])


@pytest.mark.parametrize("text", ["", "[]", "{", '{"verb": "cancel"}', "[" * 4000, "\x00"])
def test_what_is_no_request_changes_nothing_and_is_said_once(folder: SweepFolder, text: str) -> None:
    folder.pause.write_text(text)
    folder.pause.chmod(0o600)
    reason, said = asked(folder)
    assert reason is None and len(said) == 1 and "pause.json" in said[0]


def test_a_request_that_others_can_have_written_is_not_believed(folder: SweepFolder) -> None:
    request = '{"verb": "pause"}'
    folder.pause.write_text(request)
    folder.pause.chmod(0o666)
    assert asked(folder)[0] is None
    folder.pause.unlink()
    (folder.root / "other").write_text(request)
    folder.pause.symlink_to(folder.root / "other")
    assert asked(folder)[0] is None
    folder.pause.unlink()
    os.mkfifo(folder.pause, 0o600)
    assert asked(folder)[0] is None, "and nothing hangs"


def test_a_doubtful_mark_of_a_cancelled_sweep_spends_nothing(folder: SweepFolder) -> None:
    folder.cancelled.symlink_to("nowhere")
    with pytest.raises(SweepCancelled):
        taken_up(folder, again=False)


@pytest.mark.full
def test_a_driver_is_paused_resumed_and_cancelled_from_another_shell(tmp_path: Path) -> None:
    with scripted(tmp_path / "world", SLOW) as (url, log):
        out = tmp_path / "out"
        with Running("run", write(tmp_path, url, rounds=12, head="max_trials = 1"), "--out", out, "--progress", "none") as driver:
            driver.until(lambda: sent(log) >= 6)
            second = run("resume", out, "--progress", "none")
            assert (second.code, "another driver is at work" in second.complaint) == (2, True), second
            assert ask(out, "pause", NOW).startswith("asked to pause")
            done = driver.end()
        assert (done.code, done.complaint.startswith("paused; ")) == (3, True), done
        paused = events(out)
        assert calls(paused, "started") == calls(paused, "reply"), "what was in flight came back"
        assert run("pause", out).code == 2
        seen = sent(log)
        with Running("resume", out, "--progress", "none") as driver:
            driver.until(lambda: sent(log) >= seen + 4)
            assert ask(out, "cancel", NOW).startswith("cancelled")
            done = driver.end()
        assert (done.code, "cancelled" in done.complaint, "--again" in done.complaint) == (3, True, True), done
        cancelled = events(out)
        check_nothing_paid_twice(out, paused, log)
        become(tmp_path / "world", {})
        refused = run("resume", out, "--progress", "none")
        assert (refused.code, "--again" in refused.complaint) == (2, True), refused
        assert events(out) == cancelled
        done = run("resume", out, "--again", "--progress", "none")
        assert (done.code, done.out.strip()) == (0, str(sealed(out))), done
        check_whole(out, 12)
        check_nothing_paid_twice(out, cancelled, log)
        assert calls(events(out), "lost").total() == 0
        assert "already finished" in run("cancel", out).complaint


@pytest.mark.full
def test_a_sweep_whose_driver_was_killed_can_be_cancelled(tmp_path: Path) -> None:
    with scripted(tmp_path / "world", SLOW) as (url, log):
        out = tmp_path / "out"
        with Running("run", write(tmp_path, url), "--out", out, "--progress", "none") as driver:
            driver.until(lambda: sent(log) >= 6)
            driver.process.kill()
            driver.process.wait()
            assert "nothing to pause" in run("pause", out).complaint
            cancelled = run("cancel", out)
            assert (cancelled.code, "no driver is at work" in cancelled.out) == (0, True), cancelled
            assert run("repair", out, "--progress", "none").code == 2
            done = run("resume", out, "--again", "--progress", "none")
        assert done.code == 0, done
        check_whole(out, 4)
