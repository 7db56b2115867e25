"""Bodies of Arrow IPC streams, one after the other, one a table.

The sender is not trusted: what compressed buffers claim to unpack to is added up before anything is
unpacked, forms in which few bytes stand for many (dictionaries, views, run ends) are refused, and
every offset is checked before a value is looked at.
"""

from __future__ import annotations

import pyarrow as pa

from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.schema.conform import conform
from collector.wire.arrow_claims import BadMessage, claimed_bytes
from collector.wire.arrow_values import odd_value
from collector.wire.batch import ARROW, BadBatch, Batch

TABLE_KEY = b"table"
"""Key of the schema's metadata that names the table."""

MAX_ROWS = 1_000_000
"""Rows of one body, and of one record batch in it."""

MAX_UNPACKED = 64 << 20
"""Bytes that a body's buffers may unpack to."""


def decode_arrow(body: bytes) -> Batch:
    """Whole rows as Arrow IPC streams.

    Raises:
        BadBatch: not such streams; an unknown table; a column that does not fit (named).
    """
    parts: dict[str, list[pa.Table]] = {}
    num_rows = 0
    _check_claims(body)
    reader = pa.BufferReader(body)
    while reader.tell() < len(body):
        name, rows = _read_stream(reader)
        num_rows += rows.num_rows
        if num_rows > MAX_ROWS:
            raise BadBatch(
                f"more than {MAX_ROWS} rows in one body", where="body", hint="send smaller batches"
            )
        parts.setdefault(name, []).append(_checked(rows, name))
    tables = {name: pa.concat_tables(found) for name, found in parts.items()}
    return Batch(ARROW, body, None, tables, num_rows)


def _checked(rows: pa.Table, name: str) -> pa.Table:
    try:
        made = conform(
            rows, name, lambda what, where: BadBatch(what, where=where), keep_extra=False
        )
    except (
        pa.ArrowException,
        ValueError,
    ) as error:  # values that no cast survives, names not UTF-8
        raise BadBatch(f"these rows do not fit the table: {_short(error)}", where=name) from error
    wrong = odd_value(made, name)
    if wrong is not None:
        raise BadBatch(wrong[0], where=wrong[1])
    return made


def encode_arrow(tables: dict[str, pa.Table]) -> bytes:
    """Tables as the body that ``decode_arrow`` takes; tables without rows are left out."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    for name, rows in tables.items():
        if rows.num_rows:
            schema = rows.schema.with_metadata({TABLE_KEY: name.encode()})
            with pa.ipc.new_stream(sink, schema, options=options) as out:
                out.write_table(rows.cast(schema))
    return bytes(sink.getvalue())


def _check_claims(body: bytes) -> None:
    try:
        claimed = claimed_bytes(body)
    except BadMessage as error:
        raise BadBatch(f"this is not an Arrow IPC stream: {error}", where="body") from error
    if claimed > MAX_UNPACKED:
        raise BadBatch(
            f"its buffers unpack to {claimed} bytes, and {MAX_UNPACKED} are taken",
            where="body",
            hint="send smaller batches",
        )


def _read_stream(source: pa.BufferReader) -> tuple[str, pa.Table]:
    try:
        with pa.ipc.open_stream(source) as stream:
            name = _table_of(stream.schema)
            batches = []
            for batch in stream:
                if batch.num_rows > MAX_ROWS:
                    raise BadBatch(f"{batch.num_rows} rows are too many", where=name)
                batch.validate(full=True)
                batches.append(batch)
            return name, pa.Table.from_batches(batches, stream.schema)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise BadBatch(f"this is not an Arrow IPC stream: {_short(error)}", where="body") from error


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _table_of(schema: pa.Schema) -> str:
    name = str((schema.metadata or {}).get(TABLE_KEY, b""), errors="replace")
    if name not in EVENT_TABLES:
        raise BadBatch(
            f"{name!r} is no event table of the schema",
            where="body",
            hint="the schema's metadata names the table under the key 'table'",
        )
    for field in schema:
        if not _plainly_stored(field.type):
            raise BadBatch(
                f"columns of type {field.type} are not taken",
                where=f"{name}.{field.name}",
                hint="send plain columns, without dictionaries or views",
            )
    return name


def _plainly_stored(dtype: pa.DataType) -> bool:
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return _plainly_stored(dtype.value_type)
    if pa.types.is_struct(dtype):
        return all(_plainly_stored(field.type) for field in dtype)
    return bool(
        pa.types.is_null(dtype)
        or pa.types.is_boolean(dtype)
        or pa.types.is_integer(dtype)
        or pa.types.is_floating(dtype)
        or pa.types.is_string(dtype)
        or pa.types.is_large_string(dtype)
    )
