"""Storage types of the vocabulary as Arrow types, and result tables from Python rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from cascade_runtime.vocabulary.schema import STRUCTS, TABLES

_PLAIN: dict[str, Any] = {
    "string": pa.string(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "bool": pa.bool_(),
}


def arrow_type(storage: str) -> Any:
    """The Arrow type of a storage type such as ``int64`` or ``list<dot>``."""
    if storage.startswith("list<"):
        return pa.list_(arrow_type(storage[5:-1]))
    if storage in STRUCTS:
        return pa.struct([(name, _PLAIN[kind]) for name, kind in STRUCTS[storage]])
    return _PLAIN[storage]


def arrow_schema(table: str) -> Any:
    """The Arrow schema of an event or result table, columns in the schema's order."""
    return pa.schema([(c.name, arrow_type(c.type)) for c in TABLES[table].columns])


def arrow_table(table: str, rows: Iterable[Mapping[str, Any]]) -> Any:
    """A pyarrow.Table of ``table`` from row dicts; a missing key reads as null."""
    listed = list(rows)
    schema = arrow_schema(table)
    columns = [
        pa.array([row.get(field.name) for row in listed], type=field.type) for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def of_run(table: Any, run_id: str) -> Any:
    """A result table with every row said to be of one run."""
    place = table.schema.get_field_index("run_id")
    return table.set_column(place, "run_id", pa.repeat(run_id, table.num_rows))
