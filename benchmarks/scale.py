"""Whether cost and memory stay flat as a sweep grows: ``python -m benchmarks.scale [--sizes N ...] [--at-once N]``.

Each size is played by a driver in a process of its own, against the server of no latency in another, with the same number of trials at
once: what grows then, grows with the sweep. Games are of one question (six calls). Then the largest one's last event is cut off and the
sweep resumed, in a new process again. Printed: milliseconds of play a trial; the driver's peak resident memory until play ends, and
until all is sealed; journal bytes a trial; the driver's CPU a call. With ``--wide`` so many trials are played all at once, for the cost
of a trial in play.

Ratio = the driver's peak memory until play ends (interpreter and Ray included) at the largest size / at 100 trials. Sealing holds a whole
run in memory and is printed apart: it isn't flat.
"""

import argparse
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import deep20ray_cohorts
from benchmarks.overhead import server, sweep_text
from deep20ray_cluster import driver
from deep20ray_cluster.journal import Journal, read_events
from deep20ray_cluster.seal import seal_run
from deep20ray_cluster.sweep import parse_sweep

QUESTIONS = 1
CALLS = QUESTIONS * 4 + 2
MOST_ROUNDS = 100
BASE = 100
GOAL = 1.25
CUT = "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)"


def text_of(url: str, trials: int, at_once: int) -> str:
    """A sweep of so many trials: 100 rounds of ten subjects at most, and of more than one model from 2,000 on."""
    rounds = min(trials, MOST_ROUNDS)
    subjects = [subject.id for subject in deep20ray_cohorts.load("core-1.1").subjects][: trials // rounds]
    models = trials // (rounds * len(subjects))
    return sweep_text(url, rounds, at_once, subjects=subjects, models=models)


def peak() -> float:
    """This process's peak resident memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one(url: str, trials: int, at_once: int, out: Path) -> dict[str, Any]:
    """Plays, or resumes, a sweep in this process. Times are in seconds, memory in MB, the journal in bytes."""
    played: list[float] = []

    def sealing(*args: Any) -> Any:
        played.extend((peak(), time.monotonic(), time.process_time()) if not played else ())
        return seal_run(*args)

    start = time.monotonic()
    with patch.object(driver, "seal_run", sealing):
        if out.exists():
            done = driver.resume(out, driver.Options(os.environ))
        else:
            text = text_of(url, trials, at_once)
            done = driver.start(parse_sweep(text, "bench"), text, out.parent, out, driver.Options(os.environ))
    assert done.owed == 0, done.stopped
    end, most = time.monotonic(), peak()
    first, last = 0, 0
    for event in read_events(done.folder.journal):
        if event.kind == "reply":
            first, last = first or event.at, event.at
    return {
        "play": (last - first) / 1000,
        "until": played[1] - start,
        "sealing": end - played[1],
        "rss": played[0],
        "all": most,
        "cpu": played[2],
        "size": done.folder.journal.stat().st_size,
    }


def fresh(*arguments: object) -> dict[str, Any]:
    """``one`` in a new process."""
    command = [sys.executable, "-m", "benchmarks.scale", "--one", *map(str, arguments)]
    result: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()[-1])
    return result


def shown(name: str, trials: int, got: dict[str, Any]) -> None:
    """One row."""
    print(
        f"{name:14} play {got['play'] / trials * 1000:6.1f} ms a trial ({got['play']:.1f} s); driver's peak {got['rss']:.0f} MB, "
        f"with sealing {got['all']:.0f} MB ({got['sealing']:.1f} s); journal {got['size'] / trials:,.0f} bytes a trial",
        flush=True,
    )


def resumed(url: str, trials: int, at_once: int, out: Path) -> None:
    """Cuts a sealed sweep's last event off, measures the opening of its journal, and resumes it."""
    shutil.rmtree(out / "runs")
    journal = next(path for path in out.rglob("*") if path.is_file() and path.open("rb").read(15) == b"SQLite format 3")
    db = sqlite3.connect(journal)
    db.execute(CUT)
    db.commit()
    db.close()
    start = time.monotonic()
    Journal(journal, new=False).close()
    opened = time.monotonic() - start
    got = fresh(url, trials, at_once, out)
    print(
        f"resume of {trials}: journal of {got['size'] / 1e6:.0f} MB checked in {opened:.2f} s; {got['until']:.1f} s until sealing, "
        f"with Ray's start; driver's peak {got['rss']:.0f} MB, with sealing {got['all']:.0f} MB",
        flush=True,
    )


def main() -> None:
    """Prints one row a size, then the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, BASE, 1000])
    parser.add_argument("--at-once", type=int, default=BASE)
    parser.add_argument("--wide", type=int, default=0, help="so many trials all at once, besides")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        url, trials, at_once, out = args.one
        print(json.dumps(one(url, int(trials), int(at_once), Path(out))))
        return
    got = {}
    with server(0, QUESTIONS) as url, tempfile.TemporaryDirectory() as folder:
        sizes = sorted({*args.sizes, BASE})
        for trials in sizes:
            got[trials] = fresh(url, trials, args.at_once, Path(folder) / str(trials))
            shown(f"{trials} trials", trials, got[trials])
        resumed(url, sizes[-1], args.at_once, Path(folder) / str(sizes[-1]))
        if args.wide:
            shown(f"{args.wide} at once", args.wide, fresh(url, args.wide, args.wide, Path(folder) / "wide"))
    if sizes[-1] > BASE:
        # What both spend on starting falls out.
        each = (got[sizes[-1]]["cpu"] - got[BASE]["cpu"]) / (sizes[-1] - BASE) / CALLS
        print(f"driver's CPU {each * 1000:.2f} ms a call: one loop carries at most {1 / each:,.0f} calls/s on such a core")
    ratio = got[sizes[-1]]["rss"] / got[BASE]["rss"]
    print(f"bench-scale: ratio {ratio:.3f}, goal {GOAL:g}")
    sys.exit(ratio > GOAL)


if __name__ == "__main__":
    main()
