"""Event tables of a newer writer: ignored, but the seqs of their rows are accounted for.

``seq`` counts over all event tables. Without this, ignoring a table would look like lost rows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.ports import SourceNote
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.losses import Loss, Moment
from collector.trace.inside import Inside

_COLUMNS = {"run_id": pa.string(), "rank": pa.int64(), "incarnation": pa.int64()} | {
    "seq": pa.int64(),
    "wall_ns": pa.int64(),
}


def losses_of_unknown_tables(inside: Inside, run_id: str) -> tuple[list[Loss], list[SourceNote]]:
    """The stretches of seq that rows of unknown tables take up, and a note for each table."""
    losses: list[Loss] = []
    notes: list[SourceNote] = []
    for folder in inside.folders(inside.path("events")):
        if folder.name in EVENT_TABLES:
            continue
        what = "a table that this release does not know, ignored"
        notes.append(SourceNote(where=inside.name(folder), what=what))
        parts = [_keys(file, run_id) for file in inside.files(folder, ".parquet")]
        rows = pa.concat_tables([_nothing(), *(part for part in parts if part is not None)])
        losses += _stretches(rows, folder.name, run_id)
    return losses, notes


def _nothing() -> pa.Table:
    return pa.schema(list(_COLUMNS.items())).empty_table()


def _keys(file: Path, run_id: str) -> pa.Table | None:
    """Who wrote which seq when; None when the file has no such columns, and so takes no seq."""
    try:
        read = pq.read_table(file, columns=list(_COLUMNS), partitioning=None)
        rows = pa.table({name: read[name].cast(dtype) for name, dtype in _COLUMNS.items()})
    except (pa.ArrowException, OSError, ValueError, KeyError):
        return None
    return rows.filter(pc.equal(rows["run_id"], run_id)).drop_null()


def _stretches(rows: pa.Table, table: str, run_id: str) -> list[Loss]:
    rows = rows.sort_by([(name, "ascending") for name in ("rank", "incarnation", "seq")])
    rank, incarnation, seq, wall = (
        rows[name].to_numpy() for name in ("rank", "incarnation", "seq", "wall_ns")
    )
    if len(seq) == 0:
        return []
    same_actor = (rank[1:] == rank[:-1]) & (incarnation[1:] == incarnation[:-1])
    breaks = np.flatnonzero(~(same_actor & (seq[1:] - seq[:-1] <= 1))) + 1
    starts = np.concatenate(([0], breaks))
    ends = np.concatenate((breaks, [len(seq)])) - 1
    return [
        Loss(
            Actor(int(rank[a]), int(incarnation[a])),
            int(seq[a]),
            int(seq[b]),
            (table,),
            "not_supplied",
            Moment(run_id, "world", int(wall[a]), None),
        )
        for a, b in zip(starts, ends, strict=True)
    ]
