"""Reads by frontier that cover an update and lack one of its causes on the same object."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from analyzer.columns import NULL, Flags, Ints
from analyzer.history import History


class Hole(NamedTuple):
    """One read's hole."""

    read: int
    """Index in reads."""
    covered: int
    """Node that the frontier covers."""
    lacking: int
    """Node on the same object that the covered one depends on, and the frontier lacks."""


def folded_reads(history: History) -> Flags:
    """Reads that are compared by frontier."""
    dots = history.dots
    delta = np.isin(dots.read_object, list(dots.delta_objects))
    plain = dots.reads.ints("version") == NULL
    found: Flags = dots.read_frontier.given & plain & (delta | (dots.read_key < 0))
    return found & (dots.read_object >= 0)


def holes(history: History, judged: Flags) -> list[Hole]:
    """The first hole of each judged read that has one."""
    dots, known = history.dots, history.known
    flat = dots.read_frontier
    clock, table, slot = known.clocks
    kept = np.flatnonzero(judged[flat.owner])
    node = known.floor(flat.keys[kept])
    real = node >= 0
    owner, node = flat.owner[kept][real], node[real]
    obj = dots.read_object[owner]
    top = known.floor_on(obj, node)
    begin = np.searchsorted(owner, np.arange(len(judged) + 1))
    covered, lacking = _holes(begin, node, top, obj, clock, table, slot, *known.on_object)
    return [
        Hole(i, int(covered[i]), int(lacking[i])) for i in np.flatnonzero(covered >= 0).tolist()
    ]


@numba.njit(cache=True)
def _holes(
    begin: Ints,
    node: Ints,
    top: Ints,
    obj: Ints,
    clock: Ints,
    table: Ints,
    slot: Ints,
    packed: Ints,
    found: Ints,
) -> tuple[Ints, Ints]:
    n = len(begin) - 1
    covered = np.full(n, -1, dtype=np.int64)
    lacking = np.full(n, -1, dtype=np.int64)
    upto = np.full(table.shape[1], -1, dtype=np.int64)
    for i in range(n):
        for e in range(begin[i], begin[i + 1]):
            upto[slot[node[e]]] = max(upto[slot[node[e]]], node[e])
        for e in range(begin[i], begin[i + 1]):
            if top[e] < 0 or covered[i] >= 0:
                continue
            for b in range(table.shape[1]):
                cause = table[clock[top[e]], b]
                if cause <= upto[b] or b == slot[top[e]]:
                    continue
                # Its author's last dot on this object, at or before the cause.
                wanted = obj[e] * len(slot) + cause
                at = np.searchsorted(packed, wanted, side="right") - 1
                if at < 0 or packed[at] // len(slot) != obj[e]:
                    continue
                last = found[at]
                if slot[last] == b and last > upto[b]:
                    covered[i] = top[e]
                    lacking[i] = last
                    break
        for e in range(begin[i], begin[i + 1]):
            upto[slot[node[e]]] = -1
    return covered, lacking
