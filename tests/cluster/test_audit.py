"""The audit with the private archive: every message and wire request is computed again; whatever a role was told beyond its own shows."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import deep20ray_cohorts
from deep20ray.canonical import canonical
from deep20ray_actors.outcomes import Browsed, Completed, Fetched, Page, Source
from deep20ray_artifacts.audit import Fault, audit_run
from deep20ray_artifacts.errors import ArchiveRefused, FolderRefused
from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.private import EVENTS, PURGED, ROUTES, purge_private, read_private
from deep20ray_artifacts.signing import new_key, sign_run
from deep20ray_artifacts.verify import SealedRun, check_sealed, verify_run
from deep20ray_cluster.folder import make_folder
from deep20ray_cluster.journal import Journal
from deep20ray_cluster.plan import resolve
from deep20ray_cluster.playback import playback
from deep20ray_cluster.recorded import read_routes, recorded_routes
from deep20ray_cluster.sweep import parse_sweep

from .audited import HostDesk, Run, audits, sealing
from .blind import play
from .command import Ended
from .fakes import MemoryJournal, counter, says
from .openings import TIED, TOLD, Opening
from .test_research import roles
from .test_seal import journal_of, make_plan, sealed
from .test_seal import play as play_trial
from .ways import BASE, BY_ID
from .worlds import sweep_text

AT = "2026-12-01T00:00:00.000Z"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A whole game over real HTTP: queries, searches, pages, all five roles."""
    return sealing(play(BASE), tmp_path_factory.mktemp("audit") / "out")


# ---- honest runs


def test_every_message_and_request_of_an_honest_game_is_computed_again(base: Run) -> None:
    public, whole = audits(base)
    assert public.findings == whole.findings == ()
    assert {role: counts.checked for role, counts in whole.roles.items()} == {role: counts.calls for role, counts in whole.roles.items()}
    assert whole.total.requests_checked == whole.total.calls > 30
    only = public.roles["oracle"].archive_only
    assert only == public.total.archive_only > 0 and public.total.checked == public.total.calls - only


def test_reused_answers_are_played_again_too(tmp_path: Path) -> None:
    way = next(way for way in BY_ID.values() if way.one.rounds > 1)
    run = sealing(play(way.other), tmp_path / "out")
    public, whole = audits(run)
    assert whole.findings == public.findings == ()
    assert whole.total.requests_checked == whole.total.calls
    assert sum(row is not None for row in check_sealed(run[0]).tables["turns"]["source_run"].to_pylist()) > 0


@pytest.mark.parametrize("give_up", [False, True])
async def test_lost_superseded_and_failed_attempts_are_part_of_it(tmp_path: Path, give_up: bool) -> None:
    plan = make_plan()
    journal = await journal_of(plan, tmp_path / "journal.sqlite", give_up=give_up)
    folder = make_folder(tmp_path / "out")
    path = sealed(plan, folder, journal)
    journal.close()
    run = check_sealed(path)
    report = audit_run(run)
    assert report.findings == ()
    states = set(run.tables["audits"]["state"].to_pylist())
    assert states == {"terminal", "superseded", "lost"}
    # An unfinished turn's question isn't published, and so neither is what was asked about it.
    assert (report.roles["judge"].archive_only > 0) is give_up
    files = read_private(folder.private(path.name), run.statement.predicate)
    assert files is not None
    played = await_playback(run, files)
    rows = run.tables["audits"].to_pylist()
    assert len(played) == len(rows)
    assert sorted(call.message.digest for call in played.values()) == sorted(row["message_sha256"] for row in rows)


def await_playback(run: SealedRun, files: dict[str, bytes]) -> Any:
    """A playback has a loop of its own, and this test one already."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(playback, run, files).result()


NATIVE = (
    sweep_text("http://127.0.0.1:9", subjects=("T-0008",))
    .replace('kind = "searxng"\nquery_target = 0\nfetch_pages = 0\nbase_url = "http://127.0.0.1:9"', 'kind = "native"\nquery_target = 2')
    .replace('[accounts.oracle]\nkind = "openai-chat"', '[accounts.oracle]\nkind = "anthropic"')
)
"""A sweep whose Oracle searches with its provider's own tool, and has the pages fetched that it gives no text of."""


async def test_an_oracle_with_its_providers_search(tmp_path: Path) -> None:
    plan = resolve(parse_sweep(NATIVE, "s.toml"), deep20ray_cohorts.load("core-1.1"), datetime(2026, 12, 1, tzinfo=UTC))
    (run,) = plan.runs
    routes = read_routes(canonical(recorded_routes(plan, run)), plan.document, run.id)
    page = "https://a.example/kite"
    said = says(answer="YES", basis="evidence", statement="", evidence=[{"url": page, "excerpt": "It flies."}])
    found = Completed(said.text, Browsed(1, (Source(page, "A", "", whole=False),), barred=False))
    good = roles(native=found, pages=lambda urls: Fetched(tuple(Page(url, url, "It flies. It does.") for url in urls)))
    memory, journal = MemoryJournal(), Journal(tmp_path / "journal.sqlite")
    await play_trial(plan, run.trials[0], HostDesk(good, routes), memory, counter())
    await journal.append(*memory.events)
    folder = make_folder(tmp_path / "out")
    path = sealed(plan, folder, journal)
    journal.close()
    checked = check_sealed(path)
    report = audit_run(checked)
    # What it was asked follows from the question; which pages were fetched only from its reply.
    assert report.findings == () and report.roles["oracle"].checked == report.roles["oracle"].archive_only == 1
    files = read_private(folder.private(path.name), checked.statement.predicate)
    assert files is not None
    whole = audit_run(checked, {key: call.recomputed for key, call in await_playback(checked, files).items()})
    assert whole.findings == () and whole.total.requests_checked == whole.total.calls == 6


# ---- planted leaks


def check_found(opening: Opening, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as patch:
        opening.patch(patch)
        run = sealing(play(BY_ID[opening.way].one), tmp_path / "out")
    public, whole = audits(run)
    assert opening.role in {finding.role for finding in whole.findings}
    assert not whole.complete
    if opening.name.startswith("told") and opening.role != "oracle":
        assert {finding.role for finding in public.findings} == {opening.role}
        assert {finding.fault for finding in public.findings} == {Fault.MESSAGE}


_ONE_EACH = [
    next(opening for opening in TOLD if opening.role == role and "token" in opening.name)
    for role in ("guesser", "oracle", "reviewer", "judge", "validator")
]


@pytest.mark.parametrize("opening", _ONE_EACH, ids=lambda opening: opening.id)
def test_a_leak_planted_in_each_role_is_found(opening: Opening, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check_found(opening, monkeypatch, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("opening", [opening for opening in TOLD if opening not in _ONE_EACH], ids=lambda opening: opening.id)
def test_every_planted_leak_is_found(opening: Opening, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check_found(opening, monkeypatch, tmp_path)


def test_a_search_that_nobody_asked_for_shows_with_the_archive(tmp_path: Path) -> None:
    played = play(BASE)
    (first, *_) = (index for index, event in enumerate(played.events) if event.call == "search" and event.kind == "reply")
    asked = next(event for event in played.events if (event.call, event.kind) == ("search", "started"))
    extra = [replace(event, call="search-9") for event in (asked, played.events[first])]
    events = (*played.events[: first + 1], *extra, *played.events[first + 1 :])
    public, whole = audits(sealing(replace(played, events=events), tmp_path / "out"))
    assert public.findings == (), "what the Oracle searches for isn't published"
    assert [(finding.call, finding.fault) for finding in whole.findings] == [("search-9", Fault.ARCHIVE)]


@pytest.mark.parametrize("name", ["a header with the lease", "an idempotency key"])
def test_what_an_actor_adds_to_its_request_shows_with_the_archive(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as patch:
        TIED[name][0](patch)
        run = sealing(play(BASE), tmp_path / "out")
    public, whole = audits(run)
    assert public.findings == ()
    assert {finding.fault for finding in whole.findings} == {Fault.REQUEST}
    assert all(counts.wrong for counts in whole.roles.values())


# ---- the archive


def spoiled(base: Run, tmp_path: Path, name: str, change: Callable[[bytes], bytes]) -> Run:
    private = tmp_path / "private"
    shutil.copytree(base[1], private)
    (private / name).write_bytes(change((private / name).read_bytes()))
    return base[0], private


@pytest.mark.parametrize("name", [EVENTS, ROUTES])
@pytest.mark.parametrize("where", [0, 1000, -1])
def test_one_changed_byte_of_the_archive_is_refused(base: Run, tmp_path: Path, name: str, where: int) -> None:
    def change(data: bytes) -> bytes:
        spoilt = bytearray(data)
        spoilt[where] ^= 1
        return bytes(spoilt)

    with pytest.raises(ArchiveRefused, match="isn't the file that run .* commits to"):
        audits(spoiled(base, tmp_path, name, change))


def test_an_archive_of_another_size_or_with_more_in_it_is_refused(base: Run, tmp_path: Path) -> None:
    with pytest.raises(FolderRefused, match="bytes, not the"):
        audits(spoiled(base, tmp_path / "one", EVENTS, lambda data: data + b"\n"))
    run = spoiled(base, tmp_path / "two", EVENTS, bytes)
    (run[1] / "more.txt").write_text("x")
    with pytest.raises(FolderRefused, match="doesn't belong"):
        audits(run)


def test_events_that_are_not_the_public_chains_are_refused(base: Run) -> None:
    run = check_sealed(base[0])
    files = read_private(base[1], run.statement.predicate)
    assert files is not None
    first, _, rest = files[EVENTS].partition(b"\n")
    for data in (rest, rest + first + b"\n", files[EVENTS].rstrip(b"\n")):
        with pytest.raises(ArchiveRefused, match=r"its events aren't those of chain\.arrow"):
            playback(run, files | {EVENTS: data})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("judge", "model"), "another-model"),
        (("guesser", "prompt", "system"), "You know the subject."),
        (("oracle", "base_url"), "http://127.0.0.1:1/elsewhere/v1"),
        (("validator", "sampling", "temperature"), 0.5),
        (("reviewer", "max_output_tokens"), 17),
    ],
)
def test_routes_that_are_not_the_public_plans_are_refused(base: Run, path: tuple[str, ...], value: object) -> None:
    run = check_sealed(base[0])
    files = read_private(base[1], run.statement.predicate)
    assert files is not None
    routes = json.loads(files[ROUTES])
    inner = routes
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    with pytest.raises(ArchiveRefused, match=rf"routes.json: the {path[0]}'s .* isn't what the public plan says"):
        playback(run, files | {ROUTES: canonical(routes)})


def test_an_archive_is_its_owners_alone_and_holds_no_credential(base: Run) -> None:
    assert base[1].stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in base[1].iterdir()} == {EVENTS: 0o600, ROUTES: 0o600}
    assert b"key-of-the-" not in b"".join(path.read_bytes() for path in base[1].iterdir())


def test_a_purged_archive_leaves_the_commitment(base: Run, tmp_path: Path) -> None:
    run = spoiled(base, tmp_path, EVENTS, bytes)
    checked = check_sealed(run[0])
    assert purge_private(run[1], checked.statement.predicate, AT) is True
    assert [path.name for path in run[1].iterdir()] == [PURGED]
    note = json.loads((run[1] / PURGED).read_text())
    assert (note["run_id"], note["purged_at"]) == (run[0].name, AT)
    assert note["committed"] == [file.model_dump() for file in checked.statement.predicate.private]
    assert read_private(run[1], checked.statement.predicate) is None
    assert purge_private(run[1], checked.statement.predicate, AT) is False
    assert audit_run(check_sealed(run[0])).complete


def test_nothing_but_an_archive_is_ever_purged(base: Run, tmp_path: Path) -> None:
    run = spoiled(base, tmp_path, EVENTS, bytes)
    predicate = check_sealed(run[0]).statement.predicate
    (run[1] / "thesis.txt").write_text("x")
    with pytest.raises(FolderRefused, match=r"'thesis.txt' doesn't belong"):
        purge_private(run[1], predicate, AT)
    (run[1] / "thesis.txt").unlink()
    (run[1] / PURGED).write_text('{"run_id":"another"}')
    with pytest.raises(ArchiveRefused, match="isn't that of run"):
        purge_private(run[1], predicate, AT)
    assert (run[1] / EVENTS).stat().st_size > 0


# ---- the commands


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """A sweep's folder with one sealed run of the built-in cohort's own subjects."""
    import asyncio

    async def make() -> None:
        plan, folder = make_plan(), make_folder(tmp_path / "out")
        journal = await journal_of(plan, folder.journal)
        sealed(plan, folder, journal)
        journal.close()

    asyncio.run(make())
    return tmp_path / "out"


def test_the_audit_as_a_command(demo: Path, deep20ray: Callable[..., Ended], tmp_path: Path) -> None:
    (run,) = (demo / "runs").iterdir()
    done = deep20ray("audit", run)
    assert done.code == 0, done
    assert "cohort core-1.1: every subject is as its list has it" in done.out and "doesn't have" not in done.out
    assert "guesser    28 calls, 28 messages checked, 0 checkable only with the archive, 0 wrong, 0 missing" in done.out
    # The scripted desk makes no requests: with the archive that shows.
    found = deep20ray("audit", run, "--private", demo / "private" / run.name, "--json", "--requests", tmp_path / "requests.jsonl")
    assert found.code == 4 and "records are wrong" in found.complaint
    assert {finding["fault"] for finding in json.loads(found.out)["findings"]} == {str(Fault.REQUEST)}
    requests = [json.loads(line) for line in (tmp_path / "requests.jsonl").read_text().splitlines()]
    assert {line["call"] for line in requests} == {"guesser", "search", "oracle", "reviewer", "judge", "validator"}
    assert (tmp_path / "requests.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_signed_run_is_audited_under_a_trusted_key(demo: Path, deep20ray: Callable[..., Ended], tmp_path: Path) -> None:
    (run,) = (demo / "runs").iterdir()
    key = new_key(tmp_path / "keys", "mine")
    sign_run(run, key.private)
    verify_run(run, [load_public(key.public)])
    assert deep20ray("audit", run, "--trust", key.public).code == 0
    assert deep20ray("audit", run).code == 4


def test_another_cohort_is_refused(demo: Path, deep20ray: Callable[..., Ended]) -> None:
    (run,) = (demo / "runs").iterdir()
    done = deep20ray("audit", run, "--cohort", "core-1.0")
    assert done.code == 4 and "core-1.0 isn't the cohort that it was played with" in done.complaint


def test_purging_as_a_command(demo: Path, deep20ray: Callable[..., Ended]) -> None:
    (run,) = (demo / "runs").iterdir()
    asked = deep20ray("archive", "purge", run)
    assert asked.code == 2 and "say --yes" in asked.complaint and (demo / "private" / run.name / EVENTS).exists()
    done = deep20ray("archive", "purge", run, "--yes")
    assert done.code == 0 and "the statement still commits to what it held" in done.out
    assert "journal.sqlite holds the same" in done.complaint
    after = deep20ray("audit", run, "--private", demo / "private" / run.name)
    assert after.code == 0 and "the private archive was purged" in after.out
    assert "only with the archive" in after.out
