"""Completions that came after their entered record was stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cascade_runtime.vocabulary.events import CollectiveDone, Collectives
from collector.doorway import joined, key_of
from collector.schema.rows import events_to_table, table_to_events


class Completed(NamedTuple):
    """Stored rows that stay, rows that are now complete, completions that name no stored row."""

    rest: pa.Table
    rows: pa.Table
    num_unknown: int


def apply_done(stored: pa.Table, done: Sequence[CollectiveDone]) -> Completed:
    """Join done records onto stored collectives.

    Args:
        stored: all columns of ``collectives``.
        done: completions whose entered record was not among the records that came with them.
    """
    by_key = {key_of(record): record for record in done}
    seqs = pc.is_in(stored["seq"], pa.array([record.seq for record in done], pa.int64()))
    places = np.flatnonzero(seqs.to_numpy())
    rows = cast("list[Collectives]", table_to_events("collectives", stored.take(pa.array(places))))
    replaced: list[Collectives] = []
    gone: list[int] = []
    found = set()
    for place, row in zip(places, rows, strict=True):
        record = by_key.get(key_of(row))
        if record is None:
            continue
        found.add(key_of(row))
        if row.done_seq is None and not row.completed:
            gone.append(int(place))
            replaced.append(joined(row, record))
    keep = np.ones(stored.num_rows, dtype=bool)
    keep[gone] = False
    return Completed(
        stored.filter(pa.array(keep)),
        events_to_table("collectives", replaced),
        len(by_key) - len(found),
    )
