"""The views over a data folder: over all of its runs, or over one run's folder."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from cascade_runtime.vocabulary.schema import TABLES, Table
from collector.schema.views import folder_of, named_view, named_views, table_view
from collector.sql.messages import DataView, needed

__all__ = ["EVERY_RUN", "DataView", "data_views", "needed", "present_tables"]

EVERY_RUN = "*"
"""As ``run`` of ``data_views``: all runs."""

_KINDS = tuple(dict.fromkeys(folder_of(table) for table in TABLES.values()))


def data_views(
    runs: str, present: Collection[str], *, run: str = EVERY_RUN, run_id: str | None = None
) -> dict[str, DataView]:
    """Every table view and named view by name, each after those that it reads.

    The text works in DuckDB 1.4, 1.5 and 2.0.

    Args:
        runs: the folder of runs as the statements shall name it, not escaped.
        present: tables that have a file; the others are typed views without rows, because DuckDB
            takes no glob that matches nothing.
        run: the folder of one run; all runs when not given.
        run_id: the run in that folder.
    """
    where = f"{glob.escape(runs)}/{EVERY_RUN if run == EVERY_RUN else glob.escape(run)}"
    views = {name: _table(t, where, name in present, run_id) for name, t in TABLES.items()}
    for view in named_views().values():
        words = set(re.findall(r"\w+", view.body))
        needs = tuple(name for name in views if name in words)
        sql = named_view(view)
        views[view.name] = DataView(view.name, view.doc, needs, sql, bare=sql)
    return views


def present_tables(runs: Path, run: str = EVERY_RUN) -> frozenset[str]:
    """The tables that have a Parquet file now, in one run's folder or in any.

    Runs that come and go meanwhile are no error.
    """
    found: set[str] = set()
    for folder in [runs / run] if run != EVERY_RUN else _folders(runs):
        for kind in _KINDS:
            for table in _folders(folder / kind):
                known = TABLES.get(table.name)
                if table.name in found or known is None or folder_of(known) != kind:
                    continue
                if _has_parquet(table):
                    found.add(table.name)
        if len(found) == len(TABLES):
            break
    return frozenset(found)


def _table(table: Table, where: str, present: bool, run_id: str | None) -> DataView:
    files = f"{where}/{folder_of(table)}/{table.name}/*.parquet"
    bare = table_view(table, None, None, exact=True)
    sql = table_view(table, files, run_id, exact=True) if present else bare
    return DataView(table.name, table.doc, (), sql, bare)


def _folders(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            yield from [Path(entry.path) for entry in entries if entry.is_dir()]
    except OSError:
        return


def _has_parquet(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.endswith(".parquet") for entry in entries)
    except OSError:
        return False
