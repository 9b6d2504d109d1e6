"""The oldest pyarrow that is supported and the one that is installed: what one writes the other verifies, and both write the same bytes."""

import hashlib
import json
import os
import subprocess
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.signing import new_key
from deep20ray_artifacts.verify import verify_run
from tests.artifacts.builder import draft, recorded, sealed_run

ROOT = Path(__file__).parents[2]
SCRIPT = """
import hashlib, json, sys
from pathlib import Path
import pyarrow
from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.verify import verify_run
from tests.artifacts.builder import sealed_run
run, public, private, other = map(Path, sys.argv[1:])
verified = verify_run(run, [load_public(public)])
made = sealed_run(other, private)
print(json.dumps([pyarrow.__version__, verified.statement_sha256, str(made)]))
"""


def _oldest() -> str:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (line,) = (each for each in wanted if each.startswith("pyarrow"))
    return f"{line.removeprefix('pyarrow>=')}.0.0"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has the oldest pyarrow and what verifying needs, and nothing else."""
    where = ROOT / ".tools" / "pyarrow-oldest"
    found = where / "bin" / "python"
    check = [str(found), "-c", f"import pyarrow, pydantic, cryptography, rfc8785; assert pyarrow.__version__ == '{_oldest()}'"]
    try:
        if not found.exists() or subprocess.run(check, capture_output=True, check=False).returncode:
            subprocess.run(["uv", "venv", "-q", "--clear", str(where)], check=True, capture_output=True)
            packages = [f"pyarrow=={_oldest()}", "pydantic", "cryptography", "rfc8785"]
            subprocess.run(["uv", "pip", "install", "-q", "--python", str(found), *packages], check=True, capture_output=True, timeout=300)
    except (OSError, subprocess.SubprocessError):
        pytest.skip(f"pyarrow {_oldest()} can't be installed here (it takes uv and a package registry)")
    return found


@pytest.mark.full
def test_runs_verify_and_are_made_alike_in_both(tmp_path: Path, python: Path) -> None:
    key = new_key(tmp_path / "keys", "k")
    run = sealed_run(tmp_path / "here", key.private)
    packages = [ROOT, *(ROOT / name for name in ("actors", "artifacts", "cluster", "cohorts", "prompts", "publisher"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, packages))}
    command = [*map(str, (python, "-c", SCRIPT, run, key.public, key.private, tmp_path / "there"))]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    version, digest, other = json.loads(done.stdout)
    assert version == _oldest() != pa.__version__
    ours, theirs = (verify_run(Path(path), [load_public(key.public)]) for path in (run, other))
    assert ours.statement_sha256 == digest == theirs.statement_sha256
    assert _bytes(run) == _bytes(Path(other)), "Arrow's writer made the same bytes"


def test_the_same_rows_make_the_same_bytes(tmp_path: Path) -> None:
    assert _bytes(recorded(draft()).seal(tmp_path / "one")) == _bytes(recorded(draft()).seal(tmp_path / "two"))


def _bytes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
