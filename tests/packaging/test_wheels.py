"""What is distributed: complete, small, and without the cluster for those who only check, sign or publish."""

import subprocess
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

from tests.artifacts.builder import draft, recorded
from tests.packaging.conftest import ROOT, Built, Venv

HEAVY = {"ray", "httpx", "aiohttp", "httpx_aiohttp", "psutil", "genai_prices", "trafilatura", "lxml"}
PACKAGES = {
    "deep20ray": "deep20ray",
    "actors": "deep20ray_actors",
    "artifacts": "deep20ray_artifacts",
    "cluster": "deep20ray_cluster",
    "cohorts": "deep20ray_cohorts",
    "prompts": "deep20ray_prompts",
}


def tracked(folder: Path) -> set[str]:
    """Files under a package's folder, as paths relative to it; none of them made by running it."""
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {name for name in files if "__pycache__" not in name}


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def requirements(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(metadata).decode()).get_all("Requires-Dist") or []


def test_the_base_wheel_holds_every_package_with_its_data_and_nothing_else(built: Built) -> None:
    expected = set()
    for folder, package in PACKAGES.items():
        source = ROOT / folder if folder == package else ROOT / folder / package
        expected |= {f"{package}/{name}" for name in tracked(source)}
    held = {name for name in names(built.base) if ".dist-info/" not in name}
    assert held == expected
    assert {"deep20ray/py.typed", "deep20ray_cluster/demo.toml", "deep20ray_cohorts/index.json"} <= held


def test_the_publisher_wheel_holds_its_templates(built: Built) -> None:
    held = {name for name in names(built.publisher) if ".dist-info/" not in name}
    assert held == {f"deep20ray_publisher/{name}" for name in tracked(ROOT / "publisher" / "deep20ray_publisher")}
    assert any(name.endswith("templates/base.html") for name in held)


def test_wheels_carry_the_licence(built: Built) -> None:
    for wheel in (built.base, built.publisher):
        assert any(name.endswith("licenses/LICENSE") for name in names(wheel)), wheel.name
    assert (ROOT / "LICENSE").read_bytes() == (ROOT / "publisher" / "LICENSE").read_bytes()


def test_what_plays_games_is_an_extra(built: Built) -> None:
    plain = {line.split(";")[0].rstrip("<>=!~ .,0123456789") for line in requirements(built.base) if "extra ==" not in line}
    assert plain
    assert not plain & {"ray", "httpx", "httpx-aiohttp", "aiohttp", "psutil"}
    assert any(line.startswith("ray") and "extra == 'run'" in line for line in requirements(built.base))


def test_the_sdist_holds_sources_alone(built: Built) -> None:
    with tarfile.open(built.one("deep20ray-0*.tar.gz")) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert tops == {*PACKAGES, "README.md", "LICENSE", "pyproject.toml", "PKG-INFO", ".gitignore"}


def test_a_signing_machine_has_neither_ray_nor_http(signing_machine: Venv) -> None:
    assert not signing_machine.modules() & HEAVY
    assert "resume" in signing_machine.command("deep20ray", "--help")


def test_a_signing_machine_makes_keys_signs_verifies_and_audits(signing_machine: Venv, tmp_path: Path) -> None:
    run = recorded(draft()).seal(tmp_path / "runs")
    signing_machine.command("deep20ray", "keys", "new", "k", "--dir", tmp_path, "--throwaway")
    signing_machine.command("deep20ray", "sign", run, "--key", tmp_path / "k.key")
    assert (tmp_path / "k.key").stat().st_mode & 0o077 == 0
    assert run.name in signing_machine.command("deep20ray", "verify", run, "--trust", tmp_path / "k.pub")
    assert "0 wrong, 0 missing" in signing_machine.command("deep20ray", "audit", run, "--trust", tmp_path / "k.pub")


def test_playing_without_the_extra_says_what_to_install(signing_machine: Venv, tmp_path: Path) -> None:
    done = subprocess.run([signing_machine.root / "bin" / "deep20ray", "run", "--out", tmp_path / "o"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "deep20ray[run]" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_publishing_machine_builds_a_site_without_ray(publishing_machine: Venv, tmp_path: Path) -> None:
    assert not publishing_machine.modules() & HEAVY
    run = recorded(draft()).seal(tmp_path / "runs")
    publishing_machine.command("deep20ray", "keys", "new", "k", "--dir", tmp_path, "--throwaway")
    publishing_machine.command("deep20ray", "sign", run, "--key", tmp_path / "k.key")
    publishing_machine.command(
        "deep20ray-publisher", "build", tmp_path / "runs", "--trust", tmp_path / "k.pub", "--preview", "--out", tmp_path / "site"
    )
    assert "<!doctype html>" in (tmp_path / "site" / "index.html").read_text().lower()
