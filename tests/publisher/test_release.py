"""Official sites: runs that equal a signed contract, per model the newest of them; all else is left out or stops the build."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from deep20ray.canonical import sha256
from deep20ray.errors import Deep20RayError
from deep20ray_artifacts.contract import Contract
from deep20ray_artifacts.documents import verify_document
from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.signing import NewKey, new_key
from deep20ray_publisher import site
from deep20ray_publisher.catalog import Entry
from deep20ray_publisher.errors import AuditFailed, NotOfficial, SelectionTie
from tests.artifacts import builder
from tests.artifacts.releases import contract_of, release_draft, sealed, signed_contract
from tests.publisher.sites import Html, only


@dataclass
class Release:
    """Runs, contracts and the key that signs both."""

    root: Path
    key: NewKey

    def add(self, run: builder.RunDraft) -> Path:
        return sealed(run, self.root / "runs", self.key.private)

    def build(self, *contracts: Contract, preview: bool = False) -> tuple[Path, tuple[Entry, ...]]:
        keys = [load_public(self.key.public)]
        paths = [signed_contract(self.root / "contracts" / f"{n}.dsse.json", each, self.key.private) for n, each in enumerate(contracts)]
        out = self.root / "site"
        _, others = site.build([self.root / "runs"], keys, out, preview, [verify_document(Contract, path, keys) for path in paths])
        return out, others


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return Release(tmp_path, new_key(tmp_path / "keys", "release"))


def test_the_newest_qualifying_run_is_used_never_the_best(release: Release) -> None:
    best, newest = release_draft("alpha"), release_draft("alpha", hours=2, scores={f"T-{n:04}": [4, 4, 4] for n in range(1, 11)})
    other = release_draft("beta", hours=1)
    for run in (best, newest, other):
        release.add(run)
    out, others = release.build(contract_of(best, other))
    assert others == ()
    text = (out / "e/1.1/leaderboard.csv").read_text()
    assert newest.facts["run_id"] in text and best.facts["run_id"] not in text and other.facts["run_id"] in text
    page = Html.of(only(out, f"e/1.1/runs/{str(newest.facts['run_id']).lower()}/index.html"))
    assert "official under contract edition-1.1-r1" in page.words
    assert json.loads((out / "site-manifest.json").read_text())["preview"] is False


def test_a_newer_run_that_does_not_qualify_changes_nothing(release: Release) -> None:
    good, drifting, simulated = release_draft("alpha"), release_draft("alpha", hours=3), release_draft("alpha", hours=4, simulated=True)
    next(row for row in drifting.rows["audits"] if row["call"] == "oracle")["served_model"] = "another"
    for run in (good, drifting, simulated):
        release.add(run)
    out, others = release.build(contract_of(good))
    assert {entry.record.run.run_id for entry in others} == {drifting.facts["run_id"], simulated.facts["run_id"]}
    reasons = {entry.record.run.run_id: entry.unofficial for entry in others}
    assert reasons[drifting.facts["run_id"]][0].startswith("oracle: answered under listed names")
    assert reasons[simulated.facts["run_id"]][0].startswith("played by real models")
    published = "".join(str(path) for path in out.rglob("*"))
    assert good.facts["run_id"] in published
    assert drifting.facts["run_id"] not in published and simulated.facts["run_id"] not in published


def test_runs_of_two_accepted_revisions_are_both_official(release: Release) -> None:
    one, two = release_draft("alpha"), release_draft("beta", run_seed="seed-2")
    for run in (one, two):
        release.add(run)
    with_one, others = release.build(contract_of(one))
    assert [entry.record.run.model_id for entry in others] == ["beta"]
    assert with_one.is_dir()
    _, others = release.build(contract_of(one), contract_of(two, id_="edition-1.1-r2"))
    assert others == ()


def test_a_tie_in_time_between_qualifying_runs_stops_the_build(release: Release) -> None:
    one = release_draft("alpha")
    two = release_draft("alpha")
    run_id = str(two.facts["run_id"])
    two.facts["run_id"] = two.rows["run"][0]["run_id"] = run_id[:-1] + ("0" if run_id[-1] != "0" else "1")
    two.plan = two.plan.replace(run_id.encode(), str(two.facts["run_id"]).encode())
    two.rows["run"][0]["plan_sha256"] = sha256(two.plan)
    for run in (one, two):
        release.add(run)
    with pytest.raises(SelectionTie, match="both are the newest completed run of model 'alpha'"):
        release.build(contract_of(one))
    assert not (release.root / "site").exists()


def test_one_contradicted_run_stops_the_build_whatever_the_others_are(release: Release) -> None:
    good, leaky = release_draft("alpha"), builder.recorded(release_draft("beta"))
    next(row for row in leaky.rows["audits"] if row["call"] == "reviewer")["message_sha256"] = "1" * 64
    for run in (good, leaky):
        release.add(run)
    for preview in (False, True):
        with pytest.raises(AuditFailed, match=r"reviewer .*: it was sent another message than it may have seen"):
            release.build(contract_of(good), preview=preview)


def test_without_an_official_run_there_is_no_site(release: Release) -> None:
    release.add(release_draft("alpha"))
    with pytest.raises(NotOfficial, match="no release contract covers it"):
        release.build()
    with pytest.raises(NotOfficial, match="Guesser is registered: 'alpha' isn't"):
        release.build(contract_of(release_draft("beta")))


def test_a_contract_that_cannot_be_trusted_stops_the_build(release: Release, tmp_path: Path) -> None:
    release.add(release_draft("alpha"))
    other = new_key(tmp_path / "other", "other")
    path = signed_contract(tmp_path / "c.dsse.json", contract_of(release_draft("alpha")), other.private)
    with pytest.raises(Deep20RayError, match="not signed by a trusted key"):
        verify_document(Contract, path, [load_public(release.key.public)])


def test_a_preview_says_of_each_run_whether_it_is_official(release: Release) -> None:
    one, two = release_draft("alpha"), release_draft("beta", run_seed="seed-2")
    for run in (one, two):
        release.add(run)
    out, others = release.build(contract_of(one), preview=True)
    assert others == ()
    words = [Html.of(path).words for path in sorted(out.glob("e/1.1/runs/*/index.html"))]
    assert sum("official under contract edition-1.1-r1" in each for each in words) == 1
    assert sum("not official: seed:" in each for each in words) == 1
