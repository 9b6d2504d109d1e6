"""Plays every run of a folder of recorded games through the whole system and compares. Exit code 1 on any mismatch."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import deep20ray_cohorts
from deep20ray.errors import Deep20RayError
from deep20ray_cluster import driver
from deep20ray_cluster.memory import MAX_ATTEMPTS
from deep20ray_cluster.ray_local import ray_session
from deep20ray_cluster.sweep import parse_sweep
from tests.replay import compare
from tests.replay.recording import RecordingError, Run, read
from tests.replay.server import COHORT

ROLES = ("guesser", "oracle", "reviewer", "judge", "validator")


@contextmanager
def server(folder: Path, salt: str) -> Iterator[str]:
    """The replay server's address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.replay.server", str(folder), salt], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RecordingError("the replay server did not start; it says why above")
        yield json.loads(line)["url"]
    finally:
        process.kill()
        process.communicate()


def sweep_of(run: Run, url: str) -> str:
    """The sweep file of one recorded run."""
    subjects = sorted({subject for subject, _ in run.games})
    rounds = max(round_ for _, round_ in run.games)
    known = {subject.id for subject in deep20ray_cohorts.load(COHORT).subjects}
    if not known.issuperset(subjects) or len(run.games) != len(subjects) * rounds:
        raise RecordingError(f"run {run.id}: its trials are not subjects of {COHORT} times rounds 1 to {rounds}")
    accounts = "".join(
        f'[accounts.{role}]\nkind = "openai-chat"\nbase_url = "{url}/{run.id}/{role}/v1"\nmax_concurrency = 64\n' for role in ROLES
    )
    support = "".join(f'[support.{role}]\naccount = "{role}"\nmodel = "{role}"\n' for role in ROLES[1:])
    return f"""[sweep]
name = "replay"
edition = "1.0"
cohort = "{COHORT}"
seed = "{run.seed}"
rounds = {rounds}
subjects = {json.dumps(subjects)}
{accounts}
[search]
kind = "searxng"
query_target = 0
fetch_pages = 0
base_url = "{url}/{run.id}"
{support}
[[models]]
id = "{run.slug}"
name = {json.dumps(run.name)}
account = "guesser"
model = "guesser"
"""


def play(run: Run, url: str, out: Path) -> Path | None:
    """Plays one run and seals it. A trial that can't go on is tried as often as the rules allow, so that the run is sealed all the same."""
    text = sweep_of(run, url)
    options = driver.Options(os.environ)
    done = driver.start(parse_sweep(text, run.id), text, out, out, options)
    for _ in range(MAX_ATTEMPTS * len(run.games)):
        if done.sealed or done.interrupted or not done.owed:
            break
        done = driver.resume(out, options, repair=True)
    if done.interrupted:
        raise KeyboardInterrupt
    return done.sealed[0] if done.sealed else None


def publish(folders: list[Path], out: Path) -> Path:
    """Signs, audits and publishes sealed runs; returns the published board."""
    tool = Path(sys.executable).with_name("deep20ray")
    subprocess.run([tool, "keys", "new", "replay", "--dir", out], check=True, stdout=subprocess.DEVNULL)
    for folder in folders:
        subprocess.run([tool, "sign", folder, "--key", out / "replay.key"], check=True, stdout=subprocess.DEVNULL)
        private = folder.parents[1] / "private" / folder.name
        audit: list[str | Path] = [tool, "audit", folder, "--trust", out / "replay.pub", "--private", private]
        subprocess.run(audit, check=True, stdout=subprocess.DEVNULL)
    parents = sorted({str(folder.parent) for folder in folders})
    publisher = Path(sys.executable).with_name("deep20ray-publisher")
    subprocess.run([publisher, "build", *parents, "--trust", out / "replay.pub", "--preview", "--out", out / "site"], check=True)
    return out / "site" / "e" / "1.0" / "leaderboard.csv"


def replay(data: Path, out: Path, salt: str) -> tuple[int, int, list[str], float]:
    """Runs, trials, mismatches and the greatest difference of a score or bound."""
    runs = read(data, salt)
    lines: list[str] = []
    folders, whole = [], []
    with server(data, salt) as url, ray_session(os.environ):
        for run in runs.values():
            print(f"replay: {run.id}, {len(run.games)} trials", file=sys.stderr)
            folder = play(run, url, out / run.id)
            if folder is None:
                lines.append(f"{run.id}: it could not be sealed")
                continue
            folders.append(folder)
            lines += compare.trials(run, folder)
            # A run with a trial of another score has another score itself; that is one mismatch, not two.
            whole += [run] if compare.comparable(run, folder) else []
    worst = 0.0
    if folders:
        differing, worst = compare.scores(whole, publish(folders, out))
        lines += differing
    return len(runs), sum(len(run.games) for run in runs.values()), lines, worst


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="tests.replay", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, help="an empty folder that keeps the runs and the site; a temporary one without it")
    parser.add_argument("--salt", default="replay", help="makes the run seeds; another one where two turns share a seed")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="replay-") as temporary:
        out = args.out or Path(temporary)
        try:
            out.mkdir(parents=True, exist_ok=True)
            if any(out.iterdir()):
                raise RecordingError(f"{out} is not empty; give --out a new folder")
            runs, trials, lines, worst = replay(args.data, out.absolute(), args.salt)
        except (RecordingError, OSError) as error:
            print(f"replay: {error}", file=sys.stderr)
            return 2
        except Deep20RayError as error:
            print(f"replay: {error}", file=sys.stderr)
            return error.exit_code
        except subprocess.CalledProcessError as error:
            print(f"replay: {Path(error.cmd[0]).name} {error.cmd[1]} ended with exit code {error.returncode}", file=sys.stderr)
            return error.returncode
        except KeyboardInterrupt:
            return 130
    for line in lines:
        print(line)
    print(f"replay: {runs} runs, {trials} trials, {len(lines)} mismatches, max |difference| {worst:.2g}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
