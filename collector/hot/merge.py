"""Makes a few segments of many small ones, when a run is sealed.

Late rows make a segment a table in each quiet stretch, and so does crowded memory. Every file costs a
reader an open and a footer, and nobody else would ever put them together.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from cascade_runtime.vocabulary.errors import BadTrace
from collector.hot.exchange import exchange
from collector.hot.options import StoreOptions
from collector.hot.run_files import MERGING, RunFiles, commit_of_segment, name_of_segment
from collector.schema.arrow import arrow_schema
from collector.trace.durable import sync_folder
from collector.trace.parquet_files import in_order, write_parquet

_MOST_SMALL = 4
"""So many small segments of a table are left alone."""

_SMALL = 4
"""A segment is small below this part of one: a quarter of ``segment_rows`` and ``segment_bytes``."""


def merge_small(
    files: RunFiles,
    table: str,
    options: StoreOptions,
    replaced: Callable[[list[str]], None],
) -> None:
    """Put the small segments of a table together, in one step for whoever reads the folder.

    The caller holds the run's ``publishing``. A crash at any point leaves the old folder or the new
    one under the table's name; what lies beside it is removed at the next start (RunFiles.clean).

    Args:
        files: of the run.
        table: an event table.
        options: say how large a segment is; about so much is in memory at once.
        replaced: told the names of all segments as soon as they are there.

    Raises:
        BadTrace: a segment is damaged; nothing was changed.
        OSError, pyarrow.ArrowException: the table has its old segments, or the new ones.
    """
    if not files.can_swap:
        return
    folder = files.folder(table)
    small = [name for name in files.segments(table) if _is_small(folder / name, options)]
    if len(small) <= _MOST_SMALL:
        return
    beside = files.root / f"{MERGING}{uuid4().hex}"
    try:
        merged: list[str] = []
        gone: set[str] = set()
        for names, parts in _groups(files, table, small, options):
            merged.append(_write(beside, table, names, parts))
            gone.update(names)
        if merged:
            _take_place(files, table, beside, gone, merged[0], replaced)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _take_place(
    files: RunFiles,
    table: str,
    beside: Path,
    gone: set[str],
    merged: str,
    replaced: Callable[[list[str]], None],
) -> None:
    folder = files.folder(table)
    for file in folder.iterdir():
        if file.name not in gone and not file.name.startswith("."):
            os.link(file, beside / file.name)
    sync_folder(beside)
    try:
        files.can_swap = exchange(beside, folder)
    finally:
        if (folder / merged).exists():  # some file systems do it and then report a failure
            replaced(files.segments(table))
    # The old files may go only when the new folder is sure to keep the name.
    sync_folder(folder.parent)
    sync_folder(files.root)


def _is_small(file: Path, options: StoreOptions) -> bool:
    """By what it says of itself; not one that another program wrote."""
    if commit_of_segment(file.name) is None:
        return False
    try:
        told = pq.read_metadata(file)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise BadTrace(f"this file cannot be read as Parquet: {error}", where=str(file)) from error
    num_bytes = sum(told.row_group(i).total_byte_size for i in range(told.num_row_groups))
    few = told.num_rows * _SMALL < options.segment_rows
    return bool(few and num_bytes * _SMALL < options.segment_bytes)


def _groups(
    files: RunFiles, table: str, names: Sequence[str], options: StoreOptions
) -> Iterator[tuple[list[str], list[pa.Table]]]:
    """Segments that fit into one, in the order of their commits; none alone.

    Counted as they are read: what a file takes up in memory it does not say.
    """
    group: list[str] = []
    parts: list[pa.Table] = []
    for name in names:
        rows = files.read_segment(table, name, arrow_schema(table).names)
        num_rows = sum(part.num_rows for part in parts) + rows.num_rows
        num_bytes = sum(part.nbytes for part in parts) + rows.nbytes
        if num_rows > options.segment_rows or num_bytes > options.segment_bytes:
            if len(group) > 1:
                yield group, parts
            group, parts = [], []
        group.append(name)
        parts.append(rows)
    if len(group) > 1:
        yield group, parts


def _write(into: Path, table: str, names: Sequence[str], parts: Sequence[pa.Table]) -> str:
    """One segment of several, which reaches as far as the last of them."""
    name = name_of_segment(max(commit_of_segment(name) or 0 for name in names))
    rows = pa.concat_tables(parts).cast(arrow_schema(table))
    write_parquet(into / name, in_order(rows))
    return name
