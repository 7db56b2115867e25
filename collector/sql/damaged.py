"""Which file is damaged, after a statement failed in reading the runs' files."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow as pa

from cascade_runtime.vocabulary.errors import BadTrace
from cascade_runtime.vocabulary.schema import TABLES
from cascade_runtime.vocabulary.trace_meta import parse_trace_meta
from collector.schema.views import folder_of
from collector.sql.messages import DataView, needed
from collector.trace.parquet_files import read_notes

_NOT_READABLE = (pa.ArrowException, OSError, ValueError)
_LOOK_S = 2.0
"""How long is looked: somebody waits for the answer, and there may be very many files."""

_ANY_RUN = "cascade recover DATA, or ask with run_id"
_THIS_RUN = "cascade recover DATA"


def tables_named(sql: str, views: dict[str, DataView]) -> list[str]:
    """The tables that a statement may read: every word of it that is a view, and what that reads."""
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    read = needed(views, [name for name in views if name in words])
    return [view.name for view in read if view.name in TABLES]


def damaged_file(runs: Path, tables: Collection[str], run: str | None = None) -> str | None:
    """A sentence about the first file of some tables whose footer cannot be read; None without one.

    Only plain files are opened: a link may lead out of the runs.

    Args:
        runs: the folder of runs.
        tables: whose files to look at.
        run: the folder of one run; all runs when not given.
    """
    until = time.monotonic() + _LOOK_S
    for folder in _plain(runs, folders=True):
        if run is not None and folder.name != run:
            continue
        for table in tables:
            kind = folder_of(TABLES[table])
            if (folder / kind).is_symlink() or (folder / kind / table).is_symlink():
                continue
            for file in _plain(folder / kind / table, folders=False):
                if time.monotonic() > until:
                    return None
                if file.suffix == ".parquet" and _is_damaged(file):
                    name = f"{kind}/{table}/{file.name}"
                    return f"segment {name} of run {_run_id(folder)} is damaged"
    return None


def hint(run: str | None) -> str:
    """What to do about it."""
    return _ANY_RUN if run is None else _THIS_RUN


def _plain(folder: Path, *, folders: bool) -> Iterator[Path]:
    """What lies in a folder and is no link, in order of its names."""
    try:
        with os.scandir(folder) as entries:
            found = [
                Path(entry.path)
                for entry in entries
                if (
                    entry.is_dir(follow_symlinks=False)
                    if folders
                    else entry.is_file(follow_symlinks=False)
                )
            ]
    except OSError:
        return
    yield from sorted(found)


def _is_damaged(file: Path) -> bool:
    try:
        read_notes(file)
    except FileNotFoundError:
        return False  # replaced or sealed meanwhile
    except _NOT_READABLE:
        return True
    return False


def _run_id(folder: Path) -> str:
    """The run's id; the folder's name where no trace.json tells it."""
    file = folder / "trace.json"
    try:
        if not file.is_symlink():
            return parse_trace_meta(file.read_bytes(), file.name).run_id
    except (OSError, BadTrace):
        pass
    return folder.name
