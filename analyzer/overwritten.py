"""What reads say of the order of concurrent writes, and where they contradict each other."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from analyzer.clock_pass import Table
from analyzer.columns import Ints
from analyzer.edges import Edges
from analyzer.happens_before import HappensBefore
from analyzer.history import History
from analyzer.stale import writes


class Overwritten(NamedTuple):
    """A read of ``newer`` after ``older`` had happened: so ``older`` came first."""

    older: int
    """Row of the write that the read did not see any more."""
    newer: int
    """Row of the write that it saw."""
    read: int


def overwritten(history: History, reads: Ints) -> list[Overwritten]:
    """Of each of these reads: the last write of each other writer before it, concurrent with its own."""
    dots, rows = history.dots, history.rows
    seen = dots.updates.rows[dots.issued_index(dots.read_key[reads])]
    of = writes(history, np.empty(0, dtype=np.int64))
    at = dots.reads.rows[reads]
    found = _concurrent(
        at, rows.actor[at], dots.read_object[reads], seen, rows.actor, *history.hb.clocks,
        of.row, of.actor, of.begin, of.of_object,
    )  # fmt: skip
    unique: dict[tuple[int, int], Overwritten] = {}
    for older, newer, read in zip(*(column.tolist() for column in found), strict=True):
        unique.setdefault((older, newer), Overwritten(older, newer, read))
    return list(unique.values())


def circles(history: History, seen: list[Overwritten]) -> list[list[Overwritten]]:
    """Circles of what was seen and happens-before, each by what was seen along it."""
    if not seen:
        return []
    edges = history.edges
    source = np.array([one.older for one in seen], dtype=np.int64)
    target = np.array([one.newer for one in seen], dtype=np.int64)
    with_seen = Edges(
        np.concatenate([edges.source, source]),
        np.concatenate([edges.target, target]),
        np.concatenate([edges.kind, np.zeros(len(seen), dtype=np.int64)]),
        edges.num_hubs,
    )
    by_pair = {(one.older, one.newer): one for one in seen}
    found = []
    for cycle in HappensBefore(history.rows, with_seen).cycles:
        pairs = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
        along = [by_pair[pair] for pair in pairs if pair in by_pair]
        if along:
            found.append(along)
    return found


@numba.njit(cache=True)
def _concurrent(
    at: Ints,
    at_actor: Ints,
    obj: Ints,
    seen: Ints,
    actor: Ints,
    clock: Ints,
    table: Table,
    row: Ints,
    span_actor: Ints,
    span_begin: Ints,
    of_object: Ints,
) -> tuple[Ints, Ints, Ints]:
    older = []
    newer = []
    read = []
    for i in range(len(at)):
        o, w = obj[i], seen[i]
        for span in range(of_object[o], of_object[o + 1]):
            writer = span_actor[span]
            if writer == actor[w]:
                continue  # in its own order with the one that was read
            upto = at[i] - 1 if writer == at_actor[i] else table[clock[at[i]], writer]
            begin, end = span_begin[span], span_begin[span + 1]
            last = begin + np.searchsorted(row[begin:end], upto, side="right") - 1
            if last < begin:
                continue
            v = row[last]
            if table[clock[w], writer] >= v or table[clock[v], actor[w]] >= w:
                continue
            older.append(v)
            newer.append(w)
            read.append(at[i])
    return (
        np.array(older, dtype=np.int64),
        np.array(newer, dtype=np.int64),
        np.array(read, dtype=np.int64),
    )
