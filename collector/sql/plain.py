"""Arrow values as values that JSON can hold, without the limits of Python's dates."""

from __future__ import annotations

import base64
import math
from typing import Any

import pyarrow as pa

_NOT_A_NUMBER = {math.inf: "Infinity", -math.inf: "-Infinity"}


def plain_values(values: pa.Array) -> list[Any]:
    """The values of an Arrow array as JSON can hold them.

    Integers and decimals stay numbers with all their digits. NaN and the infinities become the
    strings ``NaN``, ``Infinity``, ``-Infinity``. Dates, times and timestamps become ISO 8601 text,
    those with a time zone in UTC with a ``Z``. Blobs become base64, structs objects, maps lists of
    ``{"key", "value"}``, and what is of no type that we know its text.
    """
    dtype = values.type
    if isinstance(dtype, pa.BaseExtensionType):
        return plain_values(values.storage)
    if pa.types.is_dictionary(dtype):
        return plain_values(values.dictionary_decode())
    if pa.types.is_floating(dtype):
        return [_finite(value) for value in values.to_pylist()]
    if pa.types.is_timestamp(dtype):
        return _timestamps(values)
    if pa.types.is_date(dtype) or pa.types.is_time(dtype):
        return _texts(values)
    if _is_binary(dtype):
        return [None if v is None else base64.b64encode(v).decode() for v in values.to_pylist()]
    if pa.types.is_struct(dtype):
        return _structs(values)
    if pa.types.is_map(dtype):
        return _maps(values)
    if pa.types.is_fixed_size_list(dtype):
        return _nested(values.cast(pa.list_(dtype.value_type)))
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return _nested(values)
    found: list[Any] = values.to_pylist()
    if _is_simple(dtype):
        return found
    return [None if value is None else _text_of(value) for value in found]


def _is_simple(dtype: pa.DataType) -> bool:
    return bool(
        pa.types.is_boolean(dtype)
        or pa.types.is_integer(dtype)
        or pa.types.is_decimal(dtype)
        or pa.types.is_string(dtype)
        or pa.types.is_large_string(dtype)
        or pa.types.is_string_view(dtype)
        or pa.types.is_null(dtype)
    )


def _is_binary(dtype: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(dtype)
        or pa.types.is_large_binary(dtype)
        or pa.types.is_fixed_size_binary(dtype)
        or pa.types.is_binary_view(dtype)
    )


def _finite(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return _NOT_A_NUMBER.get(value, "NaN")


def _timestamps(values: pa.Array) -> list[str | None]:
    zoned = values.type.tz is not None
    # Without its zone the value is the same instant in UTC, and no zone database is asked.
    found = _texts(values.cast(pa.timestamp(values.type.unit)) if zoned else values)
    return [None if text is None else _iso(text, zoned) for text in found]


def _iso(text: str, zoned: bool) -> str:
    if text.startswith("<"):  # infinity, or a year that Arrow cannot name
        return text
    return text.replace(" ", "T", 1) + ("Z" if zoned else "")


def _texts(values: pa.Array) -> list[str | None]:
    found: list[str | None] = values.cast(pa.string()).to_pylist()
    return found


def _structs(values: pa.Array) -> list[dict[str, Any] | None]:
    names = [field.name for field in values.type]
    if not names:
        return [None if value is None else {} for value in values.to_pylist()]
    columns = [plain_values(child) for child in values.flatten()]
    valid = values.is_valid().to_pylist()
    return [
        dict(zip(names, row, strict=True)) if there else None
        for there, row in zip(valid, zip(*columns, strict=True), strict=True)
    ]


def _maps(values: pa.Array) -> list[list[dict[str, Any]] | None]:
    keys, items = plain_values(values.keys), plain_values(values.items)
    pairs = [{"key": k, "value": v} for k, v in zip(keys, items, strict=True)]
    return _cut(values, pairs)


def _nested(values: pa.Array) -> list[list[Any] | None]:
    return _cut(values, plain_values(values.values))


def _cut(values: pa.Array, inner: list[Any]) -> list[list[Any] | None]:
    offsets = values.offsets.to_pylist()
    valid = values.is_valid().to_pylist()
    return [inner[offsets[i] : offsets[i + 1]] if there else None for i, there in enumerate(valid)]


def _text_of(value: Any) -> str:
    """Intervals and what else comes, as text."""
    if isinstance(value, pa.MonthDayNano):
        parts = [
            (value.months, "months"),
            (value.days, "days"),
            (value.nanoseconds / 1e9, "seconds"),
        ]
        return " ".join(f"{n:g} {unit}" for n, unit in parts if n) or "0 seconds"
    return str(value)
