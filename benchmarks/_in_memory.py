"""A trace source over tables that were made in memory."""

from __future__ import annotations

import pyarrow as pa

from cascade_runtime.vocabulary.ports import SourceNote
from cascade_runtime.vocabulary.trace_meta import TraceMeta
from collector.schema.arrow import arrow_schema


class InMemory:
    """A TraceSource over made tables."""

    def __init__(self, meta: TraceMeta, tables: dict[str, pa.Table]) -> None:
        self.meta = meta
        self.inputs = ["made"]
        self.notes: list[SourceNote] = []
        self._tables = tables

    @property
    def num_rows(self) -> int:
        """Of all tables."""
        return sum(t.num_rows for t in self._tables.values())

    def table(self, name: str) -> pa.Table:
        """The rows of one table."""
        found = self._tables.get(name)
        return arrow_schema(name).empty_table() if found is None else found

    def with_tables(self, **tables: pa.Table) -> InMemory:
        """The same with other rows in these tables."""
        return InMemory(self.meta, self._tables | tables)
