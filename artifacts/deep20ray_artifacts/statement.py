"""The statement that is signed: an in-toto Statement v1 whose predicate describes one run, and whose subjects are all of its files.

The subjects are conjunctive and exhaustive: a run is these files with these digests and no others. Parsing is strict (no unknown
field, no coercion, no float) and knows nothing of signatures or folders.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

import deep20ray
from deep20ray.canonical import canonical
from deep20ray_artifacts import strict_json
from deep20ray_artifacts.errors import InvalidRecord, StatementRefused
from deep20ray_artifacts.schemas import ARTIFACT_SCHEMA, TABLES, schema_digest
from deep20ray_artifacts.tables import ARROW_MEDIA_TYPE, JSON_MEDIA_TYPE, PLAN_NAME, FileEntry

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "https://deep20ray.example/attestations/run/v1"
SCORING: Final = "average-then-average-v1"
"""``deep20ray.score.METHOD``, not imported: it would load scipy into everything that signs or verifies."""
FILE_NAMES: Final = tuple(sorted([*(f"{name}.arrow" for name in TABLES), PLAN_NAME]))
"""Every file of a run but the statement or attestation over them: a closed list per artifact schema version."""
PRIVATE_NAMES: Final = ("events.jsonl", "routes.json")
"""Every file of a run's private archive: all that was journalled, line by line, and how each role was called, prompt texts included."""

RUN_ID: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z-[a-z0-9-]{1,64}-[0-9a-f]{12}")


def time_text(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds, cut, such as 2026-12-01T09:30:00.123Z. Raises ValueError for a naive datetime."""
    if moment.tzinfo is None:
        raise ValueError("a time needs its zone")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def time_of(text: str) -> datetime:
    """The moment of such a text. Raises ValueError for any other spelling."""
    moment = datetime.fromisoformat(text)
    if time_text(moment) != text:
        raise ValueError("times are written as 2026-12-01T09:30:00.123Z")
    return moment


def _checked_time(text: str) -> str:
    time_of(text)
    return text


Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=300)]
RunId = Annotated[str, StringConstraints(pattern=rf"^{RUN_ID.pattern}$")]
Time = Annotated[str, AfterValidator(_checked_time)]
Count = Annotated[int, Field(ge=0, lt=2**53)]
_LIST = Field(strict=False)  # JSON has lists, the models tuples; the items stay strict


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True, populate_by_name=True)


class Journal(_Strict):
    """The journal's length and the head of its digest chain."""

    events: Count
    head: Sha256


class Model(_Strict):
    """The Guesser that the run measures, as it was asked for."""

    id: Name
    provider: Name
    requested: Name


class RunLimits(_Strict):
    """The game's limits and the run's shape."""

    questions: Count
    failure_score: Count
    rounds: Annotated[int, Field(ge=1, le=1000)]
    subjects: Annotated[int, Field(ge=1, le=1000)]


class Producer(_Strict):
    """The software that sealed the run."""

    package: Name
    version: Name


class PrivateFile(_Strict):
    """One file of the private archive: what the producer commits to, and may later show or delete."""

    name: Name
    bytes: Count
    sha256: Sha256


class RowDigests(_Strict):
    """Digests of tables with fields that may be redacted, which stay the same when one is (``rowdigest``)."""

    turns: Sha256
    evidence: Sha256
    violations: Sha256


class RunFacts(_Strict):
    """What a sealer knows about a run beyond its files. ``completed_at`` is the last terminal event; null unless complete."""

    run_id: RunId
    sweep: Name
    edition: Name
    cohort_sha256: Sha256
    protocol_version: Sha256
    policy: Name
    plan_sha256: Sha256
    journal: Journal
    private: Annotated[tuple[PrivateFile, ...], _LIST]
    redactable: RowDigests
    model: Model
    run_seed: Name
    limits: RunLimits
    started_at: Time
    completed_at: Time | None
    status: Literal["complete", "incomplete"]
    simulated: bool

    @model_validator(mode="after")
    def _complete_has_a_time(self) -> Self:
        if (self.completed_at is None) is (self.status == "complete"):
            raise ValueError("completed_at is given for complete runs and no others")
        return self

    @model_validator(mode="after")
    def _private_files_are_the_closed_list(self) -> Self:
        if tuple(file.name for file in self.private) != PRIVATE_NAMES:
            raise ValueError(f"private must list exactly, in order: {', '.join(PRIVATE_NAMES)}")
        return self


class File(_Strict):
    """One file's exact size, and for a table its rows and schema."""

    name: Name
    bytes: Count
    rows: Count | None
    schema_sha256: Sha256 | None
    media_type: Name


class Counts(_Strict):
    """Rows of the tables that a reader wants first."""

    trials: Count
    turns: Count
    violations: Count


class RunPredicate(RunFacts):
    """Everything that is stated about a run."""

    artifact_schema: Literal["1"]
    scoring: Literal["average-then-average-v1"]
    files: Annotated[tuple[File, ...], _LIST]
    counts: Counts
    producer: Producer

    @model_validator(mode="after")
    def _files_are_the_closed_list(self) -> Self:
        if tuple(file.name for file in self.files) != FILE_NAMES:
            raise ValueError(f"files must list exactly, in order: {', '.join(FILE_NAMES)}")
        rows = {file.name: file.rows for file in self.files}
        for file in self.files:
            schema = TABLES.get(file.name.removesuffix(".arrow"))
            expected = (None, JSON_MEDIA_TYPE) if schema is None else (schema_digest(schema), ARROW_MEDIA_TYPE)
            if (file.schema_sha256, file.media_type) != expected or (file.rows is None) is not (schema is None):
                raise ValueError(f"{file.name}: its schema, media type or rows aren't those of artifact schema {ARTIFACT_SCHEMA}")
        if self.counts.model_dump() != {name: rows[f"{name}.arrow"] for name in ("trials", "turns", "violations")}:
            raise ValueError("counts must equal the rows of trials, turns and violations")
        return self


class SubjectDigest(_Strict):
    """Exactly one digest."""

    sha256: Sha256


class SubjectFile(_Strict):
    """A file's name and digest."""

    name: Name
    digest: SubjectDigest


class Statement(_Strict):
    """An in-toto Statement v1 about one run."""

    type_: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    subject: Annotated[tuple[SubjectFile, ...], _LIST]
    predicate_type: Literal["https://deep20ray.example/attestations/run/v1"] = Field(alias="predicateType")
    predicate: RunPredicate

    @model_validator(mode="after")
    def _subjects_are_the_files(self) -> Self:
        if tuple(item.name for item in self.subject) != FILE_NAMES:
            raise ValueError("subject must list every file of the run once, sorted by name")
        if self.predicate.plan_sha256 != self.digests[PLAN_NAME]:
            raise ValueError("plan_sha256 must be the digest of plan.json")
        return self

    @property
    def digests(self) -> dict[str, str]:
        """Each file's SHA-256 by its name."""
        return {item.name: item.digest.sha256 for item in self.subject}


def build_statement(facts: RunFacts, files: Iterable[FileEntry], producer: Producer | None = None) -> bytes:
    """The canonical JSON bytes of a run's statement: what ``statement.json`` holds and what is signed.

    Args:
        files: every file of the run, in any order; counts come from their rows.

    Raises:
        InvalidRecord: facts and files that make no statement.
    """
    entries = sorted(files, key=lambda entry: entry.name)
    rows = {entry.name: entry.rows for entry in entries}
    predicate = {
        **facts.model_dump(),
        "artifact_schema": ARTIFACT_SCHEMA,
        "scoring": SCORING,
        "files": [
            {"name": e.name, "bytes": e.bytes, "rows": e.rows, "schema_sha256": e.schema_sha256, "media_type": e.media_type}
            for e in entries
        ],
        "counts": {name: rows.get(f"{name}.arrow") for name in ("trials", "turns", "violations")},
        "producer": (producer or Producer(package="deep20ray", version=deep20ray.__version__)).model_dump(),
    }
    value = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": entry.name, "digest": {"sha256": entry.sha256}} for entry in entries],
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }
    try:
        Statement.model_validate(value)
    except ValidationError as error:
        raise InvalidRecord(f"run {facts.run_id}: no valid statement: {_first(error)}") from None
    return canonical(value)


def parse_statement(data: bytes) -> Statement:
    """The statement of bytes that are already known to be authentic.

    Raises:
        StatementRefused: not strict JSON, another type, an unknown or missing field, files outside the closed list.
    """
    try:
        value = strict_json.loads(data)
        return Statement.model_validate(value)
    except strict_json.NotStrictJson as error:
        raise StatementRefused(f"statement: {error}; seal the run again") from None
    except ValidationError as error:
        raise StatementRefused(f"statement: {_first(error)}; seal the run again, or read it with the version that made it") from None


def _first(error: ValidationError) -> str:
    """The first complaint, on one line, without the input."""
    first: Sequence[dict[str, object]] = error.errors(include_input=False, include_url=False, include_context=False)  # type: ignore[assignment]
    where = ".".join(str(part) for part in first[0]["loc"])  # type: ignore[attr-defined]
    return f"{where + ': ' if where else ''}{first[0]['msg']}".replace("\n", " ")
