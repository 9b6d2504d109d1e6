"""The same over the whole system: the driver, real Ray actors, real HTTP, a credential for each role; and where no credential may be."""

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from deep20ray.canonical import sha256
from deep20ray.subjects import TrustedSubject
from deep20ray_artifacts import agreement
from deep20ray_cluster import plan
from deep20ray_cluster.driver import Options, start
from deep20ray_cluster.sweep import read_sweep

from .audited import audits
from .blind import CALLS, Played, differ_elsewhere, differences, key_of, oddities, researching, role_of, trace
from .command import Running, events
from .provider import Provider, World
from .ways import BASE, KITE, ways
from .worlds import ROLES, sweep_text

SUBJECTS = tuple(f"S-{role}" for role in ROLES)


def scene(role: str) -> tuple[World, World, tuple[int, ...] | None]:
    """The role's own trial: its pair of worlds that differ in everything, and the turns that are compared."""
    subject = TrustedSubject(f"{role}'s kite", (f"kite of {role}",), KITE.description)
    base = replace(BASE, category=f"thing_of_{role}", subject=subject)
    way = next(way for way in ways(role, base) if way.name == "everything")
    # Here waits are real, so fewer calls are tried twice.
    return way.one, replace(way.other, faults=dict.fromkeys(CALLS[role], ("429",))), way.turns


def cohort(worlds: list[World]) -> str:
    text = 'id = "worlds"\n'
    for id_, world in zip(SUBJECTS, worlds, strict=True):
        names = {"canonical_name": world.subject.canonical_name, "description": world.subject.description}
        fields = {"id": id_, "category": world.category, **names, "aliases": list(world.subject.aliases)}
        text += "\n[[subjects]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items())
    return text


def write_sweep(folder: Path, url: str, worlds: list[World], keys: dict[str, str]) -> Path:
    """A sweep file of these worlds, and its cohort; ``keys`` are references to each role's credential."""
    folder.mkdir()
    (folder / "worlds.toml").write_text(cohort(worlds))
    text = researching(sweep_text(url, cohort="worlds.toml", subjects=SUBJECTS))
    for role, key in keys.items():
        text = text.replace(f"[accounts.{role}]\n", f"[accounts.{role}]\napi_key = {json.dumps(key)}\n")
    (folder / "sweep.toml").write_text(text)
    return folder / "sweep.toml"


def play(folder: Path, worlds: list[World], keys: dict[str, str]) -> Played:
    """Plays the worlds as one sweep: its driver, its actors and its journal are the real ones."""
    provider = Provider(worlds)
    with provider.in_a_thread() as url:
        path = write_sweep(folder, url, worlds, keys)
        done = start(*read_sweep(path), folder, folder / "out", Options(os.environ))
    assert (done.scored, done.owed, done.stopped) == (len(worlds), 0, None)
    for run in done.sealed:
        # What real actors noted of their requests is what their messages, prompts and settings give.
        public, whole = audits((run, done.folder.private(run.name)))
        assert public.findings == whole.findings == ()
        assert whole.total.requests_checked == whole.total.calls
    # Trials run side by side: the journal's order between them is chance.
    return Played(tuple(provider.seen), tuple(provider.authorizations), tuple(sorted(trace(events(folder / "out")))))


def only(played: Played, world: World) -> Played:
    """What belongs to one trial."""
    return replace(played, seen=tuple(seen for seen in played.seen if seen.category == world.category))


@pytest.mark.usefixtures("quiet_ray")
def test_real_actors_are_sent_the_same_bytes_in_both_worlds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The identity of a trial comes from its subject's names too; here the names alone may differ.
    for module in (plan, agreement):  # who plans, and who checks
        monkeypatch.setattr(module, "protocol_version", lambda edition, cohort: sha256(b"one protocol for both worlds"))
    keys = {}
    for role in ROLES:
        file = tmp_path / f"{role}.key"
        file.touch(mode=0o600)
        file.write_text(key_of(role) + "\n")
        keys[role] = f"file:{file}"
    scenes = {role: scene(role) for role in ROLES}
    one = play(tmp_path / "one", [first for first, _, _ in scenes.values()], keys)
    other = play(tmp_path / "other", [second for _, second, _ in scenes.values()], keys)
    for role, (world, _, turns) in scenes.items():
        left, right = only(one, world), only(other, world)
        assert any(differences(left, right, each) for each in ROLES if each != role), "the worlds do differ"
        assert differ_elsewhere(left, right, role)
        compared = left.sent(role, turns)
        assert {call for _, _, call in compared} == set(CALLS[role]) - {"pages"}, "there is something to compare"
        assert differences(left, right, role, turns) == []
    assert oddities(one) == oddities(other) == []
    for call, authorization in (*one.authorizations, *other.authorizations):
        assert authorization == (None if call == "search" else f"Bearer {key_of(call)}")
    assert not [role for seen in (*one.seen, *other.seen) for role in ROLES if key_of(role) in repr(seen.wire)]


class Held(Provider):
    """Holds the Validator's replies until it is told to go on: by then every role's key has been used."""

    def __init__(self, worlds: list[World]) -> None:
        super().__init__(worlds)
        self.go = threading.Event()

    async def _reply(self, request, call, body, messages):
        reply = await super()._reply(request, call, body, messages)
        while call == "validator" and not self.go.is_set():
            await self._wait(0.05)
        return reply


def test_no_worker_and_no_file_of_ray_holds_a_key_of_the_environment(tmp_path: Path) -> None:
    world = replace(BASE, guesser=(*BASE.guesser[:2], BASE.guesser[6]))
    worlds = [replace(world, category=f"c_{role}", subject=replace(KITE, canonical_name=f"{role} kite", aliases=())) for role in ROLES]
    provider = Held(worlds)
    canaries = {f"D20_TEST_KEY_{name.upper()}": f"canary-{os.urandom(12).hex()}-{name}" for name in (*ROLES, "search")}
    with provider.in_a_thread() as url, pytest.MonkeyPatch.context() as patch:
        for name, value in (*canaries.items(), ("D20_TEST_OTHER", "canary-of-no-account")):
            patch.setenv(name, value)
        path = write_sweep(tmp_path / "sweep", url, worlds, {role: f"env:D20_TEST_KEY_{role.upper()}" for role in ROLES})
        searching = 'kind = "brave"\napi_key = "env:D20_TEST_KEY_SEARCH"'
        path.write_text(path.read_text().replace('kind = "searxng"', searching))
        with Running("run", path, "--out", tmp_path / "out", "--progress", "none") as driver:
            driver.until(lambda: {role_of(call) for call, _ in provider.authorizations} == set(ROLES))
            found = list(traces(driver.descendants(), [value.encode() for value in canaries.values()]))
            known = list(traces(driver.descendants(), [b"canary-of-no-account"]))
            provider.go.set()
            done = driver.end()
    assert done.code == 0, done
    assert found == []
    assert known, "a variable that is no key is inherited, so a key would have been found"
    search = canaries.pop("D20_TEST_KEY_SEARCH")
    assert {value for call, value in provider.authorizations if call == "search"} == {search}
    assert {value for call, value in provider.authorizations if call != "search"} == {f"Bearer {value}" for value in canaries.values()}
    assert "canary-" not in done.out + done.err
    assert not [file for file in (tmp_path / "out").rglob("*") if file.is_file() and b"canary-" in file.read_bytes()]


def traces(processes: list[psutil.Process], canaries: list[bytes]) -> Iterator[str]:
    """Where a key shows: in a process's environment or command line, or in a file of the session's private home folder."""
    homes = set()
    workers = 0
    for process in processes:
        environment = Path(f"/proc/{process.pid}/environ").read_bytes()
        command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        workers += b"ray::" in command
        homes |= {entry.removeprefix(b"HOME=") for entry in environment.split(b"\0") if entry.startswith(b"HOME=")}
        if any(canary in environment + command for canary in canaries):
            yield f"process {command[:60]!r}"
    assert workers >= len(ROLES), "the actors are there"
    (home,) = homes
    files = [file for file in Path(os.fsdecode(home)).rglob("*") if file.is_file() and not file.is_symlink()]
    assert any("session_" in str(file) for file in files), "the session's files are there"
    for file in files:
        if any(canary in file.read_bytes() for canary in canaries):
            yield f"file {file}"
