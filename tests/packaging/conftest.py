"""Both wheels, built once; virtual environments that hold nothing else."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECTS = (ROOT, ROOT / "publisher")


@dataclass(frozen=True)
class Built:
    """What the two projects are distributed as."""

    folder: Path

    def one(self, pattern: str) -> Path:
        (path,) = self.folder.glob(pattern)
        return path

    @property
    def base(self) -> Path:
        return self.one("deep20ray-0*.whl")

    @property
    def publisher(self) -> Path:
        return self.one("deep20ray_publisher-0*.whl")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The folder that DEEP20RAY_WHEELS names, else a fresh build."""
    if given := os.environ.get("DEEP20RAY_WHEELS"):
        return Built(Path(given))
    out = tmp_path_factory.mktemp("dist")
    for project in PROJECTS:
        run([sys.executable, "-m", "hatchling", "build", "-d", out], cwd=project)
    return Built(out)


@dataclass(frozen=True)
class Venv:
    """A virtual environment."""

    root: Path

    @property
    def python(self) -> Path:
        return self.root / "bin" / "python"

    def command(self, name: str, *arguments: object) -> str:
        return run([self.root / "bin" / name, *arguments])

    def modules(self) -> set[str]:
        """The top-level modules that can be imported there and aren't Python's own."""
        code = "import pkgutil, sys; print(*{m.name for m in pkgutil.iter_modules()} - set(sys.stdlib_module_names))"
        return set(run([self.python, "-c", code]).split())


@pytest.fixture(scope="session")
def signing_machine(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Venv:
    """The base alone, without extras, at the pinned versions."""
    return installed(tmp_path_factory.mktemp("base"), [built.base])


@pytest.fixture(scope="session")
def publishing_machine(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Venv:
    """The publisher and what it asks for."""
    return installed(tmp_path_factory.mktemp("publisher"), [built.base, built.publisher])


def installed(folder: Path, wheels: Sequence[Path]) -> Venv:
    """A fresh environment with these wheels and their dependencies, by uv when it is there, else by pip."""
    pins = folder / "pins.txt"
    # As constraints, and without hashes: wheels just built have none.
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins.write_text("\n".join(line.rstrip("\\ ") for line in lines if re.match(r"[a-z0-9]", line)) + "\n")
    venv = Venv(folder / "venv")
    if shutil.which("uv") and subprocess.run(["uv", "--version"], capture_output=True).returncode == 0:
        run(["uv", "venv", "-q", "--python", sys.executable, venv.root])
        run(["uv", "pip", "install", "-q", "--python", venv.python, "-c", pins, *wheels])
    else:
        run([sys.executable, "-m", "venv", venv.root])
        run([venv.python, "-m", "pip", "install", "-q", "-c", pins, *wheels])
    return venv


def run(command: Sequence[object], cwd: Path | None = None) -> str:
    """What a command prints; a failure shows what it said."""
    # What surrounds the tests must not reach into the new environment.
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=cwd, env=clean, timeout=600)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout
