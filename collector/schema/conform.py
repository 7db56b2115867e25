"""Arrow rows of anybody, made into rows of one table of the schema, or refused with the column named."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from cascade_runtime.vocabulary.errors import CascadeError
from cascade_runtime.vocabulary.schema import TABLES, Column
from collector.schema.arrow import arrow_type, fits
from collector.schema.words import odd_word

_COUNTS_FROM_0 = frozenset({"rank", "incarnation", "seq"})

Refusal = Callable[[str, str], CascadeError]
"""Makes the error to raise from (what happened, table.column)."""


def conform(rows: pa.Table, name: str, refuse: Refusal, *, keep_extra: bool) -> pa.Table:
    """The rows with exactly the schema's columns, in its order and types.

    Args:
        rows: as they came.
        name: a table of the schema.
        refuse: makes the error for a column that does not fit.
        keep_extra: put columns that the schema does not know after the others, else drop them.

    Raises:
        CascadeError: of ``refuse``: a missing column, a wrong type, a null or a word that it may not
            hold, a negative number where it counts from 0.
    """
    columns, names = [], []
    for column in TABLES[name].columns:
        columns.append(_checked(rows, column, f"{name}.{column.name}", refuse))
        names.append(column.name)
    for extra in rows.column_names if keep_extra else ():
        if extra not in names:
            columns.append(rows[extra])
            names.append(extra)
    return pa.Table.from_arrays(columns, names=names)


def _checked(rows: pa.Table, column: Column, where: str, refuse: Refusal) -> pa.ChunkedArray:
    dtype = arrow_type(column.type)
    places = rows.schema.get_all_field_indices(column.name)
    if len(places) > 1:
        raise refuse("this column is there twice", where)
    if not places:
        if not column.nullable:
            raise refuse("this column is missing", where)
        return pa.chunked_array([pa.nulls(rows.num_rows, dtype)])
    values = rows.column(places[0])
    if not fits(values.type, dtype):
        raise refuse(f"this column is {values.type}, not {dtype}", where)
    values = values if values.type.equals(dtype) else values.cast(dtype)
    if not column.nullable and values.null_count:
        raise refuse("this column holds nulls, which it may not", where)
    odd = odd_word(values, column)
    if odd is not None:
        raise refuse(f"{odd!r} is none of {', '.join(column.words)}", where)
    if column.name in _COUNTS_FROM_0 and len(values) and pc.min(values).as_py() < 0:
        raise refuse("this column counts from 0", where)
    return values
