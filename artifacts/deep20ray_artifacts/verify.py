"""Verification of one run folder: nothing of it is interpreted before it is known to be what a trusted key signed.

Order: open and list the folder against the closed list; read the attestation (bounded); parse the envelope strictly; verify the
signature over its bytes; parse the same bytes; compare run id and folder; read each file once, at its signed size; compare digests;
read tables of exactly the public schema and validate them; compare them with each other and with the rules. The first fault ends it.
This module and all that it imports never import what signs.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import rfc8785

from deep20ray.canonical import Digest, canonical, sha256
from deep20ray_artifacts import dsse, strict_json
from deep20ray_artifacts.agreement import check_agreement
from deep20ray_artifacts.documents import verify_bytes
from deep20ray_artifacts.errors import ContentRefused, EnvelopeRefused, FolderRefused, RecordRefused, SignatureRefused, StatementRefused
from deep20ray_artifacts.folder import Folder, opened
from deep20ray_artifacts.keys import TrustedKey
from deep20ray_artifacts.limits import Limits
from deep20ray_artifacts.reading import read_table
from deep20ray_artifacts.records import check_records
from deep20ray_artifacts.redaction import REDACTION_NAME, Redaction, check_redacted
from deep20ray_artifacts.rowdigest import all_rows_digests
from deep20ray_artifacts.statement import FILE_NAMES, PAYLOAD_TYPE, RUN_ID, Statement, parse_statement, time_of
from deep20ray_artifacts.tables import PLAN_NAME

ATTESTATION_NAME: Final = "attestation.dsse.json"
STATEMENT_NAME: Final = "statement.json"


@dataclass(frozen=True, slots=True)
class SealedRun:
    """A run whose files, tables and records agree with its statement, whoever made it."""

    statement: Statement
    payload: bytes
    """The statement's bytes: what is signed."""
    tables: Mapping[str, pa.Table]
    plan: bytes
    redaction: Redaction | None = field(default=None, kw_only=True)
    """What was redacted of it since it was sealed, signed by a trusted key where the run is."""

    @property
    def statement_sha256(self) -> Digest:
        """What a catalog or a pin names the run by."""
        return sha256(self.payload)


@dataclass(frozen=True, slots=True)
class VerifiedRun(SealedRun):
    """A sealed run that a trusted key signed."""

    keyid: Digest


def verify_run(run_dir: Path, keys: Sequence[TrustedKey], limits: Limits | None = None) -> VerifiedRun:
    """Verifies a signed run folder.

    Args:
        keys: the keys whose signature is accepted; a throwaway key's only on a simulated run.

    Raises:
        VerificationError: its subclass says which boundary refused the run.
    """
    limits = limits or Limits()
    with opened(run_dir) as folder:
        _check_level(run_dir)
        names = folder.names({*FILE_NAMES, ATTESTATION_NAME, STATEMENT_NAME, REDACTION_NAME})
        if ATTESTATION_NAME not in names:
            unsigned = " (it is sealed but not signed: run 'sign')" if STATEMENT_NAME in names else ""
            raise FolderRefused(f"{folder.name}: {ATTESTATION_NAME} is missing{unsigned}")
        _check_listing(folder, names - {REDACTION_NAME}, ATTESTATION_NAME)
        envelope = dsse.parse(folder.read(ATTESTATION_NAME, limits.attestation_bytes))
        key = _signer(envelope, keys)
        statement = parse_statement(envelope.payload)
        if key.throwaway and not statement.predicate.simulated:
            raise SignatureRefused(f"{folder.name}: signed with a throwaway key, which is accepted for simulated runs only; sign it again")
        _check_terms(folder.name, key, statement, sha256(envelope.payload))
        redaction = None
        if REDACTION_NAME in names:
            signed = verify_bytes(Redaction, folder.read(REDACTION_NAME, limits.attestation_bytes), keys)
            redaction = signed.predicate
        tables, plan = _contents(folder, statement, limits, redaction, sha256(envelope.payload))
    return VerifiedRun(statement, envelope.payload, tables, plan, key.keyid, redaction=redaction)


def check_redaction(run_dir: Path, draft: str, limits: Limits | None = None) -> bytes:
    """Checks a redacted folder whose redaction isn't signed yet, for its signer. No signature is looked at, the original's neither.

    Returns:
        The redaction's statement.

    Raises:
        VerificationError: its subclass says which boundary refused the folder.
    """
    limits = limits or Limits()
    with opened(run_dir) as folder:
        names = folder.names({*FILE_NAMES, ATTESTATION_NAME, draft})
        _check_listing(folder, names - {draft}, ATTESTATION_NAME)
        payload = dsse.parse(folder.read(ATTESTATION_NAME, limits.attestation_bytes)).payload
        data = folder.read(draft, limits.attestation_bytes)
        _contents(folder, parse_statement(payload), limits, Redaction.parse(data), sha256(payload))
    return data


def check_sealed(run_dir: Path, limits: Limits | None = None) -> SealedRun:
    """Checks a sealed folder that isn't signed yet: everything that ``verify_run`` checks but the signature.

    Raises:
        VerificationError: its subclass says which boundary refused the run.
    """
    return _sealed(run_dir, limits or Limits(), frozenset())


def check_for_signing(run_dir: Path, limits: Limits | None = None) -> SealedRun:
    """As ``check_sealed``, for the signer: an attestation left by a signing that was cut short doesn't matter, it is replaced.

    Also that the digests of rows are right, against which redactions will be held some day.
    """
    run = _sealed(run_dir, limits or Limits(), frozenset({ATTESTATION_NAME}))
    if all_rows_digests(run.tables) != run.statement.predicate.redactable.model_dump():
        raise RecordRefused("statement: its digests of rows aren't those of the tables; the run must be sealed again")
    return run


def _sealed(run_dir: Path, limits: Limits, ignored: frozenset[str]) -> SealedRun:
    with opened(run_dir) as folder:
        _check_level(run_dir)
        names = folder.names({*FILE_NAMES, STATEMENT_NAME, ATTESTATION_NAME})
        if STATEMENT_NAME not in names:
            signed = " (it is signed already)" if ATTESTATION_NAME in names else ""
            raise FolderRefused(f"{folder.name}: {STATEMENT_NAME} is missing{signed}")
        _check_listing(folder, names - ignored, STATEMENT_NAME)
        payload = folder.read(STATEMENT_NAME, limits.attestation_bytes)
        statement = parse_statement(payload)
        tables, plan = _contents(folder, statement, limits)
    return SealedRun(statement, payload, tables, plan)


def _check_terms(name: str, key: TrustedKey, statement: Statement, digest: Digest) -> None:
    """Whether the trust file lets the key sign this run.

    Raises:
        SignatureRefused, StatementRefused: it doesn't.
    """
    if key.terms is None:
        return
    predicate = statement.predicate
    why = key.terms.why_not("runs", digest, time_of(predicate.completed_at or predicate.started_at))
    if why is None and predicate.edition not in key.terms.editions:
        why = f"may not sign runs of edition {predicate.edition}"
    if why is not None:
        raise SignatureRefused(f"{name}: key {key.keyid[:12]} {why}; see the trust file")
    if int(predicate.artifact_schema) < key.terms.minimum_artifact_schema:
        raise StatementRefused(f"{name}: artifact schema {predicate.artifact_schema} is below the trust file's minimum; seal it anew")


def _check_level(path: Path) -> None:
    """Says which folder is meant where a sweep's, or that of all its runs, is given for a run's. A hint; nothing relies on it.

    Raises:
        FolderRefused: it is such a folder.
    """
    for runs in (path / "runs", path):
        with suppress(OSError):
            found = sorted(entry.name for entry in runs.iterdir() if RUN_ID.fullmatch(entry.name) and entry.is_dir())
            if found:
                more = f", or one of {len(found) - 1} others" if len(found) > 1 else ""
                raise FolderRefused(f"{path}: it holds runs and is none; give a run's own folder, such as {runs / found[0]}{more}")


def _check_listing(folder: Folder, names: frozenset[str], head: str) -> None:
    expected = {*FILE_NAMES, head}
    if names != expected:
        missing, extra = sorted(expected - names), sorted(names - expected)
        what = f"{missing[0]} is missing" if missing else f"{extra[0]} doesn't belong beside {head}"
        raise FolderRefused(f"{folder.name}: {what}; get the run again from its source")


def _signer(envelope: dsse.Envelope, keys: Sequence[TrustedKey]) -> TrustedKey:
    if envelope.payload_type != PAYLOAD_TYPE:
        raise EnvelopeRefused(
            f"attestation: its payload is {envelope.payload_type[:80]!r}, not {PAYLOAD_TYPE}; this is no run's attestation"
        )
    if len(envelope.signatures) != 1:
        raise EnvelopeRefused(f"attestation: a run has one signature, not {len(envelope.signatures)}; sign it again")
    found = dsse.signers(envelope, keys)
    if not found:
        signer = envelope.signatures[0].keyid[:12]
        raise SignatureRefused(
            f"attestation: signed by key {signer}, which is none of the {len(keys)} trusted; trust its .pub file or don't use it"
        )
    return found[0]


def _contents(
    folder: Folder, statement: Statement, limits: Limits, redaction: Redaction | None = None, payload_sha256: str = ""
) -> tuple[Mapping[str, pa.Table], bytes]:
    predicate = statement.predicate
    if predicate.run_id != folder.name:
        raise StatementRefused(f"{folder.name}: its statement is about run {predicate.run_id}; the folder must bear the run's id")
    if sum(file.bytes for file in predicate.files) > limits.run_bytes:
        raise FolderRefused(f"{folder.name}: its files are larger than the {limits.run_bytes} bytes that are read")
    if redaction is not None and redaction.subject != (predicate.run_id, payload_sha256):
        raise StatementRefused(f"{folder.name}: its redaction is of another run or statement; get the run again from its source")
    changed = {} if redaction is None else redaction.changed
    data: dict[str, bytes] = {}
    for file in predicate.files:
        size, digest = file.bytes, statement.digests[file.name]
        if file.name in changed:
            size, digest = changed[file.name].bytes, changed[file.name].sha256
        data[file.name] = folder.read(file.name, limits.file_bytes, exact=size)
        if sha256(data[file.name]) != digest:
            raise ContentRefused(f"{folder.name}: {file.name} isn't the file that was sealed; get the run again from its source")
    _check_plan(data[PLAN_NAME])
    tables = {
        file.name.removesuffix(".arrow"): read_table(file.name.removesuffix(".arrow"), data[file.name], file.rows, limits)
        for file in predicate.files
        if file.rows is not None
    }
    check_records(predicate, tables)
    check_agreement(predicate, data[PLAN_NAME], tables)
    if redaction is not None:
        check_redacted(predicate, redaction, tables)
    return MappingProxyType(tables), data[PLAN_NAME]


def _check_plan(plan: bytes) -> None:
    """The plan is a JSON object in canonical form, so that its digest says all about it."""
    try:
        value = strict_json.loads(plan)
        accepted = isinstance(value, dict) and canonical(value) == plan
    except (strict_json.NotStrictJson, rfc8785.CanonicalizationError):
        accepted = False
    if not accepted:
        raise ContentRefused(f"{PLAN_NAME}: not a JSON object in canonical form; the run must be sealed again")
