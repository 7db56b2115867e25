"""What readers get of a run's hot rows: all of it as it was after one commit."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from cascade_runtime.vocabulary.events import CollectiveDone, Collectives


class Snapshot(NamedTuple):
    """The hot rows as they were after one commit.

    Attributes:
        commit: the last commit that is in it.
        tables: parts of each table, oldest first; a later snapshot only ever appends.
        segments: file names of the sealed segments by table, which hold the rows before those.
        open: collectives that have not completed.
        orphans: completions whose entered record is not among the hot rows.
        num_sealed: rows of each table that went from here into segments since the store was opened.
        left: the last of those that are in memory still, for followers (``follow``), oldest first.
    """

    commit: int
    tables: dict[str, list[pa.Table]]
    segments: dict[str, list[str]]
    open: list[Collectives]
    orphans: list[CollectiveDone]
    num_sealed: dict[str, int]
    left: dict[str, list[pa.Table]]
