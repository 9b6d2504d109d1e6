"""Reading one table's verified bytes: exact schema before the data is read, full validation before any of it is used.

Arrow's reader trusts offsets and types in the file; without these two steps, in this order, a forged file can crash the process.
"""

import pyarrow as pa
import pyarrow.compute as pc

from deep20ray_artifacts.errors import TableRefused
from deep20ray_artifacts.ipc_layout import UnsafeLayout, check_layout
from deep20ray_artifacts.limits import Limits
from deep20ray_artifacts.schemas import TABLES

_LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999: Arrow holds later times, Python can't."""


def read_table(name: str, data: bytes, rows: int, limits: Limits) -> pa.Table:
    """The table ``name`` of the bytes that were hashed.

    Args:
        rows: the number of rows that the statement gives.

    Raises:
        TableRefused: compression, dictionaries, extension types, another schema, bad offsets or UTF-8, another number of rows,
            a null in a required column, a time outside the years 1970 to 9999.
    """
    where = f"{name}.arrow"
    if rows > limits.table_rows:
        raise TableRefused(f"{where}: {rows} rows are more than the {limits.table_rows} that are read")
    try:
        check_layout(data, limits.record_batches)
        with pa.ipc.open_file(pa.BufferReader(data)) as reader:
            if not reader.schema.equals(TABLES[name], check_metadata=True):
                raise TableRefused(f"{where}: its columns aren't those of this artifact schema; read it with the version that made it")
            table = reader.read_all()
        table.validate(full=True)
    except UnsafeLayout as error:
        raise TableRefused(f"{where}: {error}; only uncompressed record batches are read") from None
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise TableRefused(f"{where}: Arrow can't read it: {_line(error)}; get the run again from its source") from None
    if table.num_rows != rows:
        raise TableRefused(f"{where}: it has {table.num_rows} rows, not the {rows} stated; get the run again from its source")
    if table.nbytes > len(data):
        raise TableRefused(f"{where}: its columns claim more bytes than the file has; get the run again from its source")
    for field in table.schema:
        if not field.nullable:
            _check_no_nulls(where, field, table.column(field.name))
        if pa.types.is_timestamp(field.type):
            _check_times(where, field, table.column(field.name))
    return table


def _check_no_nulls(where: str, field: pa.Field, column: pa.ChunkedArray) -> None:
    if column.null_count:
        raise TableRefused(f"{where}: column {field.name} has an empty value, which it must not; get the run again from its source")
    if pa.types.is_list(field.type) and any(chunk.flatten().null_count for chunk in column.chunks):
        raise TableRefused(f"{where}: column {field.name} has an empty item, which it must not; get the run again from its source")


def _check_times(where: str, field: pa.Field, column: pa.ChunkedArray) -> None:
    ends = pc.min_max(column.cast(pa.int64())).as_py()
    if ends["min"] is not None and not 0 <= ends["min"] <= ends["max"] <= _LAST_MS:
        raise TableRefused(f"{where}: column {field.name} has a time outside the years 1970 to 9999; get the run again from its source")


def _line(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
