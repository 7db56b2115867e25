"""Rows of every table for the tests of the wire."""

from __future__ import annotations

from functools import cache

from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.schema.rows import table_to_events
from collector.trace.samples import resolve_trace
from collector.trace.trace_folder import open_trace


@cache
def sample_tables():
    """Some rows of each table of a packaged sample."""
    with open_trace(resolve_trace("kill-one")) as trace:
        tables = {name: trace.table(name).slice(0, 20) for name in EVENT_TABLES}
    return {name: rows for name, rows in tables.items() if rows.num_rows}


@cache
def sample_rows():
    return tuple(
        row for name, rows in sample_tables().items() for row in table_to_events(name, rows)
    )


def rows_of(batch):
    """The rows of a batch as structs, in one order whatever its form."""
    if batch.records is not None:
        rows = list(batch.records)
    else:
        rows = [row for name, rows in batch.tables.items() for row in table_to_events(name, rows)]
    return sorted(rows, key=repr)
