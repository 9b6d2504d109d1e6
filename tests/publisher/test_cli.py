"""The command: exit codes, one line per error, and what it must never import."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from deep20ray_publisher import cli
from tests.artifacts import builder
from tests.publisher.sites import World

FORBIDDEN = ("ray", "httpx", "aiohttp", "deep20ray_actors", "deep20ray_prompts", "deep20ray_cluster", "deep20ray_cohorts")


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the command in this process."""

    def run(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["deep20ray-publisher", *map(str, arguments)])
        try:
            code: object = cli.main()
        except SystemExit as end:
            code = end.code or 0
        assert isinstance(code, int)
        return Done(code, *capsys.readouterr())

    return run


def test_build_and_verify(world: World, command: Command) -> None:
    folder = world.add("alpha")
    out = world.root / "site"
    done = command("build", world.runs, "--trust", world.key.public, "--out", out, "--preview")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("pages (preview)\n") and (out / "index.html").is_file()
    done = command("verify", folder, "--trust", world.key.public)
    assert done.code == 0 and done.out.startswith(f"verified: simulated run {folder.name}, 6 trials, ")
    assert ", 0 wrong, 0 missing\n" in done.out
    leaky = builder.recorded(builder.draft(model_id="leaky"))
    next(row for row in leaky.rows["audits"] if row["call"] == "judge")["message_sha256"] = "1" * 64
    done = command("verify", builder.force_sign(leaky.seal(world.runs), world.key.private), "--trust", world.key.public)
    assert done.code == 4 and "judge (attempt 1, ask 0): it was sent another message than it may have seen" in done.err


def test_refusals_and_their_codes(world: World, tmp_path: Path, command: Command) -> None:
    folder = world.add("alpha")
    refused = command("build", world.runs, "--trust", world.key.public, "--out", tmp_path / "site")
    assert refused.code == 4 and "no release contract covers it" in refused.err
    (folder / "plan.json").write_bytes(b"{}")
    for arguments in (("build", world.runs, "--out", tmp_path / "site", "--preview"), ("verify", folder)):
        refused = command(*arguments, "--trust", world.key.public)
        assert refused.code == 4 and refused.err.count("\n") == 1 and refused.out == ""
    assert command("build", world.runs, "--trust", tmp_path / "none.pub", "--out", tmp_path / "site").code == 2
    assert command("build", world.runs, "--out", tmp_path / "site").code == 2
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("unwritable", ["file/site", "file"])
def test_an_unusable_out(world: World, unwritable: str, command: Command) -> None:
    world.add("alpha")
    (world.root / "file").write_text("not a folder")
    refused = command("build", world.runs, "--trust", world.key.public, "--out", world.root / unwritable, "--preview")
    assert refused.code == 2 and refused.err.count("\n") == 1


def test_building_imports_nothing_that_plays_or_signs(world: World) -> None:
    world.add("alpha")
    script = (
        "import sys; from pathlib import Path; from deep20ray_artifacts.keys import load_public; from deep20ray_publisher import site, cli\n"
        "site.build([Path(sys.argv[1])], [load_public(Path(sys.argv[2]))], Path(sys.argv[3]), True)\n"
        "print(' '.join(sorted(name for name in sys.modules if name.split('.')[0] in sys.argv[4].split(','))))\n"
        "print('deep20ray_artifacts.signing' in sys.modules)"
    )
    arguments = [world.runs, world.key.public, world.root / "site", ",".join(FORBIDDEN)]
    done = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "\nFalse\n"
