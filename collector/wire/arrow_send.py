"""A trace's tables cut into batches to send: each holds contiguous stretches of actors, in seq order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

ROWS_EACH = 20_000
"""Rows of one batch: large enough for the store's group commit, a megabyte or so on the wire."""

ActorPair = tuple[int, int]
"""(rank, incarnation)"""

_Ints = npt.NDArray[np.int64]


class Batch(NamedTuple):
    """Rows by table, and how many they are."""

    tables: dict[str, pa.Table]
    num_rows: int

    def halves(self) -> tuple[Batch, Batch]:
        """The batch in two, each again a contiguous stretch of every actor."""
        first, second = cut(self.tables, (self.num_rows + 1) // 2)
        return first, second


class Keys(NamedTuple):
    """Where every row of some tables is, ordered by rank, incarnation, seq."""

    rank: _Ints
    incarnation: _Ints
    seq: _Ints
    table: _Ints
    row: _Ints


def keys_of(tables: Mapping[str, pa.Table]) -> Keys:
    """The keys of all rows, in order; ``table`` counts the mapping's names."""
    names = list(tables)
    rank, incarnation, seq = (
        np.concatenate([_ints(tables[name], column) for name in names] or [_NONE])
        for column in ("rank", "incarnation", "seq")
    )
    sizes = [tables[name].num_rows for name in names]
    table = np.repeat(np.arange(len(names), dtype=np.int64), sizes)
    row = np.concatenate([np.arange(size, dtype=np.int64) for size in sizes] or [_NONE])
    order = np.lexsort((table, seq, incarnation, rank))
    return Keys(*(column[order] for column in (rank, incarnation, seq, table, row)))


def cut(tables: Mapping[str, pa.Table], rows_each: int = ROWS_EACH) -> Iterator[Batch]:
    """The batches of some tables, in order.

    Args:
        tables: event tables.
        rows_each: rows of a batch; the last one may have fewer.
    """
    yield from batches(tables, keys_of(tables), rows_each)


def batches(
    tables: Mapping[str, pa.Table], keys: Keys, rows_each: int = ROWS_EACH
) -> Iterator[Batch]:
    """The batches of the rows that ``keys`` names."""
    names = list(tables)
    for start in range(0, len(keys.row), rows_each):
        table = keys.table[start : start + rows_each]
        row = keys.row[start : start + rows_each]
        yield Batch(
            {names[t]: tables[names[t]].take(pa.array(row[table == t])) for t in np.unique(table)},
            len(row),
        )


def above(keys: Keys, marks: Mapping[ActorPair, int]) -> Keys:
    """The keys of rows that marks do not cover; an actor without a mark has none covered."""
    keep = np.ones(len(keys.seq), dtype=bool)
    for (rank, incarnation), mark in marks.items():
        mine = (keys.rank == rank) & (keys.incarnation == incarnation)
        keep &= ~(mine & (keys.seq <= mark))
    return Keys(*(column[keep] for column in keys))


def prefixes(keys: Keys) -> dict[ActorPair, int]:
    """For every actor, up to which seq its rows are contiguous from 0; -1 where seq 0 is missing."""
    found: dict[ActorPair, int] = {}
    change = (np.diff(keys.rank) != 0) | (np.diff(keys.incarnation) != 0)
    starts = [0, *(np.flatnonzero(change) + 1).tolist(), len(keys.seq)]
    for start, end in itertools.pairwise(starts):
        if start == end:
            continue
        seqs = np.unique(keys.seq[start:end])
        holes = np.flatnonzero(seqs != np.arange(len(seqs)))
        contiguous = int(holes[0]) if len(holes) else len(seqs)
        found[(int(keys.rank[start]), int(keys.incarnation[start]))] = contiguous - 1
    return found


_NONE: _Ints = np.empty(0, dtype=np.int64)


def _ints(table: pa.Table, column: str) -> _Ints:
    values: _Ints = table[column].to_numpy().astype(np.int64)
    return values
