"""Values of Arrow rows that fit their column's type and are yet none that the vocabulary allows.

The codec checks them in the record forms: numbers out of their bounds, nulls inside of lists and
structs.
"""

from __future__ import annotations

import msgspec.inspect
import pyarrow as pa
import pyarrow.compute as pc

from cascade_runtime.vocabulary.schema import EVENT_TABLES


def odd_value(rows: pa.Table, table: str) -> tuple[str, str] | None:
    """(what is wrong, table.column) of the first column that holds such a value.

    Args:
        rows: with the schema's columns and types.
        table: an event table.
    """
    for column, kind in _LIMITED[table].items():
        for chunk in rows[column].chunks:
            wrong = _wrong(chunk, kind)
            if wrong is not None:
                return wrong, f"{table}.{column}"
    return None


def _wrong(values: pa.Array, kind: msgspec.inspect.Type) -> str | None:
    if isinstance(kind, msgspec.inspect.IntType):
        ends = pc.min_max(values).as_py()
        lowest, highest = ends["min"], ends["max"]
        if lowest is not None and kind.ge is not None and lowest < kind.ge:
            return f"this column holds {lowest}, and its least is {kind.ge}"
        if highest is not None and kind.le is not None and highest > kind.le:
            return f"this column holds {highest}, and its most is {kind.le}"
        return None
    if isinstance(kind, msgspec.inspect.ListType):
        return _wrong_inside(pc.list_flatten(values), _plain(kind.item_type))
    if isinstance(kind, msgspec.inspect.StructType):
        there = values.drop_null()
        inside = (
            _wrong_inside(pc.struct_field(there, field.name), _plain(field.type))
            for field in kind.fields
        )
        return next((wrong for wrong in inside if wrong is not None), None)
    return None


def _wrong_inside(values: pa.Array, kind: msgspec.inspect.Type) -> str | None:
    if values.null_count:
        return "this column holds a null inside of a value"
    return _wrong(values, kind)


def _plain(kind: msgspec.inspect.Type) -> msgspec.inspect.Type:
    """The type without what only describes it, and without None."""
    if isinstance(kind, msgspec.inspect.Metadata):
        return _plain(kind.type)
    if isinstance(kind, msgspec.inspect.UnionType):
        (kind,) = (t for t in kind.types if not isinstance(t, msgspec.inspect.NoneType))
        return _plain(kind)
    return kind


def _limited(struct: type[msgspec.Struct]) -> dict[str, msgspec.inspect.Type]:
    info = msgspec.inspect.type_info(struct)
    assert isinstance(info, msgspec.inspect.StructType)
    kinds = {field.name: _plain(field.type) for field in info.fields}
    return {
        name: kind
        for name, kind in kinds.items()
        if isinstance(
            kind, msgspec.inspect.ListType | msgspec.inspect.StructType | msgspec.inspect.IntType
        )
    }


_LIMITED = {name: _limited(table.struct) for name, table in EVENT_TABLES.items()}
