"""Digests of tables that stay the same when a field is redacted: each field that may be, counts by its own digest alone.

A run's statement signs one per such table. So a redacted table, in which a field's digest stands in the field's place, can be held
against the original statement, column by column and row by row, without the original's bytes.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from deep20ray.canonical import Digest

REDACTABLE: Final[Mapping[str, tuple[str, ...]]] = {
    "turns": ("question", "guess_name", "guess_description"),
    "evidence": ("url", "excerpt"),
    "violations": ("text",),
}
"""The fields that may be redacted, by table: what models and pages wrote."""

Place = tuple[int, str]
"""A row's index in its table, and a column."""


def text_digest(text: str) -> Digest:
    """The digest of one field: SHA-256 of its UTF-8."""
    return Digest(hashlib.sha256(text.encode()).hexdigest())


def rows_digest(name: str, table: pa.Table, redacted: Mapping[Place, Digest] | None = None) -> Digest:
    """The digest of a table's rows: SHA-256 over one line of JSON a row, an array of all columns in order; a line feed after each.

    Times are milliseconds since 1970; a field that may be redacted is its digest, null if there is none.

    Args:
        redacted: what stands in for fields that were redacted.
    """
    stands = redacted or {}
    columns: list[list[object]] = []
    for field in table.schema:
        values = table.column(field.name)
        plain = (values.cast(pa.int64()) if pa.types.is_timestamp(field.type) else values).to_pylist()
        if field.name in REDACTABLE[name]:
            plain = [stands.get((n, field.name)) or (None if text is None else text_digest(text)) for n, text in enumerate(plain)]
        columns.append(plain)
    digest = hashlib.sha256()
    for row in zip(*columns, strict=True):
        digest.update(json.dumps(row, separators=(",", ":")).encode() + b"\n")
    return Digest(digest.hexdigest())


def all_rows_digests(tables: Mapping[str, pa.Table]) -> dict[str, Digest]:
    """Of every table that has such fields."""
    return {name: rows_digest(name, tables[name]) for name in REDACTABLE}
