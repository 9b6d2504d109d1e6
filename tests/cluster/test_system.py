"""The whole system, real Ray, real HTTP, real processes: kills, Ctrl-C, lost workers, failing providers; and what each of them costs."""

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from .audited import audits
from .command import Ended, Running, by_role, calls, events, run, sealed, sent, table
from .worlds import ROLES, become, scripted, sweep_text

Play = Callable[..., Ended]

SLOW = {"latency": dict.fromkeys(ROLES, 0.4)}


def write(folder: Path, url: str, rounds: int = 4, extra: str = "", head: str = "") -> Path:
    path = folder / "sweep.toml"
    path.write_text(sweep_text(url, rounds=rounds, extra=extra, head=head))
    return path


def check_whole(out: Path, trials: int) -> None:
    """Every trial has the score that the script gives it, and the totals are those of its turns."""
    rows = table(out, "trials")
    assert [(row["status"], row["score"], row["terminal_reason"]) for row in rows] == [("scored", 2, "success")] * trials
    (summary,) = table(out, "run")
    assert (summary["status"], summary["planned_trials"], summary["scored_trials"]) == ("complete", trials, trials)
    turns = table(out, "turns")
    assert len(turns) == 3 * trials
    assert Counter(row["trial_id"] for row in turns) == {row["trial_id"]: row["turns"] for row in rows}
    usage = table(out, "usage")
    kept = Counter(row["call"] for row in usage if row["state"] == "terminal")
    # Two questions agreed on and one guess: what a trial's terminal calls are, however often the driver died.
    assert kept == {"guesser": 3 * trials, "search": 2 * trials, "oracle": 2 * trials, "reviewer": 2 * trials, "validator": trials}
    assert len(table(out, "repairs")) == sum(row["state"] != "terminal" for row in usage)
    (run_folder,) = (out / "runs").iterdir()
    # However it was interrupted, every call's message and request is still the one that its role may have been sent.
    public, whole = audits((run_folder, out / "private" / run_folder.name))
    assert public.findings == whole.findings == ()
    assert whole.total.calls == len(table(out, "audits")) == whole.total.checked


def check_nothing_paid_twice(out: Path, before: list, log: Path) -> None:
    """No call whose reply was journalled was started again, and the provider saw no request that the journal doesn't know."""
    after = events(out)
    assert after[: len(before)] == before, "the journal only grows"
    started = calls(after, "started")
    for key in calls(before, "reply"):
        assert started[key] == calls(before, "started")[key], key
    begun = Counter("search" if call == "search" else call for _, _, call in started.elements())
    for role, seen in by_role(log).items():
        assert seen <= begun[role], (role, seen, begun)


def test_a_driver_killed_and_then_interrupted_is_resumed_and_nothing_journalled_is_paid_again(tmp_path: Path) -> None:
    with scripted(tmp_path / "world", SLOW) as (url, log):
        out = tmp_path / "out"
        with Running("run", write(tmp_path, url), "--out", out, "--progress", "none") as driver:
            driver.until(lambda: sent(log) >= 10)
            below = {process.pid for process in driver.descendants() if _name(process.pid).startswith("ray::")}
            driver.process.kill()
            driver.process.wait()
            noted = json.loads((out / "lock").read_text())["processes"]
            assert {pid for pid, _ in noted} >= below != set(), "every worker is noted"
            killed = events(out)
            in_flight = calls(killed, "started") - calls(killed, "reply")
            assert in_flight, "the kill came in mid-run"
            seen = sent(log)
            with Running("resume", out, "--progress", "none") as second:
                second.until(lambda: sent(log) >= seen + 5)
                left = [pid for pid, started in noted if _started(pid) == started]
                assert left == [], "the dead driver's processes were ended before the first call"
                second.interrupt()
                done = second.end()
        assert done.code == 130, done
        assert "4 trials are owed" in done.complaint
        assert f"deep20ray resume {out}" in done.complaint
        drained = events(out)
        check_nothing_paid_twice(out, killed, log)
        assert calls(drained, "started") == calls(drained, "reply") + in_flight, "every call that the second driver sent came back"
        done = run("resume", out, "--progress", "none")
        assert (done.code, done.out.strip()) == (0, str(sealed(out))), done
        check_whole(out, 4)
        check_nothing_paid_twice(out, drained, log)
        assert calls(events(out), "lost") == in_flight, "what the kill lost is in the ledger, and nothing else"
        assert sum(row["state"] == "lost" for row in table(out, "usage")) == in_flight.total()


def _name(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.NoSuchProcess:
        return ""


def _started(pid: int) -> float | None:
    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return None


def test_exhausted_quota_parks_at_once_and_resume_goes_on(tmp_path: Path, playing: Play) -> None:
    world = {"faults": {"reviewer": {"status": 429, "error": {"message": "no credit left", "code": "insufficient_quota"}}}}
    with scripted(tmp_path / "world", world) as (url, log):
        out = tmp_path / "out"
        done = playing("run", write(tmp_path, url), "--out", out)
        assert done.code == 3
        assert "reviewer" in done.complaint
        assert f"deep20ray resume {out}" in done.complaint
        seen = by_role(log)
        assert seen["reviewer"] <= 4, "no wire try is wasted on it"
        assert calls(events(out), "infrastructure").total() == 0, "no attempt is used up"
        become(tmp_path / "world", {})
        done = playing("resume", out)
        assert done.code == 0, done
        check_scores(out, 4)
        assert by_role(log)["guesser"] == 12, "no delivered reply was asked for again"


def check_scores(out: Path, trials: int) -> None:
    assert [(row["status"], row["score"]) for row in table(out, "trials")] == [("scored", 2)] * trials
    assert table(out, "run")[0]["status"] == "complete"


@pytest.mark.full
def test_a_second_ctrl_c_ends_at_once_and_counts_what_was_in_flight_as_lost(tmp_path: Path) -> None:
    with scripted(tmp_path / "world", {"latency": dict.fromkeys(ROLES, 60)}) as (url, log):
        out = tmp_path / "out"
        with Running("run", write(tmp_path, url), "--out", out, "--progress", "none") as driver:
            driver.until(lambda: sent(log) >= 4)
            driver.interrupt()
            assert driver.process.stderr is not None
            # Before it the driver says what the sweep will take.
            assert any("Ctrl-C again" in line for line in driver.process.stderr)
            driver.interrupt()
            done = driver.end()
        assert done.code == 130, done
        assert "resume" in done.complaint
        assert calls(events(out), "lost").total() == 4
        become(tmp_path / "world", {})
        assert run("resume", out, "--progress", "none").code == 0
        check_whole(out, 4)


@pytest.mark.full
def test_a_killed_worker_is_replaced_and_the_run_completes(tmp_path: Path) -> None:
    with scripted(tmp_path / "world", SLOW) as (url, log):
        out = tmp_path / "out"
        with Running("run", write(tmp_path, url, rounds=6), "--out", out, "--progress", "none") as driver:
            driver.until(lambda: by_role(log)["oracle"] >= 2)
            (actor,) = [process for process in driver.descendants() if "GuesserActor" in _name(process.pid)]
            os.kill(actor.pid, signal.SIGKILL)
            done = driver.end()
        assert done.code == 0, done
        check_whole(out, 6)


@pytest.mark.full
def test_a_hung_worker_is_replaced_and_the_run_completes(tmp_path: Path) -> None:
    with scripted(tmp_path / "world", SLOW) as (url, log):
        out = tmp_path / "out"
        with Running("run", write(tmp_path, url, rounds=6), "--out", out, "--progress", "none") as driver:
            driver.until(lambda: by_role(log)["oracle"] >= 2)
            (actor,) = [process for process in driver.descendants() if "ReviewerActor" in _name(process.pid)]
            os.kill(actor.pid, signal.SIGSTOP)
            done = driver.end()
        assert done.code == 0, done
        check_whole(out, 6)


@pytest.mark.full
@pytest.mark.parametrize("victim", ["raylet", "gcs_server"])
def test_the_death_of_ray_itself_ends_the_run_resumable(tmp_path: Path, victim: str) -> None:
    with scripted(tmp_path / "world", SLOW) as (url, log):
        out = tmp_path / "out"
        with Running("run", write(tmp_path, url, rounds=30), "--out", out, "--progress", "none") as driver:
            driver.until(lambda: by_role(log)["oracle"] >= 2)
            (process,) = [process for process in driver.descendants() if process.name() == victim]
            os.kill(process.pid, signal.SIGKILL)
            done = driver.end()
        assert done.code == 3, done
        assert victim in done.complaint
        before = events(out)
        done = run("resume", out, "--progress", "none")
        assert done.code == 0, done
        check_whole(out, 30)
        check_nothing_paid_twice(out, before, log)


@pytest.mark.full
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"status": 500}, "serverfault"),
        ({"html": "<html>Welcome</html>"}, "malformed"),
        ({"close": True}, "closed the connection"),
    ],
)
def test_five_failures_in_a_row_stop_the_sweep_and_repair_keeps_what_was_paid(
    tmp_path: Path, playing: Play, fault: dict, words: str
) -> None:
    with scripted(tmp_path / "world", {"faults": {"reviewer": fault}}) as (url, log):
        out = tmp_path / "out"
        sweep = write(tmp_path, url, rounds=12, head="max_trials = 2")
        sweep.write_text(sweep.read_text().replace("attempts = 4", "attempts = 2"))
        done = playing("run", sweep, "--out", out)
        assert done.code == 3, done
        assert words in done.complaint
        assert "5 trials in a row" in done.complaint
        assert f"deep20ray repair {out}" in done.complaint
        before = events(out)
        failed = calls(before, "infrastructure").total()
        assert 5 <= failed <= 6, "the breaker let the others be"
        become(tmp_path / "world", {})
        done = playing("repair", out)
        assert done.code == 0, done
        check_scores(out, 12)
        guesser = by_role(log)["guesser"]
        assert guesser == 36, "no Guesser reply was asked for again"
        superseded = [row for row in table(out, "usage") if row["state"] == "superseded"]
        assert {row["call"] for row in superseded} == {"reviewer"}
        assert len(superseded) == failed


@pytest.mark.full
def test_a_refused_key_parks_and_says_which_role(tmp_path: Path, playing: Play) -> None:
    world = {"faults": {"judge": {"status": 401, "error": {"message": "bad key"}}, "guesser": {"status": 401, "error": {"message": "bad"}}}}
    with scripted(tmp_path / "world", world) as (url, _):
        out = tmp_path / "out"
        done = playing("run", write(tmp_path, url), "--out", out)
        assert done.code == 3, done
        assert "guesser" in done.complaint and "401" in done.complaint
        become(tmp_path / "world", {})
        assert playing("resume", out).code == 0
        check_scores(out, 4)
