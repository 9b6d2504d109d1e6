"""Tables: exact schemas, one spelling of the bytes, nothing hidden under a null, all or nothing on disk."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from deep20ray_artifacts.errors import InvalidRecord, WriteFailed
from deep20ray_artifacts.schemas import TABLES, schema_digest
from deep20ray_artifacts.tables import build_table, table_bytes, write_table
from tests.artifacts.builder import draft

EVENT = "ab" * 32


@pytest.mark.parametrize("name", TABLES)
def test_every_table_round_trips(name: str) -> None:
    rows = draft().rows[name]
    table = build_table(name, rows)
    assert table.schema.equals(TABLES[name], check_metadata=True)
    assert pa.ipc.open_file(table_bytes(name, table)).read_all().to_pylist() == table.to_pylist()


def test_bytes_do_not_depend_on_chunks_or_slices() -> None:
    rows = draft().rows["turns"]
    whole = build_table("turns", rows)
    half = len(rows) // 2
    pieces = pa.concat_tables([build_table("turns", rows[:half]), build_table("turns", rows[half:])])
    sliced = build_table("turns", [*rows, *rows]).slice(0, len(rows))
    assert pieces.column("turn").num_chunks == 2
    assert table_bytes("turns", whole) == table_bytes("turns", pieces) == table_bytes("turns", sliced)


def test_a_value_under_a_null_is_not_written() -> None:
    """Arrow itself writes it: masked and sliced data stay in the buffers."""
    table = build_table("violations", draft().rows["violations"])
    values = pa.array(["SECRET-CANARY"] * table.num_rows, pa.string())
    masked = pa.StringArray.from_buffers(len(values), values.buffers()[1], values.buffers()[2], pa.py_buffer(b"\0" * 8))
    assert masked.null_count == len(values)
    leaky = table.set_column(table.schema.get_field_index("text"), TABLES["violations"].field("text"), masked)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, leaky.schema) as writer:
        writer.write_table(leaky)
    assert b"SECRET-CANARY" in sink.getvalue().to_pybytes(), "this pyarrow hides it; the test would prove nothing"
    assert b"SECRET-CANARY" not in table_bytes("violations", leaky)


@pytest.mark.parametrize(
    "row",
    [
        {"seq": 1},
        {"seq": None, "event_sha256": EVENT},
        {"seq": 1.0, "event_sha256": EVENT},
        {"seq": True, "event_sha256": EVENT},
        {"seq": 2**63, "event_sha256": EVENT},
        {"seq": 1, "event_sha256": EVENT.encode()},
        {"seq": 1, "event_sha256": "\ud800"},
        {"seq": 1, "event_sha256": EVENT, "secret": "x"},
    ],
)
def test_rows_that_fit_no_schema_are_refused(row: dict[str, object]) -> None:
    with pytest.raises(InvalidRecord, match="table chain") as caught:
        build_table("chain", [row])
    assert "\n" not in str(caught.value)


def test_times_must_be_aware() -> None:
    row = draft().rows["run"][0]
    for started, fits in (
        (datetime(2026, 1, 1, tzinfo=UTC), True),
        (1_700_000_000_000, True),
        (datetime(2026, 1, 1), False),  # noqa: DTZ001
        ("now", False),
    ):
        if fits:
            build_table("run", [{**row, "started_at": started}])
        else:
            with pytest.raises(InvalidRecord, match="started_at"):
                build_table("run", [{**row, "started_at": started}])


def test_an_unknown_table_or_schema_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRecord, match="no public table"):
        build_table("prompts", [])
    with pytest.raises(InvalidRecord, match="its schema isn't"):
        write_table(pa.table({"seq": [1]}), tmp_path / "chain.arrow")
    assert not list(tmp_path.iterdir())


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    table = build_table("chain", [{"seq": 1, "event_sha256": EVENT}])
    (tmp_path / ".chain.arrow.part").write_bytes(b"left by a writer that was killed")
    entry = write_table(table, tmp_path / "chain.arrow")
    assert [path.name for path in tmp_path.iterdir()] == ["chain.arrow"]
    assert (entry.bytes, entry.rows, entry.schema_sha256) == ((tmp_path / "chain.arrow").stat().st_size, 1, schema_digest(TABLES["chain"]))
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "chain.arrow").mkdir()  # stands in the way of the rename
    with pytest.raises(WriteFailed, match=r"can't write .*chain\.arrow"):
        write_table(table, tmp_path / "runs" / "chain.arrow")
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["chain.arrow"]
