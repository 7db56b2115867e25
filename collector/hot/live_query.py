"""Trusted SQL over everything that is stored as of now, hot rows included; for our own pages."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import NamedTuple

import duckdb
import pyarrow as pa

from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.schema import EVENT_TABLES, TABLES
from collector.hot.hot_rows import Snapshot
from collector.hot.news import HotNews
from collector.hot.run import Run
from collector.schema.arrow import arrow_schema
from collector.schema.views import quoted, table_view
from collector.sql.data_views import EVERY_RUN, data_views, needed
from collector.sql.messages import DataView

_TRIES = 3
_CONFIG: dict[str, str | bool | int | float | list[str]] = {"threads": "2"}
_MOST_IDLE = 4
"""Sessions that are kept for the next question; so many questions at once find one."""

_CATALOG = re.compile(r"duckdb_|sqlite_|pg_|information_schema", re.IGNORECASE)
_FATAL = (duckdb.FatalException, duckdb.InternalException)
_ALTERED = "Contents of view were altered"


class _Seen(NamedTuple):
    run: Run
    snapshot: Snapshot


class _Answer(NamedTuple):
    rows: pa.Table
    seen: list[_Seen]


class LiveSql:
    """Answers questions. Opening a database costs 30 ms, so one is kept, with its views as they were.

    Safe to call from several threads; each question has a session of its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._db: duckdb.DuckDBPyConnection | None = None
        self._idle: list[_Session] = []

    def query(self, runs: Sequence[Run], sql: str, max_age_s: float = 0.0) -> pa.Table:
        """The answer to one statement over some runs.

        The rows of each run are those after one commit: a segment that is made meanwhile neither
        hides rows nor doubles them.

        Args:
            runs: whose rows are seen.
            sql: the statement.
            max_age_s: how old the commit may be at most; with 0 it is the last one.

        Raises:
            BadUsage: the statement fails; DuckDB's message is in it.
        """
        return self._ask(runs, sql, max_age_s).rows

    def query_at(self, run: Run, sql: str) -> tuple[pa.Table, HotNews]:
        """The answer to one statement over one run, and the place that its rows go up to.

        Raises:
            BadUsage: the statement fails, or asks for no event table.
        """
        answer = self._ask([run], sql, 0.0)
        if not answer.seen:
            raise BadUsage("the statement asks for no event table", where="sql")
        return answer.rows, HotNews(answer.seen[0].snapshot, run)

    def _ask(self, runs: Sequence[Run], sql: str, max_age_s: float) -> _Answer:
        session = self._take()
        try:
            if session.is_clean(sql):
                return session.answer(runs, sql, max_age_s)
        except BadUsage as error:
            if isinstance(error.__cause__, _FATAL):  # nothing works in this database any more
                self._forget()
            raise
        finally:
            self._give(session)
        with duckdb.connect(config=_CONFIG) as db:
            return _Session(db).answer(runs, sql, max_age_s)

    def close(self) -> None:
        """Let go of the database; a question that is being answered goes on to its end."""
        self._forget()

    def _forget(self) -> None:
        with self._lock:
            self._idle.clear()
            self._db = None

    def _take(self) -> _Session:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if self._db is None:
                self._db = duckdb.connect(config=_CONFIG)
            return _Session(self._db.cursor(), self._db)

    def _give(self, session: _Session) -> None:
        with self._lock:
            if session.of is not None and session.of is self._db and len(self._idle) < _MOST_IDLE:
                self._idle.append(session)


class _Session:
    """A connection, the text of the views that it has, and the database that it is ``of``."""

    def __init__(
        self, db: duckdb.DuckDBPyConnection, of: duckdb.DuckDBPyConnection | None = None
    ) -> None:
        self._db = db
        self.of = of
        self._made: dict[str, str] = {}

    def is_clean(self, sql: str) -> bool:
        """True for one SELECT that is not about the catalog.

        It leaves nothing here, and sees nothing of what others left.
        """
        try:
            statements = self._db.extract_statements(sql)
        except duckdb.Error:
            return False
        select = len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT
        return select and not _CATALOG.search(sql)

    def answer(self, runs: Sequence[Run], sql: str, max_age_s: float) -> _Answer:
        """See LiveSql.query."""
        for left in reversed(range(_TRIES)):
            try:
                return self._answer(runs, sql, max_age_s if left == _TRIES - 1 else 0.0)
            except (duckdb.Error, AttributeError) as error:
                gone = isinstance(error, duckdb.IOException)  # segments were merged meanwhile
                if left and (gone or _ALTERED in str(error)):
                    self._made.clear()  # or results have columns that they did not have
                    continue
                raise BadUsage(f"the statement fails: {error}", where="sql") from error
        raise AssertionError

    def _answer(self, runs: Sequence[Run], sql: str, max_age_s: float) -> _Answer:
        wanted = set(re.findall(r"\w+", sql.lower()))
        views = needed(_VIEWS, [name for name in wanted if name in _VIEWS])
        events = {view.name for view in views if view.name in EVENT_TABLES}
        asked = runs if events else ()
        seen = [_Seen(run, run.rows.snapshot(events, max_age_s)) for run in asked]
        hot: list[str] = []
        try:
            for view in views:
                text = _text(view, seen, runs)
                if view.name in EVENT_TABLES and f"_hot_{view.name}" in text:
                    self._db.register(f"_hot_{view.name}", _hot(view.name, seen))
                    hot.append(view.name)
                if self._made.get(view.name) != text:
                    self._db.execute(text)
                    self._made[view.name] = text
            return _Answer(self._db.sql(sql).to_arrow_table(), seen)
        finally:
            for name in hot:  # or the rows would stay in memory until somebody asks again
                self._db.unregister(f"_hot_{name}")


_VIEWS = data_views("", (), run=EVERY_RUN)
"""Read once: the named views lie in files."""


def _text(view: DataView, seen: Sequence[_Seen], runs: Sequence[Run]) -> str:
    if view.name in EVENT_TABLES:
        return _event_view(view.name, seen)
    text = _result_view(view.name, runs) if view.name in TABLES else view.sql
    return text.replace("VIEW", "TEMP VIEW", 1)


def _hot(name: str, seen: Sequence[_Seen]) -> pa.Table:
    parts: list[pa.Table] = []
    for run in seen:
        parts += run.snapshot.tables.get(name, [])
        if name == "collectives" and run.snapshot.open:
            parts.append(run.run.rows.open_rows.table(run.snapshot.open))
    return pa.concat_tables(parts) if parts else arrow_schema(name).empty_table()


def _event_view(name: str, seen: Sequence[_Seen]) -> str:
    files = [
        str(run.run.files.folder(name) / file)
        for run in seen
        for file in run.snapshot.segments.get(name, ())
    ]
    is_hot = any(
        name in run.snapshot.tables or (name == "collectives" and run.snapshot.open) for run in seen
    )
    if not files and not is_hot:
        return table_view(TABLES[name], None, None).replace("VIEW", "TEMP VIEW", 1)
    select = f"SELECT * FROM _hot_{name}"  # noqa: S608  # a table of the schema
    if files:
        select += f" UNION ALL BY NAME SELECT * FROM {_parquet(files)}"  # noqa: S608
    return f"CREATE OR REPLACE TEMP VIEW {name} AS {select}"


def _result_view(name: str, runs: Sequence[Run]) -> str:
    folders = [run.files.root / "results" / name for run in runs]
    files = [str(file) for folder in folders for file in folder.glob("*.parquet")]
    if not files:
        return table_view(TABLES[name], None, None)
    return f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM {_parquet(files)}"  # noqa: S608


def _parquet(files: Sequence[str]) -> str:
    listed = ", ".join(quoted(file) for file in files)
    return f"read_parquet([{listed}], union_by_name = true)"
