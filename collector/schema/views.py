"""The text of a trace's ``views.sql``: a view for every table and every named view."""

from __future__ import annotations

import functools
import glob
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from cascade_runtime.vocabulary.errors import BadTrace
from cascade_runtime.vocabulary.schema import STRUCTS, TABLES, Table
from cascade_runtime.vocabulary.trace_meta import parse_trace_meta

_DUCKDB_TYPES = {
    "string": "VARCHAR",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
}

_HEADER = """\
-- Views of one CASCADE trace. Open it from inside the trace folder with any duckdb:
--   duckdb -init views.sql        or, in duckdb:  .read views.sql
-- Written by the collector; what each view says is in docs/schema.md.
"""


class NamedView(NamedTuple):
    """One named view: its name, what it says, its columns with their meaning, its SELECT."""

    name: str
    doc: str
    columns: tuple[tuple[str, str], ...]
    body: str


def duckdb_type(storage: str) -> str:
    """The DuckDB type of a storage type such as ``list<dot>``.

    Raises:
        KeyError: not a storage type of the vocabulary's schema.
    """
    if storage.startswith("list<"):
        return duckdb_type(storage[len("list<") : -1]) + "[]"
    if storage in STRUCTS:
        inner = ", ".join(f"{name} {duckdb_type(kind)}" for name, kind in STRUCTS[storage])
        return f"STRUCT({inner})"
    return _DUCKDB_TYPES[storage]


@functools.cache
def named_views() -> dict[str, NamedView]:
    """The named views by name, each from its own file in collector/views/."""
    folder = resources.files("collector") / "views"
    texts = {entry.name: entry.read_text() for entry in folder.iterdir()}
    views = [
        _parse(name.removesuffix(".sql"), text)
        for name, text in sorted(texts.items())
        if name.endswith(".sql")
    ]
    names = {view.name for view in views}
    # A view that reads another named view comes after those that read tables only.
    views.sort(key=lambda view: sum(name in view.body for name in names))
    return {view.name: view for view in views}


def _parse(name: str, text: str) -> NamedView:
    """A view's file: a comment of one line, one comment line a column, then the SELECT."""
    lines = text.splitlines()
    comments = [line.removeprefix("--").strip() for line in lines if line.startswith("--")]
    columns = tuple(tuple(line.split(": ", 1)) for line in comments[1:])
    body = "\n".join(line for line in lines if not line.startswith("--")).strip().rstrip(";")
    return NamedView(name, comments[0], columns, body)  # type: ignore[arg-type]  # pairs


def views_sql(trace_dir: str | Path, *, absolute: bool = False) -> str:
    """The text of views.sql for the files that a trace holds now.

    Views of event tables show trace.json's run only. Tables without files are typed empty views.

    Args:
        trace_dir: the trace folder.
        absolute: name files by their full path, for readers that are not inside the folder.

    Raises:
        BadTrace: trace.json is missing or breaks the contract.
    """
    root = Path(trace_dir)
    file = root / "trace.json"
    try:
        run_id = parse_trace_meta(file.read_bytes(), str(file)).run_id
    except OSError as error:
        raise BadTrace("there is no trace.json that can be read", where=str(root)) from error
    parts = [_HEADER]
    for table in TABLES.values():
        folder = folder_of(table)
        here = root / folder / table.name
        has_files = here.is_dir() and any(here.glob("*.parquet"))
        prefix = f"{glob.escape(root.resolve().as_posix())}/" if absolute else ""
        files = f"{prefix}{folder}/{table.name}/*.parquet" if has_files else None
        parts.append(f"-- {table.doc}\n{table_view(table, files, run_id)}")
    parts += [f"-- {view.doc}\n{named_view(view)}" for view in named_views().values()]
    return "\n".join(parts)


def folder_of(table: Table) -> str:
    """The folder of a trace that holds the folder of this table."""
    return "events" if table.kind == "event" else "results"


def table_view(table: Table, files: str | None, run_id: str | None, *, exact: bool = False) -> str:
    """CREATE VIEW of one table over its files.

    Args:
        table: the table.
        files: a glob of its Parquet files; None for a view without rows.
        run_id: show this run only; rows of results that name no run are said to be of it.
        exact: the schema's columns and no others, so that the view's form never changes with the
            files that come later; else columns that the schema does not know are shown too.
    """
    columns = ",\n    ".join(f'NULL::{duckdb_type(c.type)} AS "{c.name}"' for c in table.columns)
    # The empty part gives every column its type, also one that no file has.
    select = f"SELECT\n    {columns}\n  WHERE false"
    shown = ", ".join(f'"{c.name}"' for c in table.columns) if exact else "*"
    where = ""
    if files is not None:
        source = f"read_parquet({quoted(files)}, union_by_name = true)"
        select += f"\n  UNION ALL BY NAME\n  SELECT * FROM {source}"  # noqa: S608  # quoted above
        if run_id is not None and table.kind == "event":
            where = f" WHERE run_id = {quoted(run_id)}"
        elif run_id is not None:
            filled = f"coalesce(run_id, {quoted(run_id)})"
            shown = (
                shown.replace('"run_id"', f"{filled} AS run_id")
                if exact
                else f"* REPLACE ({filled} AS run_id)"
            )
    return f"CREATE OR REPLACE VIEW {table.name} AS\nSELECT {shown} FROM (\n  {select}\n){where};\n"


def named_view(view: NamedView) -> str:
    """CREATE VIEW of a named view."""
    return f"CREATE OR REPLACE VIEW {view.name} AS\n{view.body};\n"


def quoted(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
