"""From folders of runs to verified entries. Every run folder found must verify; the first that doesn't ends the build.

An entry knows its files by their verified digests and reads them again when they are needed: what is copied is what was verified.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from deep20ray.canonical import Digest, sha256
from deep20ray_artifacts import dsse
from deep20ray_artifacts.audit import AuditReport, Fault, audit_run
from deep20ray_artifacts.catalog import Catalog, CatalogEntry, check_listed, missing
from deep20ray_artifacts.contract import Contract
from deep20ray_artifacts.documents import Signed, verify_bytes
from deep20ray_artifacts.errors import ContentRefused
from deep20ray_artifacts.folder import opened
from deep20ray_artifacts.keys import TrustedKey
from deep20ray_artifacts.limits import Limits
from deep20ray_artifacts.qualification import Candidate, check, qualify
from deep20ray_artifacts.reading import read_table
from deep20ray_artifacts.redaction import REDACTION_NAME, RedactedField, Redaction
from deep20ray_artifacts.statement import RunPredicate
from deep20ray_artifacts.verify import ATTESTATION_NAME, VerifiedRun, verify_run
from deep20ray_publisher.errors import AuditFailed, CatalogRefused, InputMissing, RunMissing
from deep20ray_publisher.figures import Summary, summary
from deep20ray_publisher.records import DETAIL, RunRecord
from deep20ray_publisher.text import slug


@dataclass(frozen=True, slots=True)
class SignedFile:
    """A file of a verified run's folder."""

    path: Path
    sha256: str
    size: int

    def __len__(self) -> int:
        return self.size

    def read(self) -> bytes:
        """Its bytes, exactly those that were verified.

        Raises:
            ContentRefused: it changed since.
        """
        with opened(self.path.parent) as folder:
            data = folder.read(self.path.name, self.size + 1)
        if sha256(data) != self.sha256:
            raise ContentRefused(
                f"{self.path.parent.name}: {self.path.name} changed while it was read; try again when nothing writes there"
            )
        return data


@dataclass(frozen=True, slots=True)
class Entry:
    """One verified run."""

    record: RunRecord
    summary: Summary
    predicate: RunPredicate
    keyid: Digest
    throwaway: bool
    statement_sha256: Digest
    audit: AuditReport
    """What was computed again of what every role was sent, from the run's public tables."""
    official: Signed[Contract] | None
    """The contract that it equals, if any."""
    unofficial: tuple[str, ...]
    """Why it is under none; the clauses of the nearest contract that don't hold."""
    redaction: Redaction | None
    listed: CatalogEntry | None
    """What the publisher's catalog of runs says of it."""
    files: Mapping[str, SignedFile]
    """Every file of the run's folder, the attestation included, by name."""

    @property
    def slug(self) -> str:
        """The run's path segment."""
        found = slug(self.record.run.run_id)
        assert found is not None  # run ids are checked against a stricter form
        return found

    def redacted(self, trial_id: str) -> tuple[RedactedField, ...]:
        """What was redacted of a trial, in the order of its turns."""
        fields = self.redaction.redacted if self.redaction else ()
        own = (field for field in fields if field.trial_id == trial_id)
        return tuple(sorted(own, key=lambda field: (field.turn, field.table, field.number or 0)))

    @property
    def data_path(self) -> str:
        """Where its files stand below the edition's folder, under the run id as signed. A simulated run's path says so."""
        return f"data/{'simulated' if self.record.run.simulated else 'runs'}/{self.record.run.run_id}"


def discover(folders: Sequence[Path]) -> tuple[Path, ...]:
    """Every run folder: each folder inside the given ones, whatever it holds. Hidden ones are a sealer's unfinished work.

    Raises:
        InputMissing: a folder that isn't there, or no run in any.
    """
    found: list[Path] = []
    for folder in folders:
        try:
            entries = sorted(folder.iterdir())
        except OSError as error:
            raise InputMissing(f"can't list {folder}: {error.strerror}; give a folder that holds run folders") from None
        if any(entry.name in (ATTESTATION_NAME, "statement.json") for entry in entries):
            raise InputMissing(f"{folder} is a run itself; give the folder that holds it")
        found += [entry for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
    if not found:
        raise InputMissing(f"no run folder in {', '.join(map(str, folders))}; give a folder that holds run folders, such as SWEEP/runs")
    return tuple(found)


def load(
    folders: Sequence[Path],
    keys: Sequence[TrustedKey],
    contracts: Sequence[Signed[Contract]] = (),
    listing: Signed[Catalog] | None = None,
) -> tuple[Entry, ...]:
    """Verifies every run found, in the order of run ids.

    Args:
        listing: the catalog of all runs; a run that isn't in it, or is withdrawn, isn't official.

    Raises:
        VerificationError: the first run that doesn't verify, or for which the catalog has another.
        RunMissing: a run of the catalog that isn't there.
        CatalogRefused: one run found twice.
        AuditFailed: a run whose audits contradict what it publishes.
        InputMissing: as ``discover``.
    """
    entries: dict[str, Entry] = {}
    for path in discover(folders):
        entry = _entry(path, keys, contracts, listing)
        if entry.record.run.run_id in entries:
            raise CatalogRefused(f"{path}: run {entry.record.run.run_id} was found twice; keep one copy of it")
        entries[entry.record.run.run_id] = entry
    gone = () if listing is None else missing(listing.predicate, tuple(entries))
    if gone:
        raise RunMissing(f"run {gone[0]} is in the catalog and in no folder given ({len(gone)} such runs); get it back, or withdraw it")
    return tuple(entries[run_id] for run_id in sorted(entries))


def _entry(path: Path, keys: Sequence[TrustedKey], contracts: Sequence[Signed[Contract]], listing: Signed[Catalog] | None) -> Entry:
    verified = verify_run(path, keys)
    listed = None if listing is None else check_listed(listing.predicate, verified)
    barred = () if listing is None else _barred(listed)
    candidate = Candidate.of(verified, keys, _audited(verified))
    official = None if barred else qualify(candidate, contracts)
    files = dict(_files(path, verified, keys))
    record = RunRecord(verified, partial(_reload, files, {name: table.num_rows for name, table in verified.tables.items()}))
    entry = Entry(
        record=record,
        summary=summary(record),
        predicate=verified.statement.predicate,
        keyid=verified.keyid,
        throwaway=candidate.throwaway,
        statement_sha256=verified.statement_sha256,
        audit=candidate.audit,
        official=None if official is None else official.contract,
        unofficial=() if official else (*barred, *_reasons(candidate, contracts)),
        redaction=verified.redaction,
        listed=listed,
        files=files,
    )
    record.release()
    return entry


def _reload(files: Mapping[str, SignedFile], rows: Mapping[str, int]) -> Mapping[str, pa.Table]:
    return {name: read_table(name, files[f"{name}.arrow"].read(), rows[name], Limits()) for name in DETAIL}


def _barred(listed: CatalogEntry | None) -> tuple[str, ...]:
    """Why the catalog keeps a run from being official."""
    if listed is None:
        return ("not in the catalog of runs",)
    return (f"withdrawn: {listed.reason}",) if listed.status == "withdrawn" else ()


def _reasons(candidate: Candidate, contracts: Sequence[Signed[Contract]]) -> tuple[str, ...]:
    """What keeps a run from being official; under the contract that it is nearest to."""
    failing = [[clause for clause in check(candidate, each.predicate) if not clause.holds] for each in contracts]
    if not failing:
        row = candidate.row
        told = [("simulated", row["simulated"]), ("incomplete", row["status"] != "complete")]
        told += [("signed with a throwaway key", candidate.throwaway), ("no release contract covers it", True)]
        return tuple(reason for reason, holds in told if holds)
    return tuple(f"{clause.name}: {clause.found}" for clause in min(failing, key=len))


def _audited(verified: VerifiedRun) -> AuditReport:
    """The audit of a run, computed here and now. A record that contradicts itself is as invalid as a broken signature.

    Raises:
        AuditFailed: naming the first call that was sent what it may not have seen.
    """
    report = audit_run(verified)
    if report.contradicted:
        first = next(finding for finding in report.findings if finding.fault is not Fault.MISSING)
        raise AuditFailed(f"run {report.run_id}: {first.line} ({report.total.wrong} such calls); `deep20ray audit` shows all of them")
    return report


def _files(path: Path, verified: VerifiedRun, keys: Sequence[TrustedKey]) -> Iterator[tuple[str, SignedFile]]:
    """The folder's files by the digests that were verified. What isn't under the statement's digests is compared once more."""
    limits = Limits()
    with opened(path) as folder:
        attestation = folder.read(ATTESTATION_NAME, limits.attestation_bytes)
        envelope = dsse.parse(attestation)
        if envelope.payload != verified.payload or not dsse.signers(envelope, keys):
            raise ContentRefused(f"{folder.name}: {ATTESTATION_NAME} changed while it was read; try again when nothing writes there")
        yield ATTESTATION_NAME, SignedFile(path / ATTESTATION_NAME, sha256(attestation), len(attestation))
        changed: dict[str, tuple[str, int]] = {}
        if verified.redaction is not None:
            data = folder.read(REDACTION_NAME, limits.attestation_bytes)
            if verify_bytes(Redaction, data, keys).predicate != verified.redaction:
                raise ContentRefused(f"{folder.name}: {REDACTION_NAME} changed while it was read; try again when nothing writes there")
            yield REDACTION_NAME, SignedFile(path / REDACTION_NAME, sha256(data), len(data))
            changed = {name: (file.sha256, file.bytes) for name, file in verified.redaction.changed.items()}
    for file in verified.statement.predicate.files:
        digest, size = changed.get(file.name, (verified.statement.digests[file.name], file.bytes))
        yield file.name, SignedFile(path / file.name, digest, size)
