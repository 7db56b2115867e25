"""Generates docs/schema.md from the vocabulary and the views: ``python -m collector.schema.page``."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from cascade_runtime.vocabulary.events import SCHEMA_VERSION
from cascade_runtime.vocabulary.schema import EVENT_TABLES, LEADING, RESULT_TABLES, STRUCTS, Table
from collector.schema.views import duckdb_type, named_views

_HEAD = f"""\
# The schema of a trace

Schema version {SCHEMA_VERSION}. Made by `python -m collector.schema.page > docs/schema.md`: change
the vocabulary or `collector/views/`, not this page.

A trace opens in any DuckDB: go into its folder, start `duckdb` and type `.read views.sql`. Every
table and every named view below is a view then. Views of event tables show the rows of trace.json's
run that are in `events/`; what still lies in `spool/` is read by `cascade` only, until it is sealed.
The same views over all runs of a collector: [SQL](sql.md), with questions that people ask.

What a trace says of itself is in `trace.json`: run, policy, world size, begin and end. Its optional
field `story` is a list of sentences, what is going to happen where that is known before (demos).

Ids end in `_id`, times in `_ns` (nanoseconds), counts start with `num_`. Readers ignore tables and
columns that they do not know, and read a missing optional column as null. Columns may be added;
none is removed or renamed without a new schema version.
"""

_EVENTS = """\
## Event tables

What happened in the job: one row an event, in `events/<table>/*.parquet`. Every event table starts
with these columns:
"""

_RESULTS = """\
## Result tables

What the analyzer found, in `results/<table>/*.parquet`: there after `cascade analyze TRACE --write`,
without rows before. Where one trace is open, rows of old results that name no run are of its run.
"""

_VIEWS = """\
## Named views

Each is one file in `collector/views/`, and right over one run or many. Those that say "needs results" have no rows before
`cascade analyze TRACE --write`.
"""


def schema_page() -> str:
    """The text of docs/schema.md."""
    parts = [_HEAD, "## Types\n", _types()]
    first = next(iter(EVENT_TABLES.values()))
    parts += [_EVENTS, _columns(first, LEADING)]
    for table in EVENT_TABLES.values():
        further = [c.name for c in table.columns if c.name not in LEADING]
        parts += [f"### {table.name}\n", f"{table.doc}\n", _columns(table, further)]
    parts.append(_RESULTS)
    for table in RESULT_TABLES.values():
        every = [c.name for c in table.columns]
        parts += [f"### {table.name}\n", f"{table.doc}\n", _columns(table, every)]
    parts.append(_VIEWS)
    for view in sorted(named_views().values()):
        rows = [(f"`{name}`", what) for name, what in view.columns]
        parts += [f"### {view.name}\n", f"{view.doc}\n", _grid(("column", "says"), rows)]
    return "\n".join(parts).rstrip() + "\n"


def _types() -> str:
    rows = [(f"`{name}`", f"`{duckdb_type(name)}`") for name in STRUCTS]
    rows.append(("clock, frontier", f"`{duckdb_type('list<dot>')}`: all counters up to each dot's"))
    return _grid(("name", "DuckDB type"), rows)


def _columns(table: Table, names: Iterable[str]) -> str:
    rows = []
    for name in names:
        column = table.column(name)
        doc = column.doc
        if column.words:
            doc += ": " + ", ".join(f"`{word}`" for word in column.words)
        null = "" if column.nullable else "never null"
        rows.append((f"`{name}`", f"`{duckdb_type(column.type)}`", null, doc))
    return _grid(("column", "type", "", "says"), rows)


def _grid(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    cells = (" | ".join(cell.replace("|", "\\|") for cell in line) for line in lines)
    return "\n".join(f"| {line} |" for line in cells) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_page())
