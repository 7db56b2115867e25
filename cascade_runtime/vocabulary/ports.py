"""What the floors of the house expect of each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import msgspec

from cascade_runtime.vocabulary.trace_meta import TraceMeta


class SourceNote(msgspec.Struct, frozen=True):
    """Something a reader met that an analysis must know: a torn record, rows of another run, ..."""

    where: str
    what: str


@runtime_checkable
class TraceSource(Protocol):
    """A trace that can be analyzed, wherever it is kept.

    ``table(name)`` returns a pyarrow.Table with exactly the columns of the vocabulary's schema (a
    missing optional column filled with nulls, rows of other runs left out); an absent table comes
    back with no rows. Row order is not promised.
    """

    meta: TraceMeta
    inputs: list[str]
    notes: list[SourceNote]

    def table(self, name: str) -> Any:
        """The rows of one event table as a pyarrow.Table."""
        ...


class ResultSink(Protocol):
    """Takes result tables (pyarrow.Table by table name)."""

    def write(self, results: Mapping[str, Any]) -> None:
        """Store the tables, replacing an earlier analysis."""
        ...
