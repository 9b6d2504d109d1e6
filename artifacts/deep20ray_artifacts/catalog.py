"""The catalog: a signed list of every run that was ever published, which forgets none.

The newest run of a model is what counts, so whoever drops one run's folder changes a result. Against that a publisher's catalog names
each run and its statement's digest. A run that is taken back or redacted stays in it, with the reason. Each catalog names the one
before, and must hold all of that one's entries: who has seen one is never shown an older or a shortened one.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from deep20ray.canonical import canonical, sha256
from deep20ray_artifacts.documents import Closed, Predicate, Signed
from deep20ray_artifacts.errors import CatalogBroken, InvalidRecord
from deep20ray_artifacts.statement import RunId, Sha256, Time
from deep20ray_artifacts.verify import VerifiedRun

_LIST = Field(strict=False)
_RANK = {"listed": 0, "redacted": 1, "withdrawn": 2}
"""An entry may only go up."""


class CatalogEntry(Closed):
    """One run."""

    run_id: RunId
    statement_sha256: Sha256
    status: Literal["listed", "redacted", "withdrawn"]
    redaction_sha256: Sha256 | None
    """Of the redaction's statement; also of a run that was withdrawn later."""
    reason: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None
    since: Time
    """When it came to this status."""

    @model_validator(mode="after")
    def _told(self) -> Self:
        if (self.reason is None) is not (self.status == "listed"):
            raise ValueError(f"run {self.run_id}: a redacted or withdrawn run has a reason, and a listed one none")
        if self.status != "withdrawn" and (self.redaction_sha256 is None) is (self.status == "redacted"):
            raise ValueError(f"run {self.run_id}: a redacted run has its redaction's digest, and a listed one none")
        return self


class Catalog(Predicate):
    """A catalog, whole; each version stands for itself."""

    predicate_type: ClassVar[str] = "https://deep20ray.example/attestations/catalog/v1"
    noun: ClassVar[str] = "catalog"
    use: ClassVar[str] = "catalog"

    catalog_schema: Literal["1"]
    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,63}$")]
    version: Annotated[int, Field(ge=1, lt=2**53)]
    previous_sha256: Sha256 | None
    """Of the statement of the version before."""
    issued_at: Time
    entries: Annotated[tuple[CatalogEntry, ...], _LIST]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        ids = [entry.run_id for entry in self.entries]
        if ids != sorted(set(ids)):
            raise ValueError("its entries must be in the order of run ids, each once")
        if (self.previous_sha256 is None) is not (self.version == 1):
            raise ValueError("every version but the first names the one before")
        return self

    @property
    def subject(self) -> tuple[str, str]:
        """Itself: its id and the digest of what it says."""
        return f"catalog/{self.id}", sha256(canonical(self.model_dump(mode="json")))

    @property
    def by_run(self) -> Mapping[str, CatalogEntry]:
        """Its entries by run id."""
        return {entry.run_id: entry for entry in self.entries}


def check_follows(catalog: Signed[Catalog], previous: Signed[Catalog]) -> None:
    """Whether a catalog may take the place of one that was seen before.

    Raises:
        CatalogBroken: it is older, another of the same version, or drops or rewrites an entry.
    """
    new, old = catalog.predicate, previous.predicate
    what = f"catalog {new.id} {new.version}"
    if new.id != old.id:
        raise CatalogBroken(f"{what}: version {old.version} of catalog {old.id} was seen before; give the catalog of that id")
    if new.version < old.version:
        raise CatalogBroken(f"{what}: version {old.version} was seen before; get the newest one from its source")
    if new.version == old.version and catalog.sha256 != previous.sha256:
        raise CatalogBroken(f"{what}: another catalog of this version was seen before; don't use it, and ask who signed it")
    if new.version == old.version + 1 and new.previous_sha256 != previous.sha256:
        raise CatalogBroken(f"{what}: it doesn't follow version {old.version} that was seen before; ask who signed it")
    entries = new.by_run
    for entry in old.entries:
        now = entries.get(entry.run_id)
        if now is None:
            raise CatalogBroken(f"{what}: run {entry.run_id} was in version {old.version} and is missing; a catalog forgets no run")
        same = now.statement_sha256 == entry.statement_sha256
        if not same or _RANK[now.status] < _RANK[entry.status] or (now.status == entry.status == "withdrawn" and now != entry):
            raise CatalogBroken(f"{what}: the entry of run {entry.run_id} was rewritten since version {old.version}; ask who signed it")


def check_listed(catalog: Catalog, run: VerifiedRun) -> CatalogEntry | None:
    """A run's entry; None if there is none.

    Raises:
        CatalogBroken: the catalog has the run id for another statement, or for another or no redaction of it.
    """
    predicate = run.statement.predicate
    entry = catalog.by_run.get(predicate.run_id)
    if entry is None:
        return None
    if entry.statement_sha256 != run.statement_sha256:
        raise CatalogBroken(f"run {predicate.run_id}: catalog {catalog.id} has another run of this id; get the run again from its source")
    digest = None if run.redaction is None else sha256(run.redaction.statement())
    if digest != entry.redaction_sha256:
        what = "lists it unredacted" if entry.redaction_sha256 is None else "lists another redaction of it"
        raise CatalogBroken(f"run {predicate.run_id}: catalog {catalog.id} {what}; use the copy that is listed, or `catalog add` this one")
    return entry


def next_catalog(
    previous: Signed[Catalog] | None,
    draft: Catalog | None,
    id_: str | None,
    at: str,
    runs: Iterable[VerifiedRun] = (),
    withdrawn: Mapping[str, str] | None = None,
) -> Catalog:
    """The next version: the signed one before, or a draft of the next one, with runs added and withdrawn.

    Args:
        runs: those to be listed, or listed as redacted now, for the redaction's own first reason.
        withdrawn: reasons by run id.

    Raises:
        InvalidRecord: a first catalog has no name, a run isn't there to be withdrawn, or a run is withdrawn or has another statement in it.
    """
    base = draft or (None if previous is None else previous.predicate)
    name = base.id if base is not None else id_
    if name is None:
        raise InvalidRecord("a first catalog needs a name; say it with --id")
    entries = {} if base is None else {entry.run_id: entry.model_dump() for entry in base.entries}
    for run in runs:
        fresh = _entry(run, at)
        old = entries.get(fresh["run_id"])
        if old is not None and (old["statement_sha256"] != fresh["statement_sha256"] or old["status"] == "withdrawn"):
            raise InvalidRecord(f"run {fresh['run_id']} stands in the catalog, withdrawn or with another statement, and stays so")
        entries[fresh["run_id"]] = old if old is not None and old["redaction_sha256"] == fresh["redaction_sha256"] else fresh
    for run_id, why in (withdrawn or {}).items():
        if run_id not in entries:
            raise InvalidRecord(f"run {run_id} isn't in the catalog; only what was listed can be withdrawn")
        entries[run_id] = {**entries[run_id], "status": "withdrawn", "reason": why, "since": at}
    return Catalog.of(
        {
            "catalog_schema": "1",
            "id": name,
            "version": 1 if previous is None else previous.predicate.version + 1,
            "previous_sha256": None if previous is None else previous.sha256,
            "issued_at": at,
            "entries": [entries[run_id] for run_id in sorted(entries)],
        }
    )


def _entry(run: VerifiedRun, at: str) -> dict[str, Any]:
    redaction = run.redaction
    return {
        "run_id": run.statement.predicate.run_id,
        "statement_sha256": run.statement_sha256,
        "status": "listed" if redaction is None else "redacted",
        "redaction_sha256": None if redaction is None else sha256(redaction.statement()),
        "reason": None if redaction is None else redaction.redacted[0].reason,
        "since": at,
    }


def missing(catalog: Catalog, found: Sequence[str]) -> tuple[str, ...]:
    """Runs of the catalog that should be there and aren't: all but the withdrawn ones."""
    return tuple(entry.run_id for entry in catalog.entries if entry.status != "withdrawn" and entry.run_id not in set(found))
