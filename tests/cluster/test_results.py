"""Results that are copied out: to a folder, and to an S3 server that runs here."""

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs

from deep20ray_cluster import results
from deep20ray_cluster.errors import ResultsFailed, SweepError
from deep20ray_cluster.folder import SweepFolder
from deep20ray_cluster.results import CLOUD_KEYS, Place, check_place, copy_run, keys_withheld

from .command import Ended, sealed
from .worlds import scripted, sweep_text

RUN = "20261201T000000Z-model-0123456789ab"
FILES = {"run.arrow": b"a" * 3_000_000, "plan.json": b"{}", "statement.json": b'{"a": 1}'}


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """An S3 server with a bucket: the part of its URIs after the bucket."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    query = f"?endpoint_override={host}:{port}&scheme=http&region=us-east-1&allow_bucket_creation=true"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "an-id")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        filesystem, _ = fs.FileSystem.from_uri(f"s3://results{query}")
        filesystem.create_dir("results")
        yield query
    server.stop()


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "folder":
        return Place(str(tmp_path / "copies"))
    return Place(f"s3://results/{tmp_path.name}{request.getfixturevalue('s3')}")


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    root = SweepFolder(tmp_path / "sweep")
    for path in (root.sealed(RUN), root.private(RUN)):
        path.mkdir(parents=True)
    for name, data in FILES.items():
        (root.sealed(RUN) / name).write_bytes(data)
    (root.private(RUN) / "private.arrow").write_bytes(b"replies")
    return root


def opened(place: Place) -> tuple[Any, str]:
    uri = place.uri if "://" in place.uri else Path(place.uri).as_uri()
    return fs.FileSystem.from_uri(uri)


def stored(place: Place) -> dict[str, bytes]:
    """Everything at a place, by its path from there."""
    filesystem, root = opened(place)
    found = {}
    for info in filesystem.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True)):
        if info.type == fs.FileType.File:
            with filesystem.open_input_stream(info.path) as stream:
                found[info.path.removeprefix(root).strip("/")] = stream.read()
    return found


def put(place: Place, name: str, data: bytes) -> None:
    filesystem, root = opened(place)
    with filesystem.open_output_stream(f"{root}/{name}") as stream:
        stream.write(data)


def test_a_run_is_copied_once_and_byte_for_byte_and_its_private_archive_stays(place: Place, folder: SweepFolder) -> None:
    check_place(place)
    assert copy_run(place, folder, RUN) == len(FILES)
    assert stored(place) == {f"runs/{RUN}/{name}": data for name, data in FILES.items()}
    assert copy_run(place, folder, RUN) == 0, "what is there is not sent again"


def test_the_private_archive_goes_too_where_it_is_asked_for(place: Place, folder: SweepFolder) -> None:
    assert copy_run(Place(place.uri, private=True), folder, RUN) == len(FILES) + 1
    assert stored(place)[f"private/{RUN}/private.arrow"] == b"replies"


def test_a_copy_that_broke_off_is_gone_on_with_and_a_spoilt_one_is_replaced(place: Place, folder: SweepFolder) -> None:
    copy_run(place, folder, RUN)
    put(place, f"runs/{RUN}/run.arrow", b"a" * 1000)
    put(place, f"runs/{RUN}/plan.json", b"[]")
    assert copy_run(place, folder, RUN) == 2, "one cut short, and one of the right length with other bytes"
    assert stored(place) == {f"runs/{RUN}/{name}": data for name, data in FILES.items()}


def test_a_run_that_was_signed_since_has_its_attestation_instead_of_the_statement(place: Place, folder: SweepFolder) -> None:
    copy_run(place, folder, RUN)
    (folder.sealed(RUN) / "statement.json").rename(folder.sealed(RUN) / "attestation.dsse.json")
    assert copy_run(place, folder, RUN) == 1
    assert set(stored(place)) == {f"runs/{RUN}/{name}" for name in ("attestation.dsse.json", "plan.json", "run.arrow")}


class Recording:
    """The local filesystem, and the names of the files that were opened for writing."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self._real = fs.LocalFileSystem()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def open_output_stream(self, path: str) -> Any:
        self.opened.append(path.rpartition("/")[2])
        return self._real.open_output_stream(path)


def test_the_statement_is_sent_last(folder: SweepFolder, tmp_path: Path) -> None:
    (folder.sealed(RUN) / "turns.arrow").write_bytes(b"")
    filesystem = Recording()
    results._copy(filesystem, str(tmp_path / "copies"), folder.sealed(RUN))
    assert filesystem.opened == ["plan.json", "run.arrow", "turns.arrow", "statement.json"]


def test_a_place_that_can_not_be_written_says_so_and_the_run_stays(tmp_path: Path, folder: SweepFolder) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    before = {path: hashlib.sha256(path.read_bytes()).digest() for path in folder.root.rglob("*") if path.is_file()}
    with pytest.raises(ResultsFailed, match=f"run {RUN} is sealed here but could not be copied.*nothing is lost.*resume"):
        copy_run(Place(str(blocked / "below")), folder, RUN)
    assert before == {path: hashlib.sha256(path.read_bytes()).digest() for path in folder.root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("s3://an-id:a-secret@bucket/x", "must hold no key"),
        ("nonsense://bucket/x", "results: nonsense"),
        ("s3://bucket/x?no_such_option=1", "results: s3"),
    ],
)
def test_what_is_no_place_is_refused_before_anything_is_played(uri: str, words: str) -> None:
    with pytest.raises(SweepError, match=words) as refused:
        check_place(Place(uri))
    assert "a-secret" not in str(refused.value)


def test_a_bucket_that_is_not_there_is_a_failure_in_one_line(s3: str, folder: SweepFolder) -> None:
    with pytest.raises(ResultsFailed) as failed:
        copy_run(Place("s3://no-such-bucket/x" + s3.replace("&allow_bucket_creation=true", "")), folder, RUN)
    assert "\n" not in str(failed.value)


def test_no_worker_inherits_the_clouds_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = dict.fromkeys(CLOUD_KEYS, "secret") | {"AWS_REGION": "eu-central-1"}
    with keys_withheld(environ):
        assert environ == {"AWS_REGION": "eu-central-1"}
    assert len(environ) == len(CLOUD_KEYS) + 1


def test_a_sweep_copies_what_it_seals_and_a_place_that_failed_is_tried_again(
    tmp_path: Path, playing: Callable[..., Ended], s3: str
) -> None:
    key = os.environ["AWS_SECRET_ACCESS_KEY"]
    copies = tmp_path / "copies"
    with scripted(tmp_path / "world", {}) as (url, _):
        out = tmp_path / "out"
        sweep = tmp_path / "sweep.toml"
        sweep.write_text(sweep_text(url, rounds=2, head=f'results = "{copies}"'))
        copies.mkdir()
        (copies / "runs").write_text("in the way")
        done = playing("run", sweep, "--out", out)
    assert done.code == 3 and done.out.strip() == str(sealed(out)), "sealed all the same"
    assert "could not be copied" in done.complaint and f"deep20ray resume {out}" in done.complaint
    (copies / "runs").unlink()
    assert playing("resume", out).code == 0
    local = {path.name: path.read_bytes() for path in sealed(out).iterdir()}
    assert {path.name: path.read_bytes() for path in (copies / "runs" / sealed(out).name).iterdir()} == local
    bucket = Place(f"s3://results/sweep{s3}")
    assert playing("resume", out, "--results", bucket.uri).code == 0
    assert stored(bucket) == {f"runs/{sealed(out).name}/{name}": data for name, data in local.items()}
    assert os.environ["AWS_SECRET_ACCESS_KEY"] == key
