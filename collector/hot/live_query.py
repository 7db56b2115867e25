"""Trusted SQL over everything that is stored as of now, hot rows included; for our own pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import duckdb
import pyarrow as pa

from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.schema import EVENT_TABLES, TABLES
from collector.hot.hot_rows import Snapshot
from collector.hot.run import Run
from collector.schema.arrow import empty_table
from collector.schema.rows import events_to_table
from collector.schema.views import quoted, table_view
from collector.sql.data_views import EVERY_RUN, data_views, needed

_TRIES = 3


class _Seen(NamedTuple):
    run: Run
    snapshot: Snapshot


def live_query(runs: Sequence[Run], sql: str) -> pa.Table:
    """The answer to one statement over some runs.

    The rows of each run are those after one commit: a segment that is made meanwhile neither hides
    rows nor doubles them.

    Raises:
        BadUsage: the statement fails; DuckDB's message is in it.
    """
    for _ in range(_TRIES - 1):
        with suppress(duckdb.IOException):  # files went meanwhile: segments were merged
            return _answer(runs, sql)
    try:
        return _answer(runs, sql)
    except duckdb.IOException as error:
        raise BadUsage(f"the statement fails: {error}", where="sql") from error


def _answer(runs: Sequence[Run], sql: str) -> pa.Table:
    wanted = set(re.findall(r"\w+", sql.lower()))
    views = needed(_VIEWS, [name for name in wanted if name in _VIEWS])
    names = [view.name for view in views]
    seen = [_Seen(run, run.rows.snapshot()) for run in runs] if names else []
    with duckdb.connect(config={"threads": "2"}) as db:
        try:
            for view in views:
                if view.name in EVENT_TABLES:
                    db.register(f"_hot_{view.name}", _hot(view.name, seen))
                    db.execute(_event_view(view.name, seen))
                elif view.name in TABLES:
                    db.execute(_result_view(view.name, seen))
                else:
                    db.execute(view.sql)
            return db.sql(sql).to_arrow_table()
        except duckdb.IOException:
            raise
        except (duckdb.Error, AttributeError) as error:
            raise BadUsage(f"the statement fails: {error}", where="sql") from error


_VIEWS = data_views("", (), run=EVERY_RUN)
"""Read once: the named views lie in files."""


def _hot(name: str, seen: Sequence[_Seen]) -> pa.Table:
    parts = [empty_table(name)]
    for run in seen:
        parts += run.snapshot.tables.get(name, [])
        if name == "collectives":
            parts.append(events_to_table(name, run.snapshot.open))
    return pa.concat_tables(parts)


def _event_view(name: str, seen: Sequence[_Seen]) -> str:
    files = [
        str(run.run.files.folder(name) / file)
        for run in seen
        for file in run.snapshot.segments.get(name, ())
    ]
    select = f"SELECT * FROM _hot_{name}"  # noqa: S608  # a table of the schema
    if files:
        select += f" UNION ALL BY NAME SELECT * FROM {_parquet(files)}"  # noqa: S608
    return f"CREATE VIEW {name} AS {select}"


def _result_view(name: str, seen: Sequence[_Seen]) -> str:
    folders = [run.run.files.root / "results" / name for run in seen]
    files = [str(file) for folder in folders for file in folder.glob("*.parquet")]
    if not files:
        return table_view(TABLES[name], None, None)
    return f"CREATE VIEW {name} AS SELECT * FROM {_parquet(files)}"  # noqa: S608


def _parquet(files: Sequence[str]) -> str:
    listed = ", ".join(quoted(file) for file in files)
    return f"read_parquet([{listed}], union_by_name = true)"
