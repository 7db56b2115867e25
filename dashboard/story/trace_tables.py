"""The tables of a trace on disk in DuckDB: Parquet files are read in place, the rest when asked for."""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from cascade_runtime.vocabulary.errors import BadTrace, BadUsage
from cascade_runtime.vocabulary.schema import EVENT_TABLES, RESULT_TABLES, TABLES
from collector.schema.views import quoted, table_view
from collector.sql.data_views import data_views, needed
from collector.trace.inside import Inside
from collector.trace.parquet_files import one_run, read_file
from collector.trace.trace_folder import TraceFolder

SMALL_BYTES = 16 << 20
SMALL_ROWS = 100_000
"""A table whose files are smaller is kept in memory: asking it then takes no time."""

INTERRUPT_EVERY_S = 0.02

MAX_MEMORY = "2GB"
"""Of the database; beyond it goes to temporary files."""

_VIEWS = data_views("", ())


def reads_results(sql: str) -> bool:
    """Whether a statement reads result tables, itself or through a named view."""
    return any(name in RESULT_TABLES for name in _named(sql))


def _named(sql: str) -> set[str]:
    """The tables and views that a statement needs."""
    words = set(re.findall(r"\w+", sql.lower()))
    return {view.name for view in needed(_VIEWS, [name for name in words if name in _VIEWS])}


class TraceTables:
    """SQL over one trace. Safe to call from several threads.

    Args:
        folder: the trace, which nobody else reads meanwhile.
    """

    def __init__(self, folder: TraceFolder) -> None:
        self._folder = folder
        self._inside = Inside(folder.path)
        self._results: Mapping[str, pa.Table] = {}
        self._changing = threading.Lock()
        self._asked: set[duckdb.DuckDBPyConnection] = set()
        self._is_closed = False
        self._is_answered = threading.Condition(self._changing)
        self._ready: set[str] = set()
        threads = str(min(4, os.cpu_count() or 1))
        self._db = duckdb.connect(
            config={
                "threads": threads,
                "memory_limit": MAX_MEMORY,
                "temp_directory": str(Path(tempfile.gettempdir()) / f"cascade-sql-{os.getpid()}"),
            }
        )
        self._db.execute("LOAD parquet; SET parquet_metadata_cache = true")  # files do not change
        for view in _VIEWS.values():
            self._db.execute(view.bare)

    def query(self, sql: str) -> pa.Table:
        """The answer to one statement.

        Raises:
            BadUsage: the statement fails, or the trace was closed before its answer was there.
            BadTrace: a file that it needs cannot be read.
        """
        names = _named(sql)
        with self._changing:
            if self._is_closed:
                raise BadUsage("the trace is closed", where=str(self._folder.path))
            for name in sorted(names - self._ready):
                if name in TABLES:
                    self._make(name)
                    self._ready.add(name)
            cursor = self._db.cursor()
            self._asked.add(cursor)
        try:
            return cursor.sql(sql).to_arrow_table()
        except duckdb.IOException as error:
            raise BadTrace(
                f"a file of this trace cannot be read: {_line(error)}", where=str(self._folder.path)
            ) from error
        except (duckdb.Error, AttributeError) as error:
            raise BadUsage(f"the statement fails: {_line(error)}", where="sql") from error
        finally:
            with self._changing:
                cursor.close()
                self._asked.discard(cursor)
                self._is_answered.notify_all()

    def other_runs(self) -> set[str]:
        """Whose rows the files of events hold besides.

        Raises:
            BadTrace: a file cannot be read.
        """
        found: set[str] = set()
        for name in EVENT_TABLES:
            for file in self._files(name):
                found.update(
                    read_file(file, file.name, name, ["run_id"])["run_id"].unique().to_pylist()
                )
        return found - {self._folder.meta.run_id}

    def set_results(self, results: Mapping[str, pa.Table]) -> None:
        """Result tables that were made in memory; they stand in place of the folder's."""
        with self._changing:
            if self._is_closed:
                return
            self._results = results
            for name in RESULT_TABLES:
                self._forget(name)

    def renew_results(self) -> None:
        """The folder's results were written again: what was read of them is forgotten."""
        self.set_results({})

    def close(self) -> None:
        """End what is being asked in other threads, and close the database; more than once is fine."""
        with self._changing:
            self._is_closed = True
            while self._asked:  # one that is about to begin does not hear it yet
                for cursor in self._asked:
                    cursor.interrupt()
                self._is_answered.wait(INTERRUPT_EVERY_S)
            self._db.close()

    def _forget(self, name: str) -> None:
        if name in self._ready:
            self._ready.discard(name)
            self._replace(name, _VIEWS[name].bare)

    def _make(self, name: str) -> None:
        rows = self._in_memory(name)
        if rows is None:
            self._replace(name, self._over_files(name, self._files(name)))
            return
        self._db.register("_given", rows)
        self._replace(name, f"CREATE TABLE {name} AS FROM _given")
        self._db.unregister("_given")

    def _in_memory(self, name: str) -> pa.Table | None:
        """The rows where files alone do not say them, or where they are few."""
        if name in RESULT_TABLES:
            made = self._results.get(name)
            return made if self._results else self._folder_result(name)
        spooled = any(True for _ in self._inside.folders(self._inside.path("spool")))
        if spooled or name == "gaps" or self._is_small(name):
            return self._folder.table(name)
        return None

    def _folder_result(self, name: str) -> pa.Table | None:
        return self._folder.result(name) if self._is_small(name) else None

    def _is_small(self, name: str) -> bool:
        """By size first: Parquet packs what repeats so well that few bytes may be many rows."""
        files = self._files(name)
        if sum(file.stat().st_size for file in files) >= SMALL_BYTES:
            return False
        rows = 0
        for file in files:
            try:
                rows += pq.read_metadata(file).num_rows
            except (OSError, pa.ArrowException):
                return True  # whoever reads it whole says what is wrong with it
            if rows > SMALL_ROWS:
                return False
        return True

    def _files(self, name: str) -> list[Path]:
        kind = "events" if name in EVENT_TABLES else "results"
        return self._inside.files(self._inside.path(kind, name), ".parquet")

    def _over_files(self, name: str, files: list[Path]) -> str:
        """CREATE VIEW over Parquet files; asking for the run is left out where all rows are of it."""
        run_id = self._folder.meta.run_id
        if name in EVENT_TABLES and all(one_run(file, run_id) for file in files):
            text = table_view(TABLES[name], "FILES", None, exact=True)
        else:
            text = table_view(TABLES[name], "FILES", run_id, exact=True)
        listed = ", ".join(quoted(str(file)) for file in files)
        return text.replace("'FILES'", f"[{listed}]", 1)

    def _replace(self, name: str, create: str) -> None:
        kinds = self._db.execute(
            "SELECT table_type FROM information_schema.tables WHERE table_name = ?", [name]
        ).fetchall()
        for (kind,) in kinds:
            self._db.execute(f"DROP {'VIEW' if kind == 'VIEW' else 'TABLE'} {name}")
        self._db.execute(create)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
