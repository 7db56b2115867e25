"""Spans of time by rank, of which any window's sum is known at once; they may come in any order."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from dashboard.tiles.edges_native import (
    BLOCK,
    Bytes,
    Counts,
    Ints,
    draw,
    merge,
    reindex,
    sum_before,
    uncovered,
)

MAX_BUCKETS = 1 << 18
"""Of a rank's directory."""

_LEAST_BUCKETS = 64
_EDGES_A_BUCKET = 4

_NUM_PARTS = min(4, os.cpu_count() or 1)
_DRAWING = ThreadPoolExecutor(_NUM_PARTS, "cascade-draw")


def _no_ints() -> Ints:
    return np.empty(0, np.int64)


def _no_counts() -> Counts:
    return np.empty(0, np.int32)


Finder: TypeAlias = tuple[Ints, int, Ints, Counts, Ints, int, int]
"""What the compiled functions find a moment with: their first arguments."""


@dataclass(slots=True)
class Row:
    """The edges of one rank's spans, and what finds a moment among them (edges_native)."""

    edges: Ints = field(default_factory=_no_ints)
    num: int = 0
    area: Ints = field(default_factory=_no_ints)
    open_at: Counts = field(default_factory=_no_counts)
    directory: Ints = field(default_factory=lambda: np.empty((0, 2), np.int64))
    origin: int = 0
    shift: int = 10

    def add(self, new: Ints, *, union: bool) -> None:
        """Put sorted edges among these."""
        self._make_room(len(new))
        first = merge(self.edges, self.num, new)
        self.num += len(new)
        num_right = self._fit()
        reindex(*self.finder(), union, first if num_right else 0, num_right)

    @property
    def begin(self) -> int:
        """The first moment; 0 where there is none."""
        return int(self.edges[0] >> 1) if self.num else 0

    @property
    def end(self) -> int:
        """The last moment; 0 where there is none."""
        return int(self.edges[self.num - 1] >> 1) if self.num else 0

    def finder(self) -> Finder:
        """The first arguments of the compiled functions."""
        return (
            *(self.edges, self.num, self.area, self.open_at),
            *(self.directory, self.origin, self.shift),
        )

    def _make_room(self, more: int) -> None:
        need = self.num + more
        if need > len(self.edges):
            size = max(need, 64) if not self.num else max(need, self.num + self.num // 2)
            self.edges = _grown(self.edges, size)
            self.area = _grown(self.area, size // BLOCK + 1)
            self.open_at = _grown(self.open_at, size // BLOCK + 1)

    def _fit(self) -> int:
        """Give the directory its size; how many of its buckets are the same as before."""
        num_right = len(self.directory)
        if not num_right or self.begin < self.origin:
            self.origin, num_right = self.begin, 0
        wanted = max(_LEAST_BUCKETS, min(MAX_BUCKETS, self.num // _EDGES_A_BUCKET))
        # Coarser only when it is far too fine: a growing run pays for it once in a while.
        most = wanted if not num_right else min(MAX_BUCKETS, 4 * wanted)
        span = self.end - self.origin
        if (span >> self.shift) + 2 > most:
            num_right = 0
            while (span >> self.shift) + 2 > wanted:
                self.shift += 1
        size = (span >> self.shift) + 2
        if size != len(self.directory):
            self.directory = _grown(self.directory[: min(num_right, size)], size)
        return min(num_right, size)


def _grown(old: Any, size: int) -> Any:
    new = np.empty((size, *old.shape[1:]), old.dtype)
    new[: len(old)] = old
    return new


class Spans:
    """A lane: spans by rank.

    Args:
        union: count time with at least one span of the rank; else every span counts, so a rank may
            have more than all of a window.
    """

    def __init__(self, *, union: bool) -> None:
        self.union = union
        self.rows: dict[int, Row] = {}

    @property
    def num_bytes(self) -> int:
        """In memory."""
        arrays = [(r.edges, r.area, r.open_at, r.directory) for r in self.rows.values()]
        return sum(array.nbytes for row in arrays for array in row)

    def add(self, rank: Ints, start: Ints, end: Ints) -> None:
        """Add spans: the rank, first ns and the ns behind it of each."""
        keep = end > start
        for one, places in by_rank(np.where(keep, rank, -1)):
            if one >= 0:
                edges = np.concatenate([start[places] * 2, end[places] * 2 + 1])
                edges.sort()
                self.rows.setdefault(one, Row()).add(edges, union=self.union)

    def uncovered(self, rank: Ints, start: Ints, end: Ints) -> Ints:
        """Per span the ns that neither the lane nor an earlier one of these covers.

        The spans of a rank are sorted by start.
        """
        counted = np.zeros(len(start), np.int64)
        for one, places in by_rank(rank):
            row = self.rows.get(one) or Row()
            found = np.empty(len(places), np.int64)
            uncovered(*row.finder(), start[places], end[places], found)
            counted[places] = found
        return counted

    def draw(self, ranks: Iterable[int], bounds: Ints, peers: int = 1) -> Bytes:
        """uint8[ranks, pixels]; see ``edges_native.draw``."""
        ranks = list(ranks)
        out = np.zeros((len(ranks), len(bounds) - 1), np.uint8)

        def some(first: int) -> None:
            for at in range(first, len(ranks), _NUM_PARTS):
                row = self.rows.get(ranks[at])
                # A rank that has nothing in the window is dark already.
                if row is not None and row.begin < bounds[-1] + 1 and row.end > bounds[0]:
                    draw(*row.finder(), self.union, peers, bounds, out[at])

        # Most of the time goes into waiting for memory, and no interpreter lock is held.
        list(_DRAWING.map(some, range(min(_NUM_PARTS, len(ranks)))))
        return out

    def sums(self, a: int, b: int) -> Mapping[int, int]:
        """By rank: ns inside a..b."""
        found = {}
        for rank, row in self.rows.items():
            low = sum_before(*row.finder(), self.union, a)
            found[rank] = int(sum_before(*row.finder(), self.union, b) - low)
        return found


def by_rank(rank: Ints) -> list[tuple[int, Ints]]:
    """(rank, places in order) of each."""
    if not len(rank):
        return []
    order = np.argsort(rank, kind="stable")
    ordered = rank[order]
    cuts = np.flatnonzero(np.diff(ordered)) + 1
    firsts = [int(ordered[0]), *ordered[cuts].tolist()]
    return list(zip(firsts, np.split(order, cuts), strict=True))
