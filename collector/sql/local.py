"""SQL on one's own machine: over a trace, or over the runs of a data folder. Reads only, no sandbox."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa

from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.schema import EVENT_TABLES, RESULT_TABLES, TABLES
from collector.data_folder import run_folder, runs_folder
from collector.sql.data_views import EVERY_RUN, DataView, data_views, needed, present_tables
from collector.sql.errors import SqlFailed, SqlRefused
from collector.sql.guard import only_asks
from collector.trace.trace_folder import TraceFolder, open_trace

ROWS_A_BATCH = 8192


Analyze = Callable[[TraceFolder], Mapping[str, pa.Table]]
"""Result tables of a trace, by name."""


class Answer(NamedTuple):
    """The rows of a statement as they come, with the columns' names and DuckDB types."""

    batches: pa.RecordBatchReader
    names: list[str]
    types: list[str]


def is_data_folder(path: Path) -> bool:
    """True for a collector's data folder: it holds runs and is no trace itself."""
    return runs_folder(path).is_dir() and not (path / "trace.json").exists()


@contextmanager
def asked_of_trace(
    path: Path, sql: str, run_id: str | None = None, *, analyze: Analyze | None = None
) -> Iterator[Answer]:
    """Run one statement over a trace: a folder or a zip, what is in its spool included.

    Args:
        path: the trace.
        sql: one SELECT, or EXPLAIN of one.
        run_id: the trace's own, when given.
        analyze: makes the result tables of a trace that has none, when the statement reads them;
            nothing is written.

    Raises:
        BadTrace: the trace, or a table that the statement names, cannot be read.
        BadUsage: the statement fails, writes, or is not one; the trace is of another run.
    """
    with open_trace(path) as source, duckdb.connect() as db:
        if run_id not in (None, source.meta.run_id):
            raise BadUsage(f"this trace is of run {source.meta.run_id}", where=f"--run {run_id}")
        statement = _one_question(db, sql)
        views = _trace_views()
        names = {view.name for view in needed(views, _names_in(statement, views))}
        results: Mapping[str, pa.Table] = {}
        if analyze and names & set(RESULT_TABLES) and not (source.path / "results").is_dir():
            results = analyze(source)
        for name, view in views.items():
            if name in results:
                db.register(name, results[name])
            elif name in names and name in TABLES:
                _register(db, source, name)
            else:
                db.execute(view.sql)
        yield _asked(db, statement)


@contextmanager
def asked_of_data(data: Path, sql: str, run_id: str | None = None) -> Iterator[Answer]:
    """Run one statement over all runs of a data folder, or over one; a collector may be at work there.

    Args:
        data: the data folder.
        sql: one SELECT, or EXPLAIN of one.
        run_id: this run only.

    Raises:
        BadUsage: the statement fails, writes, or is not one; there is no such run.
    """
    run = EVERY_RUN
    if run_id is not None:
        folder = run_folder(data, run_id)
        if not folder.is_dir():
            raise BadUsage("there is no run of that id", where=f"--run {run_id}")
        run = folder.name
    with duckdb.connect() as db:
        statement = _one_question(db, sql)
        try:
            answer = _over_runs(db, data, statement, run, run_id)
        except duckdb.IOException:
            # A segment was sealed or a tail replaced just now: what is there now is whole.
            answer = _over_runs(db, data, statement, run, run_id)
        yield answer


def _over_runs(
    db: duckdb.DuckDBPyConnection, data: Path, sql: str, run: str, run_id: str | None
) -> Answer:
    runs = runs_folder(data).resolve()
    views = data_views(str(runs), present_tables(runs, run), run=run, run_id=run_id)
    wanted = {view.name for view in needed(views, _names_in(sql, views))}
    try:
        for name, view in views.items():
            # Those that are not asked are there to be listed, and open no file.
            db.execute(view.sql if name in wanted else view.bare)
    except duckdb.IOException:
        raise
    except duckdb.Error as error:
        raise _failed(error) from error
    return _asked(db, sql)


def _trace_views() -> dict[str, DataView]:
    """Every view without rows; those that are asked are filled from the trace."""
    return data_views("", ())


def _register(db: duckdb.DuckDBPyConnection, source: TraceFolder, name: str) -> None:
    if name in EVENT_TABLES:
        rows = source.table(name)
    else:
        rows = source.result(name)
        place = rows.schema.get_field_index("run_id")
        # Results of releases that knew no data folder name no run: they are of the trace's.
        named = rows["run_id"].fill_null(source.meta.run_id)
        rows = rows.set_column(place, rows.schema.field(place), named)
    db.register(name, rows)


def _one_question(db: duckdb.DuckDBPyConnection, sql: str) -> str:
    try:
        return only_asks(db, sql).sql
    except (SqlRefused, SqlFailed) as error:
        raise BadUsage(error.message, hint=error.hint) from error


def _names_in(sql: str, views: Iterable[str]) -> list[str]:
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    return [name for name in views if name in words]


def _asked(db: duckdb.DuckDBPyConnection, sql: str) -> Answer:
    try:
        found = db.sql(sql)
        return Answer(
            found.to_arrow_reader(ROWS_A_BATCH),
            list(found.columns),
            [str(kind) for kind in found.types],
        )
    except duckdb.IOException:
        raise
    except duckdb.Error as error:
        raise _failed(error) from error


def _failed(error: duckdb.Error) -> BadUsage:
    return BadUsage(str(error).strip(), hint="docs/schema.md lists every table and column")
