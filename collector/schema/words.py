"""Columns that hold words of a list: which value is none of them."""

from __future__ import annotations

from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from cascade_runtime.vocabulary.events import Event
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.regime import Regime
from cascade_runtime.vocabulary.schema import EVENT_TABLES, Column

_WHOLE_ENUMS = [{word.value for word in words} for words in (Regime, FaultEvent)]


def odd_word(values: pa.ChunkedArray, column: Column) -> str | None:
    """The first value that is none of the column's words; None when there is none."""
    if not column.words:
        return None
    odd = (v for v in pc.unique(values).to_pylist() if v is not None and v not in column.words)
    return next(odd, None)


def _narrowed() -> dict[type, list[Column]]:
    """Columns that allow some words of an enum only: the codec lets the others through."""
    found: dict[type, list[Column]] = {}
    for table in EVENT_TABLES.values():
        for column in table.columns:
            if any(set(column.words) < words for words in _WHOLE_ENUMS) and column.words:
                found.setdefault(table.struct, []).append(column)
    return found


NARROWED = _narrowed()
"""Event types that ``breaks_words`` may find something in, with the columns concerned."""


def breaks_words(event: Event) -> str | None:
    """What is wrong with an event that the codec let through; None when nothing is."""
    for column in NARROWED.get(type(event), ()):
        value = getattr(event, column.name)
        if isinstance(value, Enum) and value.value not in column.words:
            return f"{column.name} is {value.value}"
    return None
