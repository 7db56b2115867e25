"""Writes a trace: tables, results, views.sql, trace.json."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.events import Event
from cascade_runtime.vocabulary.schema import EVENT_TABLES, RESULT_TABLES, TABLES
from cascade_runtime.vocabulary.trace_meta import TraceMeta, format_trace_meta
from collector.schema.conform import conform
from collector.schema.rows import events_to_table
from collector.schema.views import views_sql
from collector.trace.durable import alone_in, publish, sync_folder
from collector.trace.parquet_files import in_order, write_parquet


def write_tables(
    trace_dir: str | Path, tables: Mapping[str, pa.Table | Sequence[Event]]
) -> list[Path]:
    """Add rows to a trace's event tables: one new Parquet file for each table that has rows.

    A file appears whole, under a name of its own, in (rank, incarnation, seq) order. Columns that
    the schema does not know are kept. Call write_views when all tables are written.

    Args:
        trace_dir: the trace folder; made when it is not there.
        tables: an Arrow table or the vocabulary's events, by table name.

    Returns:
        The files written.

    Raises:
        BadUsage: an unknown table, a column of a wrong type or missing, a folder that cannot be
            written; nothing of that table is written.
    """
    root = Path(trace_dir)
    checked = {
        name: _conform(rows if isinstance(rows, pa.Table) else _from_events(name, rows), name)
        for name, rows in tables.items()
    }
    written = []
    with _writing(root):
        for name, rows in checked.items():
            if name not in EVENT_TABLES:
                raise BadUsage("this is not an event table", where=name)
            if rows.num_rows:
                file = root / "events" / name / f"{uuid4().hex}.parquet"
                write_parquet(file, in_order(rows))
                written.append(file)
    return written


def write_results(
    trace_dir: str | Path, results: Mapping[str, pa.Table], report: bytes | None = None
) -> None:
    """Store an analysis in ``results/``, in place of an earlier one as a whole, and renew views.sql.

    Args:
        trace_dir: the trace folder (not a zip).
        results: rows by result table.
        report: the report as JSON, kept beside them as ``results/report.json``.

    Raises:
        BadUsage: an unknown table, a column of a wrong type, a zip, a folder that cannot be written.
    """
    root = Path(trace_dir)
    if not root.is_dir():
        raise BadUsage(
            "results can only be written into a trace folder",
            where=str(root),
            hint="unpack the zip, or leave out --write",
        )
    checked = {name: _conform(rows, name) for name, rows in results.items()}
    fresh, old = root / f".results-{uuid4().hex}", root / f".old-results-{uuid4().hex}"
    with _writing(root), alone_in(root, "writing results into"):
        for left in (*root.glob(".results-*"), *root.glob(".old-results-*")):
            shutil.rmtree(left)  # of a writer that was killed
        fresh.mkdir()
        for name, rows in checked.items():
            if name not in RESULT_TABLES:
                raise BadUsage("this is not a result table", where=name)
            if rows.num_rows:
                write_parquet(fresh / name / "rows.parquet", rows)
        if report is not None:
            publish(fresh / "report.json", lambda out: out.write(report))
        # The old analysis goes before the new one comes: a reader sees one of them or none.
        if (root / "results").exists():
            (root / "results").rename(old)
        fresh.rename(root / "results")
        sync_folder(root)
        shutil.rmtree(old, ignore_errors=True)
    write_views(root)


def write_views(trace_dir: str | Path) -> None:
    """Write views.sql for the files that the trace holds now.

    Raises:
        BadTrace: trace.json is missing or breaks the contract.
        BadUsage: the folder cannot be written.
    """
    root = Path(trace_dir)
    text = views_sql(root).encode()
    with _writing(root):
        publish(root / "views.sql", lambda out: out.write(text))


def write_meta(trace_dir: str | Path, meta: TraceMeta) -> None:
    """Write trace.json, in place of an earlier one; the folder is made when it is not there.

    Raises:
        BadUsage: the folder cannot be written.
    """
    root = Path(trace_dir)
    with _writing(root):
        root.mkdir(parents=True, exist_ok=True)
        publish(root / "trace.json", lambda out: out.write(format_trace_meta(meta)))


def _from_events(name: str, events: Sequence[Event]) -> pa.Table:
    if name not in EVENT_TABLES:
        raise BadUsage("this is not an event table", where=name)
    return events_to_table(name, events)


def _conform(rows: pa.Table, name: str) -> pa.Table:
    """The rows with the schema's columns first and exactly typed; what is more comes after them."""
    if name not in TABLES:
        raise BadUsage("no table of the schema has this name", where=name)
    return conform(rows, name, lambda what, where: BadUsage(what, where=where), keep_extra=True)


@contextmanager
def _writing(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BadUsage(
            f"this trace cannot be written: {error.strerror or error}",
            where=str(error.filename or root),
            hint="check the disk and the folder's permissions",
        ) from error
