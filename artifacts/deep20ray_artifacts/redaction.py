"""Redactions: a signed document that replaces public fields of a run by their digests, and the set of files that it makes.

The original attestation stays as it is and keeps naming the run. In a redacted folder it stands beside ``redaction.dsse.json``, which
lists every redacted field with its digest, reason and time, and the tables whose bytes are others now. Those tables must give the
digests of rows that the original statement signed (``rowdigest``), so that nothing but the listed fields can differ from what its
producer signed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, Self

import pyarrow as pa
from pydantic import Field, StringConstraints, model_validator

from deep20ray.canonical import Digest, sha256
from deep20ray_artifacts.documents import Closed, Predicate
from deep20ray_artifacts.errors import InvalidRecord, RecordRefused
from deep20ray_artifacts.rowdigest import REDACTABLE, Place, rows_digest, text_digest
from deep20ray_artifacts.statement import Count, Name, RunId, RunPredicate, Sha256, Time
from deep20ray_artifacts.tables import build_table, table_bytes

REDACTION_NAME: Final = "redaction.dsse.json"
DRAFT_NAME: Final = "redaction.json"
_LIST = Field(strict=False)


class RedactedField(Closed):
    """One field that was replaced by its digest."""

    table: Literal["turns", "evidence", "violations"]
    trial_id: Sha256
    turn: Annotated[int, Field(ge=1)]
    number: int | None
    """Of an evidence item."""
    field: Literal["question", "guess_name", "guess_description", "url", "excerpt", "text"]
    sha256: Sha256
    """Of the field's UTF-8."""
    reason: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    redacted_at: Time

    @property
    def marker(self) -> str:
        """What stands in the field's place."""
        return f"redacted:sha256:{self.sha256}"

    @property
    def line(self) -> str:
        """For people: what was redacted, why and when."""
        which = self.field if self.number is None else f"{self.field} of evidence {self.number}"
        return f"trial {self.trial_id[:12]}, turn {self.turn}, {which}: {self.reason}; {self.redacted_at[:10]}, sha256 {self.sha256}"

    @property
    def place(self) -> tuple[str, str, int, int | None, str]:
        """Which field it is."""
        return self.table, self.trial_id, self.turn, self.number, self.field


class ChangedFile(Closed):
    """A table's size and digest now."""

    name: Name
    bytes: Count
    sha256: Sha256


class Redaction(Predicate):
    """All redactions of a run so far."""

    predicate_type: ClassVar[str] = "https://deep20ray.example/attestations/redaction/v1"
    noun: ClassVar[str] = "redaction"

    redaction_schema: Literal["1"]
    run_id: RunId
    statement_sha256: Sha256
    """Of the original statement."""
    redacted: Annotated[tuple[RedactedField, ...], _LIST, Field(min_length=1)]
    files: Annotated[tuple[ChangedFile, ...], _LIST, Field(min_length=1)]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        places = [field.place for field in self.redacted]
        if len(set(places)) != len(places):
            raise ValueError("a field is redacted twice")
        for field in self.redacted:
            if field.field not in REDACTABLE[field.table] or (field.number is None) is (field.table == "evidence"):
                raise ValueError(f"{field.table}.{field.field} can't be redacted")
        changed = [f"{name}.arrow" for name in sorted({field.table for field in self.redacted})]
        if [file.name for file in self.files] != changed:
            raise ValueError(f"files must list exactly the tables that changed: {', '.join(changed)}")
        return self

    @property
    def subject(self) -> tuple[str, str]:
        """The run, by its original statement."""
        return self.run_id, self.statement_sha256

    @property
    def changed(self) -> Mapping[str, ChangedFile]:
        """The changed files by name."""
        return {file.name: file for file in self.files}


@dataclass(frozen=True, slots=True)
class Wish:
    """A field that is to be redacted, and why."""

    trial_id: str
    turn: int
    field: str
    number: int | None = None


def redact(
    predicate: RunPredicate,
    statement_sha256: Digest,
    tables: Mapping[str, pa.Table],
    earlier: Sequence[RedactedField],
    wishes: Iterable[Wish],
    reason: str,
    at: str,
) -> tuple[Redaction, dict[str, bytes]]:
    """A redaction of a run and its changed tables' bytes. The same text in the same column goes everywhere in the run.

    Args:
        tables: the run's, verified; redacted earlier or not.
        earlier: what was redacted earlier, and stays so.
        at: the time, as ``statement.time_text`` writes it.

    Raises:
        InvalidRecord: there is no such field, or nothing in it.
    """
    rows = {name: tables[name].to_pylist() for name in REDACTABLE}
    found = {field.place: field for field in earlier}
    for wish in wishes:
        name, text = _text_of(rows, wish)
        for row in rows[name]:
            place = (name, row["trial_id"], row["turn"], row.get("number"), wish.field)
            if row[wish.field] != text or place in found:
                continue
            values = dict(zip(("table", "trial_id", "turn", "number", "field"), place, strict=True))
            if name != "evidence":
                values["number"] = None
            found[place] = RedactedField(**values, sha256=text_digest(text), reason=reason, redacted_at=at)
    fields = sorted(found.values(), key=lambda field: (field.table, field.trial_id, field.turn, field.number or 0, field.field))
    data = {}
    for name in sorted({field.table for field in fields}):
        for row in rows[name]:
            for column in REDACTABLE[name]:
                field = found.get((name, row["trial_id"], row["turn"], row.get("number"), column))
                if field is not None:
                    row[column] = field.marker
        data[f"{name}.arrow"] = table_bytes(name, build_table(name, rows[name]))
    files = [{"name": name, "bytes": len(each), "sha256": sha256(each)} for name, each in sorted(data.items())]
    facts: dict[str, Any] = {"redaction_schema": "1", "run_id": predicate.run_id, "statement_sha256": statement_sha256, "files": files}
    return Redaction.of(facts | {"redacted": [field.model_dump() for field in fields]}), data


def check_redacted(predicate: RunPredicate, redaction: Redaction, tables: Mapping[str, pa.Table]) -> None:
    """Whether redacted tables differ from what the original statement signed in nothing but the listed fields.

    Raises:
        RecordRefused: they do, or a listed field doesn't hold its digest.
    """
    for name in sorted({field.table for field in redaction.redacted}):
        listed = {field.place: field for field in redaction.redacted if field.table == name}
        stands: dict[Place, Digest] = {}
        for index, row in enumerate(tables[name].to_pylist()):
            for column in REDACTABLE[name]:
                field = listed.pop((name, row["trial_id"], row["turn"], row.get("number"), column), None)
                if field is None:
                    continue
                if row[column] != field.marker:
                    where = f"trial {row['trial_id'][:12]}, turn {row['turn']}"
                    raise RecordRefused(f"{name}.arrow: {where}: the redacted {column} holds something else; redact it again")
                stands[index, column] = Digest(field.sha256)
        if listed:
            raise RecordRefused(f"{name}.arrow: {len(listed)} redacted fields belong to no row; get the run again from its source")
        if rows_digest(name, tables[name], stands) != getattr(predicate.redactable, name):
            raise RecordRefused(f"{name}.arrow: more differs from the original than the redacted fields; get the run again from its source")


def _text_of(rows: Mapping[str, Sequence[Mapping[str, Any]]], wish: Wish) -> tuple[str, str]:
    """The table and the text of a field."""
    name = next((table for table, columns in REDACTABLE.items() if wish.field in columns), None)
    if name is None or (wish.number is None) is (name == "evidence"):
        known = ", ".join(column for columns in REDACTABLE.values() for column in columns)
        raise InvalidRecord(f"field {wish.field!r} can't be redacted; those are {known}, and an evidence's url or excerpt needs its number")
    where = f"trial {wish.trial_id[:12]}, turn {wish.turn}"
    for row in rows[name]:
        if (row["trial_id"], row["turn"], row.get("number")) == (wish.trial_id, wish.turn, wish.number):
            if row[wish.field] is None:
                raise InvalidRecord(f"{where}: its {wish.field} is empty; there is nothing to redact")
            return name, row[wish.field]
    raise InvalidRecord(f"{where}: there is no {wish.field}{'' if wish.number is None else f' {wish.number}'}; look at the run's page")
