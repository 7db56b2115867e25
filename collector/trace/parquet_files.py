"""Parquet files of one table: written whole, read as the schema's columns whoever wrote them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cascade_runtime.vocabulary.errors import BadTrace
from cascade_runtime.vocabulary.schema import TABLES, Column
from collector.schema.arrow import arrow_type, fits
from collector.schema.words import odd_word
from collector.trace.durable import publish

ROWS_A_GROUP = 128 * 1024
_ORDER = [("rank", "ascending"), ("incarnation", "ascending"), ("seq", "ascending")]
_NOT_READABLE = (pa.ArrowException, OSError, ValueError)
"""What pyarrow raises on bytes that are no Parquet."""

_MAY_NOT_BE_NEGATIVE = frozenset({"rank", "incarnation", "seq"})


def read_file(file: Path, name: str, table: str, columns: Sequence[str]) -> pa.Table:
    """Some columns of one file, cast to the schema's types; a column it lacks is null.

    Args:
        file: the Parquet file.
        name: how messages call it.
        table: the event or result table it belongs to.
        columns: the schema's columns wanted.

    Raises:
        BadTrace: not a whole Parquet file; a column of another type, with nulls or words that it may
            not hold; a required column that is not there. File and column are named.
    """
    wanted = [TABLES[table].column(column) for column in columns]
    try:
        parquet = pq.ParquetFile(file, memory_map=True, page_checksum_verification=True)
        with parquet:
            schema = parquet.schema_arrow
            for column in wanted:
                _check_type(schema, column, f"{name}: {column.name}")
            here = [column.name for column in wanted if column.name in schema.names]
            read = parquet.read(columns=here)
            num_rows = parquet.metadata.num_rows
    except _NOT_READABLE as error:
        raise BadTrace(
            f"this file cannot be read as Parquet: {_one_line(error)}",
            where=name,
            hint="it may be cut off or of another program; move it out of the trace to read the rest",
        ) from error
    arrays = []
    for column in wanted:
        dtype = arrow_type(column.type)
        if column.name not in here:
            arrays.append(pa.chunked_array([pa.nulls(num_rows, dtype)]))
            continue
        values = read[column.name]
        values = values if values.type.equals(dtype) else values.cast(dtype)
        _check_values(values, column, f"{name}: {column.name}")
        arrays.append(values)
    return pa.Table.from_arrays(arrays, names=list(columns))


def write_parquet(
    file: Path,
    rows: pa.Table,
    notes: Mapping[str, str] | None = None,
    compression: Literal["zstd", "lz4"] = "zstd",
) -> None:
    """Write rows as one Parquet file, which appears whole; its folder is made when it is not there.

    Args:
        file: its name; what stood there is replaced.
        rows: the rows, in the order in which they are stored.
        notes: key-value metadata of the file.
        compression: ``lz4`` takes a quarter less CPU and makes files a third larger.
    """
    file.parent.mkdir(parents=True, exist_ok=True)

    def write(out: Any) -> None:
        with pq.ParquetWriter(
            out,
            rows.schema,
            compression=compression,
            # Numbers seldom repeat: looking for it took a third of the time and made files larger.
            use_dictionary=_texts(rows.schema) or False,
            write_page_checksum=True,  # a flipped bit is then found, not read
            store_schema=False,
        ) as writer:
            writer.write_table(rows, row_group_size=ROWS_A_GROUP)
            writer.add_key_value_metadata(dict(notes or {}))

    publish(file, write)


def _texts(schema: pa.Schema) -> list[str]:
    """Paths of the columns that hold text."""
    return [field.name for field in schema if pa.types.is_string(field.type)]


def read_notes(file: Path) -> dict[str, str]:
    """The key-value metadata of a Parquet file.

    Raises:
        OSError, pyarrow.ArrowException: it cannot be read.
    """
    found = pq.read_metadata(file).metadata or {}
    return {key.decode(): value.decode() for key, value in found.items()}


def in_order(rows: pa.Table) -> pa.Table:
    """Event rows in (rank, incarnation, seq) order; as they are when they are so already."""
    keep = np.ones(max(rows.num_rows - 1, 0), dtype=bool)
    for name, _ in reversed(_ORDER):  # sorting copies every column, so look first
        values = rows[name].to_numpy()
        below, equal = values[:-1] < values[1:], values[:-1] == values[1:]
        keep = below | (equal & keep)
    return rows if keep.all() else rows.sort_by(_ORDER)


def one_run(file: Path, run_id: str) -> bool:
    """True when the file's own statistics say that all of its rows are of ``run_id``.

    It saves reading a column that is long and nearly always one value.
    """
    try:
        with pq.ParquetFile(file) as parquet:
            index = parquet.schema_arrow.get_field_index("run_id")
            if index != 0:  # with nested columns before it, its place among the leaves is unknown
                return False
            groups = [
                parquet.metadata.row_group(i).column(0).statistics
                for i in range(parquet.metadata.num_row_groups)
            ]
    except _NOT_READABLE:
        return False
    return all(
        s is not None and s.has_min_max and s.null_count == 0 and s.min == s.max == run_id
        for s in groups
    )


def _check_type(schema: pa.Schema, column: Column, where: str) -> None:
    places = schema.get_all_field_indices(column.name)
    if not places:
        if not column.nullable:
            raise BadTrace("this column is missing, and no row can do without it", where=where)
        return
    if len(places) > 1:
        raise BadTrace("this file has two columns of this name", where=where)
    have, want = schema.field(places[0]).type, arrow_type(column.type)
    if not fits(have, want):
        raise BadTrace(
            f"the column is {have}, not {want}",
            where=where,
            hint="docs/schema.md lists every column's type",
        )


def _check_values(values: pa.ChunkedArray, column: Column, where: str) -> None:
    if not column.nullable and values.null_count:
        raise BadTrace("this column holds nulls, which it may not", where=where)
    odd = odd_word(values, column)
    if odd is not None:
        says = f"this column holds {odd!r}, which is none of {', '.join(column.words)}"
        raise BadTrace(says, where=where)
    if column.name in _MAY_NOT_BE_NEGATIVE and len(values):
        lowest = pc.min(values).as_py()
        if lowest is not None and lowest < 0:
            raise BadTrace(f"this column holds {lowest}, and it counts from 0", where=where)


def _one_line(error: Any) -> str:
    return " ".join(str(error).split())[:300]
