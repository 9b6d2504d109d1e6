"""Building with a catalog: what isn't listed or was withdrawn isn't official, and a dropped run or an older catalog stops the build."""

from pathlib import Path

import pytest

from deep20ray_artifacts.catalog import Catalog, next_catalog
from deep20ray_artifacts.contract import Contract
from deep20ray_artifacts.documents import Signed, verify_bytes
from deep20ray_artifacts.errors import CatalogBroken
from deep20ray_artifacts.keys import TrustedKey, load_public
from deep20ray_artifacts.signing import NewKey, load_private, new_key, sign_payload
from deep20ray_artifacts.verify import VerifiedRun, verify_run
from deep20ray_publisher import catalog, making, site
from deep20ray_publisher.errors import RunMissing
from tests.artifacts.releases import contract_of, release_draft, sealed

T1, T2 = "2026-12-01T10:00:00.000Z", "2026-12-02T10:00:00.000Z"


class Shelf:
    """Two official runs of one model, and the catalog over them."""

    def __init__(self, root: Path) -> None:
        self.root, self.key = root, new_key(root / "keys", "k")
        drafts = [release_draft("alpha", hours) for hours in (0, 1)]
        self.folders = [sealed(draft, root / "runs", self.key.private) for draft in drafts]
        self.contract = verify_bytes(Contract, _signed(contract_of(drafts[0]).statement(), self.key), self.keys)
        self.runs: list[VerifiedRun] = [verify_run(folder, self.keys) for folder in self.folders]

    @property
    def keys(self) -> list[TrustedKey]:
        return [load_public(self.key.public)]

    def listing(self, made: Catalog) -> bytes:
        return _signed(made.statement(), self.key)

    def read(self, data: bytes) -> Signed[Catalog]:
        return verify_bytes(Catalog, data, self.keys)

    def build(self, listing: bytes | None, preview: bool = False) -> tuple[int, tuple[catalog.Entry, ...]]:
        return site.build([self.root / "runs"], self.keys, self.root / "site", preview, [self.contract], listing)


def _signed(statement: bytes, key: NewKey) -> bytes:
    return sign_payload(statement, load_private(key.private))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def test_listed_runs_are_published_with_their_catalog(shelf: Shelf) -> None:
    data = shelf.listing(next_catalog(None, None, "ours", T1, shelf.runs))
    assert shelf.build(data)[1] == ()
    assert (shelf.root / "site" / making.CATALOG).read_bytes() == data


def test_a_withdrawn_run_gives_way_and_says_why(shelf: Shelf) -> None:
    one = shelf.read(shelf.listing(next_catalog(None, None, "ours", T1, shelf.runs)))
    two = shelf.listing(next_catalog(one, None, None, T2, withdrawn={shelf.folders[1].name: "wrong key"}))
    _, others = shelf.build(two)
    assert [(entry.record.run.run_id, entry.unofficial[0]) for entry in others] == [(shelf.folders[1].name, "withdrawn: wrong key")]


def test_an_unlisted_run_is_not_official_and_can_be_previewed(shelf: Shelf) -> None:
    data = shelf.listing(next_catalog(None, None, "ours", T1, shelf.runs[:1]))
    _, others = shelf.build(data)
    assert [(entry.record.run.run_id, entry.unofficial[0]) for entry in others] == [(shelf.folders[1].name, "not in the catalog of runs")]
    assert shelf.build(data, preview=True)[1] == ()


@pytest.mark.parametrize("preview", [False, True])
def test_a_run_that_was_dropped_stops_the_build(shelf: Shelf, preview: bool) -> None:
    data = shelf.listing(next_catalog(None, None, "ours", T1, shelf.runs))
    shelf.folders[1].rename(shelf.root / "hidden")
    with pytest.raises(RunMissing, match=f"run {shelf.folders[1].name} is in the catalog"):
        shelf.build(data, preview)
    assert not (shelf.root / "site").exists()


def test_a_site_never_goes_back_to_an_older_catalog(shelf: Shelf) -> None:
    one = shelf.listing(next_catalog(None, None, "ours", T1, shelf.runs))
    two = shelf.listing(next_catalog(shelf.read(one), None, None, T2, withdrawn={shelf.folders[1].name: "wrong key"}))
    shelf.build(two)
    before = (shelf.root / "site" / "index.html").read_bytes()
    for listing, words in ((one, "version 2 was seen before"), (None, "give that or a later one")):
        with pytest.raises(CatalogBroken, match=words):
            shelf.build(listing)
    assert (shelf.root / "site" / "index.html").read_bytes() == before


def test_another_run_under_a_listed_id_stops_the_build(shelf: Shelf) -> None:
    entries = next_catalog(None, None, "ours", T1, shelf.runs).model_dump()
    entries["entries"][0]["statement_sha256"] = "0" * 64
    with pytest.raises(CatalogBroken, match="another run of this id"):
        shelf.build(shelf.listing(Catalog.of(entries)))
