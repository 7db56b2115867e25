"""One table of a trace as numpy columns, in the global order of rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NULL = int(np.iinfo(np.int64).min)
"""What a null reads as in an int column."""

FARTHEST_NS = 2**62
"""The vocabulary's bound of times, either way."""


class Lists(NamedTuple):
    """A list column laid flat: the items of row ``i`` are ``offsets[i]:offsets[i + 1]``."""

    offsets: Ints
    given: Flags
    """False where the list is null (which is not the empty list)."""
    fields: dict[str, Ints]
    """The items' struct fields, flat."""

    def owner(self) -> Ints:
        """For each flat item, the index of the row it belongs to."""
        return np.repeat(np.arange(len(self.given), dtype=np.int64), np.diff(self.offsets))


class Columns:
    """The rows of one table, sorted by global row number; columns convert on first use."""

    def __init__(self, name: str, table: Any, rows: Ints) -> None:
        self.name = name
        self.rows = rows
        self._table = table
        self._cache: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def ints(self, column: str) -> Ints:
        """An int, bool or null column as int64; null is NULL.

        Times farther from 1970 than FARTHEST_NS, which no doorway takes, count as being there.
        """
        if column not in self._cache:
            found = ints_of(self._table.column(column))
            self._cache[column] = _near(found) if column.endswith("_ns") else found
        cached: Ints = self._cache[column]
        return cached

    def words(self, column: str) -> tuple[Ints, list[str]]:
        """A string column as (codes, words); null has code -1."""
        key = column + "/words"
        if key not in self._cache:
            self._cache[key] = _words_of(self._table.column(column))
        found: tuple[Ints, list[str]] = self._cache[key]
        return found

    def mask(self, column: str, *wanted: str) -> Flags:
        """True where the string column holds one of ``wanted``."""
        codes, words = self.words(column)
        hits = [code for code, word in enumerate(words) if word in wanted]
        return np.isin(codes, hits)

    def lists(self, column: str) -> Lists:
        """A list-of-struct column (dots, actors, event_refs) laid flat."""
        key = column + "/lists"
        if key not in self._cache:
            self._cache[key] = _lists_of(self._table.column(column))
        found: Lists = self._cache[key]
        return found

    def values(self, column: str) -> list[Any]:
        """Any column as Python values; for small tables."""
        key = column + "/values"
        if key not in self._cache:
            self._cache[key] = self._table.column(column).to_pylist()
        found: list[Any] = self._cache[key]
        return found

    def dicts(self) -> list[dict[str, Any]]:
        """Every row as a dict; for small tables."""
        if "/dicts" not in self._cache:
            self._cache["/dicts"] = self._table.to_pylist()
        found: list[dict[str, Any]] = self._cache["/dicts"]
        return found

    def row(self, index: int) -> dict[str, Any]:
        """One row as a dict of Python values."""
        one: dict[str, Any] = self._table.slice(index, 1).to_pylist()[0]
        return one


def _near(times: Ints) -> Ints:
    """Times between which there is a distance of 64 bits."""
    if not len(times) or (times.max() <= FARTHEST_NS and times.min() >= -FARTHEST_NS):
        return times
    return np.where(times == NULL, NULL, np.clip(times, -FARTHEST_NS, FARTHEST_NS))


def whole_ns(spans: npt.NDArray[np.float64]) -> Ints:
    """Spans of time rounded to int64, at most FARTHEST_NS; NaN is 0."""
    found: Ints = np.clip(np.nan_to_num(np.round(spans)), -FARTHEST_NS, FARTHEST_NS).astype(
        np.int64
    )
    return found


def ints_of(column: Any) -> Ints:
    """An int, bool or null Arrow column as int64; null is NULL."""
    if len(column) == 0 or pa.types.is_null(column.type):
        return np.full(len(column), NULL, dtype=np.int64)
    wide = column if column.type == pa.int64() else column.cast(pa.int64())
    filled = pc.fill_null(wide, NULL) if wide.null_count else wide
    found: Ints = np.asarray(filled.to_numpy(), dtype=np.int64)
    return found


def _words_of(column: Any) -> tuple[Ints, list[str]]:
    if len(column) == 0 or pa.types.is_null(column.type):
        return np.full(len(column), -1, dtype=np.int64), []
    encoded = _one(column)
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    codes = encoded.indices.cast(pa.int64())
    codes = pc.fill_null(codes, -1) if codes.null_count else codes
    return np.asarray(codes.to_numpy(zero_copy_only=False)), encoded.dictionary.to_pylist()


def _lists_of(column: Any) -> Lists:
    if len(column) == 0 or pa.types.is_null(column.type):
        zeros = np.zeros(len(column) + 1, dtype=np.int64)
        return Lists(zeros, np.zeros(len(column), dtype=np.bool_), {})
    array = _one(column)
    lengths = ints_of(pc.fill_null(pc.list_value_length(array), 0))
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    given = np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    flat = pc.list_flatten(array)
    fields = {field.name: ints_of(pc.struct_field(flat, field.name)) for field in flat.type}
    return Lists(offsets, given, fields)


def _one(column: Any) -> Any:
    """A chunked column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
