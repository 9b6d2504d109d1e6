"""Arrow files as hostile input: authentic by digest, and outside the one accepted form. A crash of the process would fail the run."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deep20ray_artifacts.errors import TableRefused
from deep20ray_artifacts.keys import TrustedKey
from deep20ray_artifacts.limits import Limits
from deep20ray_artifacts.reading import read_table
from deep20ray_artifacts.schemas import TABLES
from deep20ray_artifacts.signing import NewKey
from deep20ray_artifacts.tables import build_table, table_bytes
from deep20ray_artifacts.verify import verify_run
from tests.artifacts.builder import draft, force_sign

ROWS = draft().rows["violations"]
TABLE = build_table("violations", ROWS)
DATA = table_bytes("violations", TABLE)


def _file(table: pa.Table, schema: pa.Schema | None = None, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    metadata = options.pop("metadata", None)
    with pa.ipc.new_file(sink, schema or table.schema, options=pa.ipc.IpcWriteOptions(**options), metadata=metadata) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _stream() -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return bytes(sink.getvalue().to_pybytes())


def _with(name: str, array: pa.Array, field: pa.Field | None = None) -> bytes:
    index = TABLE.schema.get_field_index(name)
    return _file(TABLE.set_column(index, field or TABLE.schema.field(name), array))


def _bad_text() -> bytes:
    (text,) = TABLE.column("kind").chunks
    buffers = text.buffers()
    return _with("kind", pa.StringArray.from_buffers(len(text), buffers[1], pa.py_buffer(b"\xff" * buffers[2].size), None))


def _bad_offsets() -> bytes:
    (text,) = TABLE.column("kind").chunks
    offsets = bytearray(text.buffers()[1].to_pybytes())
    offsets[4:8] = (1 << 30).to_bytes(4, "little")
    marker = bytes(text.buffers()[1].to_pybytes()[: 4 * (len(text) + 1)])
    assert DATA.count(marker) == 1
    return DATA.replace(marker, bytes(offsets[: len(marker)]))


ATTACKS: dict[str, tuple[Callable[[], bytes], str]] = {
    "lz4 body": (lambda: _file(TABLE, compression="lz4"), "compressed"),
    "zstd body": (lambda: _file(TABLE, compression="zstd"), "compressed"),
    "a stream": (_stream, "no Arrow IPC file"),
    "no bytes": (lambda: b"", "no Arrow IPC file"),
    "not Arrow": (lambda: b"PAR1" * 100, "no Arrow IPC file"),
    "a footer of any size": (lambda: DATA[:-10] + b"\xff\xff\xff\x7f" + DATA[-6:], "footer lies outside"),
    "a negative footer": (lambda: DATA[:-10] + b"\xff\xff\xff\xff" + DATA[-6:], "footer lies outside"),
    "a cut file": (lambda: DATA[: len(DATA) // 2] + DATA[-100:], "only uncompressed"),
    "a dictionary": (lambda: _file(TABLE.set_column(2, "kind", TABLE.column("kind").dictionary_encode())), "dictionaries"),
    "metadata of the file": (lambda: _file(TABLE, metadata={"note": "x"}), "metadata"),
    "metadata of the schema": (lambda: _file(TABLE.replace_schema_metadata({"note": "x"})), "columns aren't"),
    "an extension type": (
        lambda: _with(
            "kind",
            TABLE.column("kind").combine_chunks(),
            TABLE.schema.field("kind").with_metadata({"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": "x"}),
        ),
        "columns aren't",
    ),
    "a column more": (lambda: _file(TABLE.append_column("prompt", pa.array(["x"] * len(TABLE)))), "columns aren't"),
    "a column less": (lambda: _file(TABLE.drop_columns(["text"])), "columns aren't"),
    "columns in another order": (lambda: _file(TABLE.select(TABLE.column_names[::-1])), "columns aren't"),
    "another width": (
        lambda: _with("turn", TABLE.column("turn").cast(pa.int64()), pa.field("turn", pa.int64(), nullable=False)),
        "columns aren't",
    ),
    "nullable where it isn't": (lambda: _with("turn", TABLE.column("turn"), pa.field("turn", pa.int32())), "columns aren't"),
    "an empty required value": (lambda: _with("turn", pa.nulls(len(TABLE), pa.int32())), "empty value"),
    "another table": (lambda: table_bytes("chain", build_table("chain", [])), "columns aren't"),
    "a row less": (lambda: table_bytes("violations", build_table("violations", ROWS[:-1])), "rows, not the"),
    "text that isn't UTF-8": (_bad_text, "can't read it"),
    "offsets that point outside": (_bad_offsets, "can't read it"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_files_are_refused(tmp_path: Path, key: NewKey, trusted: list[TrustedKey], name: str) -> None:
    make, words = ATTACKS[name]
    run = draft()
    run.files["violations.arrow"] = make()
    folder = force_sign(run.seal(tmp_path), key.private)
    with pytest.raises(TableRefused, match=words) as caught:
        verify_run(folder, trusted)
    assert "\n" not in str(caught.value)
    assert "violations.arrow" in str(caught.value)


def test_an_empty_item_of_a_list_is_refused() -> None:
    schema = TABLES["roles"]
    rows = draft().rows["roles"]
    table = build_table("roles", rows)
    spoilt = pa.array([[None]] * len(rows), schema.field("served_models").type)
    data = _file(table.set_column(schema.get_field_index("served_models"), schema.field("served_models"), spoilt))
    with pytest.raises(TableRefused, match="empty item"):
        read_table("roles", data, len(rows), Limits())


@pytest.mark.parametrize("moment", [-1, 253_402_300_800_000, 2**62])
def test_times_that_python_cannot_hold_are_refused(moment: int) -> None:
    schema = TABLES["turns"]
    rows = draft().rows["turns"]
    spoilt = pa.array([moment] * len(rows), pa.int64()).cast(schema.field("completed_at").type)
    data = _file(build_table("turns", rows).set_column(schema.get_field_index("completed_at"), schema.field("completed_at"), spoilt))
    with pytest.raises(TableRefused, match="completed_at has a time outside"):
        read_table("turns", data, len(rows), Limits())


def test_bounds_on_rows_and_batches() -> None:
    with pytest.raises(TableRefused, match="more than the 2 that are read"):
        read_table("violations", DATA, len(ROWS), Limits(table_rows=2))
    many = pa.Table.from_batches([build_table("violations", [row]).to_batches()[0] for row in ROWS])
    with pytest.raises(TableRefused, match="record batches, more than 3"):
        read_table("violations", _file(many), len(ROWS), Limits(record_batches=3))


@pytest.mark.parametrize("name", ["trials", "roles", "violations"])
def test_damaged_files_never_crash_the_reader(name: str) -> None:
    """A few hundred files with random damage: each is refused, or reads as a table of the right form, down to its Python values."""
    draw = random.Random(20)
    rows = draft().rows[name]
    whole = table_bytes(name, build_table(name, rows))
    refused = 0
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(draw.choice([1, 2, 4, 16])):
            data[draw.randrange(len(data))] = draw.choice([0, 1, 127, 128, 255, draw.randrange(256)])
        try:
            read_table(name, bytes(data), len(rows), Limits()).to_pylist()
        except TableRefused:
            refused += 1
    assert 100 < refused < 400
