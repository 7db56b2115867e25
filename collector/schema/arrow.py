"""Arrow types of every table, derived from the vocabulary's schema."""

from __future__ import annotations

import pyarrow as pa

from cascade_runtime.vocabulary.schema import STRUCTS, TABLES

_SCALARS: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "bool": pa.bool_(),
}


def arrow_type(storage: str) -> pa.DataType:
    """The Arrow type of a storage type such as ``int64`` or ``list<dot>``.

    Raises:
        KeyError: not a storage type of the vocabulary's schema.
    """
    if storage.startswith("list<"):
        return pa.list_(arrow_type(storage[len("list<") : -1]))
    if storage in STRUCTS:
        return pa.struct([(name, arrow_type(inner)) for name, inner in STRUCTS[storage]])
    return _SCALARS[storage]


# Every field is nullable in Arrow, as it is in Parquet files of other writers; which columns may
# not hold nulls is the vocabulary's to say (Column.nullable) and is checked where files are read.
_SCHEMAS: dict[str, pa.Schema] = {
    name: pa.schema([(c.name, arrow_type(c.type)) for c in table.columns])
    for name, table in TABLES.items()
}


def arrow_schema(table: str) -> pa.Schema:
    """The Arrow schema of one event or result table.

    Raises:
        KeyError: no table of that name.
    """
    return _SCHEMAS[table]


def empty_table(table: str) -> pa.Table:
    """A table without rows, with the columns of the schema."""
    return arrow_schema(table).empty_table()


def plain(dtype: pa.DataType) -> pa.DataType:
    """The type with its large, view and dictionary forms folded to the plain one."""
    if pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype):
        return pa.string()
    if pa.types.is_dictionary(dtype):
        return plain(dtype.value_type)
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype) or pa.types.is_list_view(dtype):
        return pa.list_(plain(dtype.value_type))
    if pa.types.is_struct(dtype):
        return pa.struct([(field.name, plain(field.type)) for field in dtype])
    return dtype


def fits(have: pa.DataType, want: pa.DataType) -> bool:
    """True when a column of type ``have`` holds exactly the values of type ``want``.

    A column of Arrow's null type fits everything: it was written by someone who had no value.
    """
    return bool(pa.types.is_null(have) or plain(have).equals(want))
