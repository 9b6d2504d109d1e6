"""The list of what is refused, line by line, each with a test that builds the attack: a line without one fails here.

A line names tests as ``file::function`` or ``file::TABLE[entry]``. Named functions must exist, named entries must stand in the table
that a parametrized test goes through, so that an attack can't be dropped unseen.
"""

import ast
import base64
import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from deep20ray.canonical import canonical
from deep20ray_artifacts.errors import FolderRefused, StatementRefused
from deep20ray_artifacts.keys import TrustedKey
from deep20ray_artifacts.signing import NewKey, load_private, sign_payload
from deep20ray_artifacts.verify import ATTESTATION_NAME, verify_run
from tests.artifacts.builder import sealed_run

ROOT = Path(__file__).parents[2]

REFUSED: dict[str, tuple[str, ...]] = {
    "tampered byte": ("artifacts/test_verify::test_every_changed_byte_is_refused",),
    "file swapped between two valid runs": ("artifacts/test_verify::test_a_file_of_another_run_is_refused",),
    "added, removed, renamed file; names that differ by case": ("artifacts/test_verify::test_hostile_entries",),
    "hard link, symlink, FIFO, socket, directory": (
        "artifacts/test_verify::test_hostile_entries",
        "artifacts/test_verify::test_a_link_to_a_run_or_no_folder_is_refused",
    ),
    "device": ("artifacts/test_refusals::test_a_device_is_refused",),
    "..; absolute; backslash; NUL; case-fold or NFC collision in a name": (
        "artifacts/test_refusals::test_names_that_lead_elsewhere_are_refused",
        "artifacts/test_refusals::test_entries_that_look_like_a_file_are_refused",
    ),
    "attestation missing": ("artifacts/test_verify::test_hostile_entries",),
    "empty signatures": ("artifacts/test_dsse::test_loose_envelopes_are_refused",),
    "unknown payloadType": ("artifacts/test_verify::test_another_payload_type_is_refused",),
    "unknown predicateType, _type": ("artifacts/test_verify::test_statements_of_another_form",),
    "one kind of statement passed off as another": (
        "artifacts/test_trust::test_no_kind_of_statement_passes_for_another",
        "artifacts/test_trust::test_a_catalog_in_an_attestations_place_is_refused",
    ),
    "artifact schema below the minimum": ("artifacts/test_trust::test_a_schema_below_the_minimum_is_refused",),
    "duplicate JSON keys": (
        "artifacts/test_dsse::test_loose_envelopes_are_refused",
        "artifacts/test_verify::test_payloads_that_are_no_statement",
        "artifacts/test_trust::test_bytes_that_are_no_trust_file",
    ),
    "duplicate subjects": ("artifacts/test_verify::test_statements_of_another_form",),
    "one key's signature counted twice": (
        "artifacts/test_dsse::test_loose_envelopes_are_refused",
        "artifacts/test_verify::test_two_signatures_are_refused",
    ),
    "keyid lies about the key": ("artifacts/test_dsse::test_a_keyid_that_lies_is_refused", "artifacts/test_trust::SPOILT[a lying keyid]"),
    "unknown key": ("artifacts/test_verify::test_nothing_is_parsed_before_it_verifies",),
    "revoked key": ("artifacts/test_trust::TERMS[revoked]", "artifacts/test_trust::test_a_pinned_statement_outlives_its_key"),
    "not-yet-valid key": ("artifacts/test_trust::TERMS[not valid yet]",),
    "expired key": ("artifacts/test_trust::TERMS[expired]",),
    "key not allowed for the edition": ("artifacts/test_trust::TERMS[another edition]",),
    "small-order key": (
        "artifacts/test_keys::test_points_of_small_order_are_refused",
        "artifacts/test_trust::SPOILT[a key of small order]",
    ),
    "non-canonical base64": ("artifacts/test_dsse::test_loose_envelopes_are_refused",),
    "malleable signature": ("artifacts/test_dsse::test_a_malleable_signature_is_refused",),
    "oversized attestation": ("artifacts/test_verify::test_bounds_hold",),
    "deep JSON": ("artifacts/test_dsse::test_loose_envelopes_are_refused",),
    "size mismatch": ("artifacts/test_verify::test_hostile_entries",),
    "compressed body": ("artifacts/test_arrow::ATTACKS[lz4 body]", "artifacts/test_arrow::ATTACKS[zstd body]"),
    "extension type": ("artifacts/test_arrow::ATTACKS[an extension type]",),
    "dictionary": ("artifacts/test_arrow::ATTACKS[a dictionary]",),
    "wrong schema": ("artifacts/test_arrow::ATTACKS[a column more]", "artifacts/test_arrow::ATTACKS[another width]"),
    "bad offsets": ("artifacts/test_arrow::ATTACKS[offsets that point outside]",),
    "bad UTF-8": ("artifacts/test_arrow::ATTACKS[text that isn't UTF-8]",),
    "too many rows": ("artifacts/test_arrow::test_bounds_on_rows_and_batches",),
    "row counts unlike the predicate": ("artifacts/test_arrow::ATTACKS[a row less]",),
    "cross-file foreign keys broken": (
        "artifacts/test_records::ATTACKS[a turn of no trial]",
        "artifacts/test_records::ATTACKS[a trial of no subject]",
        "artifacts/test_records::ATTACKS[evidence of no turn]",
        "artifacts/test_records::ATTACKS[usage without an audit]",
    ),
    "plan against tables, costs against usage, served models against audits, simulated against plan, cohort against subjects": (
        "artifacts/test_agreement::ATTACKS[another judge than planned]",
        "artifacts/test_agreement::ATTACKS[a trial more than planned]",
        "artifacts/test_agreement::ATTACKS[a cheaper trial]",
        "artifacts/test_agreement::ATTACKS[an answer by another model]",
        "artifacts/test_agreement::ATTACKS[a plan with another word on simulation]",
        "artifacts/test_agreement::ATTACKS[a subject described otherwise]",
    ),
    "replayed stale run: not in the catalog": ("publisher/test_catalog::test_an_unlisted_run_is_not_official_and_can_be_previewed",),
    "older catalog than was seen": (
        "publisher/test_catalog::test_a_site_never_goes_back_to_an_older_catalog",
        "artifacts/test_catalog::test_an_older_catalog_or_a_withdrawal_taken_back_is_refused",
    ),
    "run removed from the catalog": ("artifacts/test_catalog::ATTACKS[a run dropped]",),
    "listed run that isn't there": ("publisher/test_catalog::test_a_run_that_was_dropped_stops_the_build",),
    "same run id with two digests": (
        "publisher/test_catalog::test_another_run_under_a_listed_id_stops_the_build",
        "artifacts/test_catalog::test_a_run_is_what_is_listed",
    ),
    "two directories for one run": ("publisher/test_board::test_the_same_run_in_two_folders_is_refused",),
    "limits unlike the edition's": ("artifacts/test_records::ATTACKS[limits of another edition]",),
    "mixed editions in one run": (
        "artifacts/test_records::ATTACKS[another edition]",
        "artifacts/test_agreement::ATTACKS[a plan with another edition]",
    ),
    "run id unlike the directory": ("artifacts/test_verify::test_a_renamed_run_is_refused",),
    "completed in the future": ("artifacts/test_trust::TERMS[a time to come]",),
    "trust file of another form": ("artifacts/test_trust::test_a_trust_file_of_another_form_is_refused",),
    "one bad input stops the whole build": (
        "publisher/test_site::test_one_invalid_run_stops_the_build",
        "publisher/test_site::test_a_failed_build_leaves_the_earlier_site",
    ),
    "unverified bytes given to the publisher": ("publisher/test_site::test_the_publisher_takes_verified_runs_alone",),
}


@pytest.mark.parametrize("line", REFUSED)
def test_every_line_has_its_attack(line: str) -> None:
    assert REFUSED[line]
    for place in REFUSED[line]:
        file, _, what = place.partition("::")
        path = ROOT / "tests" / f"{file}.py"
        if what.endswith("]"):
            table, _, entry = what[:-1].partition("[")
            module = importlib.import_module(f"tests.{file.replace('/', '.')}")
            assert entry in getattr(module, table), place
            assert f'parametrize("name", {table})' in path.read_text(), f"nothing goes through {table}"
        else:
            functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
            assert what in {function.name for function in functions}, place


def test_a_device_is_refused(tmp_path: Path, key: NewKey, trusted: list[TrustedKey]) -> None:
    folder = sealed_run(tmp_path, key.private)
    (folder / "turns.arrow").unlink()
    try:
        os.mknod(folder / "turns.arrow", 0o20644, os.makedev(1, 5))  # /dev/zero, which never ends
    except OSError:
        pytest.skip("only root makes devices")
    with pytest.raises(FolderRefused, match="no regular file"):
        verify_run(folder, trusted)


NAMES = ("../turns.arrow", "/etc/passwd", "..", ".", "", "a/b", "a\\b", "turns.arrow\0", "TURNS.arrow", "turns.arrow ", "tu\u0308rns.arrow")


@pytest.mark.parametrize("name", NAMES)
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, key: NewKey, trusted: list[TrustedKey], name: str) -> None:
    """A trusted signer's statement that names another file than the closed list's."""
    folder = sealed_run(tmp_path, key.private)
    envelope = json.loads((folder / ATTESTATION_NAME).read_bytes())
    statement: dict[str, Any] = json.loads(base64.b64decode(envelope["payload"]))
    for entry in (*statement["subject"], *statement["predicate"]["files"]):
        entry["name"] = name if entry["name"] == "turns.arrow" else entry["name"]
    (folder / ATTESTATION_NAME).write_bytes(sign_payload(canonical(statement), load_private(key.private)))
    with pytest.raises(StatementRefused, match=r"^statement: ") as caught:
        verify_run(folder, trusted)
    assert "\n" not in str(caught.value)


LIKE = ("Turns.arrow", "turns.arrow ", "turns\u200b.arrow", "\uff54urns.arrow", "turns.arrow.", "turns.arrow~", "..arrow", "a\\b")


@pytest.mark.parametrize("name", LIKE)
def test_entries_that_look_like_a_file_are_refused(tmp_path: Path, key: NewKey, trusted: list[TrustedKey], name: str) -> None:
    folder = sealed_run(tmp_path, key.private)
    (folder / name).write_bytes((folder / "turns.arrow").read_bytes())
    with pytest.raises(FolderRefused, match="doesn't belong to a run") as caught:
        verify_run(folder, trusted)
    assert "\n" not in str(caught.value)
