"""Building and writing the public tables: exact schemas, Python values in, the same bytes out every time.

Columns are always built from Python values, never sliced or masked: Arrow keeps the value under a null, and a slice keeps its
neighbours, so that either could carry something private into a public file. Reading is elsewhere (``reading``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from deep20ray.canonical import Digest, sha256
from deep20ray_artifacts.errors import InvalidRecord
from deep20ray_artifacts.files import write_atomic
from deep20ray_artifacts.schemas import TABLES, schema_digest

ARROW_MEDIA_TYPE = "application/vnd.apache.arrow.file"
JSON_MEDIA_TYPE = "application/json"
PLAN_NAME = "plan.json"

BATCH_ROWS = 65_536
"""Rows per record batch. Fixed, so that the bytes don't depend on how a table was put together."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One written file as a statement lists it. ``rows`` and ``schema_sha256`` are None for what is no table."""

    name: str
    bytes: int
    rows: int | None
    sha256: Digest
    schema_sha256: Digest | None
    media_type: str


def build_table(name: str, rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """The table ``name`` with the exact schema of ``schemas.TABLES``.

    Args:
        rows: one mapping per row. A nullable column may be left out; times are aware datetimes or UTC milliseconds.

    Raises:
        InvalidRecord: an unknown table or column, a required value that is missing, a value of another type.
    """
    schema = _schema(name)
    for index, row in enumerate(rows):
        unknown = row.keys() - set(schema.names)
        if unknown:
            raise InvalidRecord(f"table {name}, row {index}: there is no column {min(unknown)!r}; see schemas.py")
    batches = [_batch(name, schema, rows[start : start + BATCH_ROWS], start) for start in range(0, len(rows), BATCH_ROWS)]
    return pa.Table.from_batches(batches, schema=schema)


def table_bytes(name: str, table: pa.Table) -> bytes:
    """The table as an uncompressed Arrow IPC file, rebuilt from its values so that equal tables give equal bytes.

    Raises:
        InvalidRecord: the table hasn't the schema of its name, or doesn't validate.
    """
    schema = _schema(name)
    if not table.schema.equals(schema, check_metadata=True):
        raise InvalidRecord(f"table {name}: its schema isn't the public one; make it with build_table")
    clean = build_table(name, table.to_pylist())
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=None, emit_dictionary_deltas=False)
    with pa.ipc.new_file(sink, schema, options=options) as writer:
        for batch in clean.to_batches():
            writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def write_table(table: pa.Table, path: Path) -> FileEntry:
    """Writes ``table`` to ``path``, whose file name says which table it is (``<name>.arrow``).

    Raises:
        InvalidRecord: as ``table_bytes``; or a file name of no table.
        WriteFailed: the folder can't be written.
    """
    name = path.name.removesuffix(".arrow")
    if path.suffix != ".arrow":
        raise InvalidRecord(f"{path.name}: a table's file is named <table>.arrow")
    data = table_bytes(name, table)
    write_atomic(path, data)
    return FileEntry(path.name, len(data), table.num_rows, sha256(data), schema_digest(TABLES[name]), ARROW_MEDIA_TYPE)


def write_plan(plan: bytes, folder: Path) -> FileEntry:
    """Writes the public plan (canonical JSON bytes of an object) as ``plan.json`` in ``folder``.

    Raises:
        WriteFailed: the folder can't be written.
    """
    write_atomic(folder / PLAN_NAME, plan)
    return FileEntry(PLAN_NAME, len(plan), None, sha256(plan), None, JSON_MEDIA_TYPE)


def _schema(name: str) -> pa.Schema:
    try:
        return TABLES[name]
    except KeyError:
        raise InvalidRecord(f"there is no public table {name!r}; the tables are {', '.join(TABLES)}") from None


def _batch(name: str, schema: pa.Schema, rows: Sequence[Mapping[str, object]], start: int) -> pa.RecordBatch:
    arrays = [_array(name, field, [row.get(field.name) for row in rows], start) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(name: str, field: pa.Field, values: list[object], start: int) -> pa.Array:
    for index, value in enumerate(values):
        if not (field.nullable if value is None else _fits(field.type, value)):
            raise InvalidRecord(f"table {name}, row {start + index}, column {field.name}: {type(value).__name__} is no {field.type}")
    try:
        return pa.array(values, type=field.type)
    except (pa.ArrowException, UnicodeError, OverflowError) as error:
        raise InvalidRecord(f"table {name}, column {field.name}: {error}") from error


def _fits(type_: pa.DataType, value: Any) -> bool:
    """Whether a value is of the column's Python type; Arrow itself would take bytes for text and cut a float to an integer."""
    if pa.types.is_boolean(type_):
        return isinstance(value, bool)
    if pa.types.is_integer(type_):
        return isinstance(value, int) and not isinstance(value, bool)
    if pa.types.is_timestamp(type_):
        aware = isinstance(value, datetime) and value.tzinfo is not None
        return aware or (isinstance(value, int) and not isinstance(value, bool))
    if pa.types.is_list(type_):
        return isinstance(value, (list, tuple)) and all(_fits(type_.value_type, item) for item in value)
    return isinstance(value, str)
