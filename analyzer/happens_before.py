"""Happens-before between any two rows of a trace, and the shortest path that explains it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from analyzer.clock_pass import Table, clock_pass
from analyzer.columns import Ints
from analyzer.edges import EDGE_WORDS, Edges
from analyzer.rows import Rows


class Hop(NamedTuple):
    """One row on a path, and how it is ordered after the one before (None on the first)."""

    row: int
    edge: str | None


class HappensBefore:
    """Vector clocks of all rows (design contract 4.4: happens-before).

    Attributes:
        cycles: rows of each cycle that the edges hold; empty in a sound trace.
    """

    def __init__(self, rows: Rows, edges: Edges) -> None:
        self._rows = rows
        nodes = rows.n + edges.num_hubs
        self._in_begin, order = _grouped(edges.target, nodes)
        self._in_source = edges.source[order]
        self._in_kind = edges.kind[order]
        out_begin, order = _grouped(edges.source, nodes)
        self._clock, self._table, self.cycles = clock_pass(
            rows.start,
            rows.actor,
            self._in_begin,
            self._in_source,
            out_begin,
            edges.target[order],
            edges.num_hubs,
        )
        # Rows with an edge into them: where an actor learns of others.
        degree = np.diff(self._in_begin[: rows.n + 1])
        self._learning: Ints = np.flatnonzero(degree)

    def before(self, first: int, second: int) -> bool:
        """True when row ``first`` happens-before row ``second``; O(1)."""
        actor = self._rows.actor[first]
        if actor == self._rows.actor[second]:
            return first < second
        return bool(self._table[self._clock[second], actor] >= first)

    def last_before(self, row: int, actor: int) -> int:
        """The last row of ``actor`` that happens-before ``row``; -1 when none does."""
        if actor == self._rows.actor[row]:
            return row - 1 if row > self._rows.start[actor] else -1
        if not self._rows.has_rows(actor):
            return -1
        return int(self._table[self._clock[row], actor])

    def last_before_many(self, row: Ints, actor: Ints) -> Ints:
        """``last_before`` for pairs of rows and actors that have rows."""
        inside = actor == self._rows.actor[row]
        own = np.where(row > self._rows.start[actor], row - 1, -1)
        return np.where(inside, own, self._table[self._clock[row], actor]).astype(np.int64)

    @property
    def clocks(self) -> tuple[Ints, Table]:
        """(per row an index into the table, the table): of each actor the last row before, or -1.

        An actor's own column says nothing of its own rows, which are in order.
        """
        return self._clock, self._table

    @property
    def incoming(self) -> tuple[Ints, Ints]:
        """(begin of each node's span, and the end; source of each edge): nodes are rows, then hubs."""
        return self._in_begin, self._in_source

    def before_many(self, first: Ints, second: Ints) -> Ints:
        """``before`` for pairs of rows, as 0 and 1."""
        actor = self._rows.actor[first]
        inside = actor == self._rows.actor[second]
        known = self._table[self._clock[second], actor] >= first
        return np.where(inside, first < second, known).astype(np.int64)

    def path(self, first: int, second: int) -> list[Hop]:
        """A path from ``first`` to ``second`` with the fewest edges between actors.

        Empty when ``first`` does not happen-before ``second``. Rows that program order only passes
        by are left out.
        """
        if not self.before(first, second):
            return []
        goal = int(self._rows.actor[first])
        # Backward, breadth first: per actor the last row known to lead to ``second``.
        reach = {int(self._rows.actor[second]): second}
        came: dict[int, tuple[int, int, str]] = {}  # row -> (next row, via row, edge word)
        level = dict(reach)
        scanned: dict[int, int] = {}
        while goal not in reach or reach[goal] < first:
            following: dict[int, int] = {}
            for actor, upto in level.items():
                low = scanned.get(actor, int(self._rows.start[actor]) - 1)
                for row in self._learning_rows(low, upto):
                    for source, kind in self._sources(row):
                        self._reach_back(source, row, upto, kind, first, reach, following, came)
                scanned[actor] = max(low, upto)
            if not following:
                return []  # only in traces with cycles, where clocks say less than edges
            level = following
        return self._unwind(first, reach[goal], second, came)

    def _reach_back(
        self,
        source: int,
        row: int,
        upto: int,
        kind: int,
        first: int,
        reach: dict[int, int],
        following: dict[int, int],
        came: dict[int, tuple[int, int, str]],
    ) -> None:
        """Note that ``source`` leads to ``row``, when it is news and comes after ``first``."""
        actor = int(self._rows.actor[source])
        if reach.get(actor, -1) >= source or (source != first and not self.before(first, source)):
            return
        reach[actor] = source
        following[actor] = source
        came[source] = (upto, row, EDGE_WORDS[kind])

    def _learning_rows(self, low: int, high: int) -> list[int]:
        """Rows in (low, high] with an edge into them, newest first."""
        begin, end = np.searchsorted(self._learning, [low, high], side="right")
        found: list[int] = self._learning[begin:end][::-1].tolist()
        return found

    def _sources(self, row: int) -> list[tuple[int, int]]:
        """(row, edge kind) of every edge into a row, through a hub where there is one."""
        found = []
        for e in range(int(self._in_begin[row]), int(self._in_begin[row + 1])):
            source, kind = int(self._in_source[e]), int(self._in_kind[e])
            if source < self._rows.n:
                found.append((source, kind))
            else:
                span = slice(int(self._in_begin[source]), int(self._in_begin[source + 1]))
                found += [(int(entry), kind) for entry in self._in_source[span]]
        return found

    def _unwind(
        self, first: int, at: int, second: int, came: dict[int, tuple[int, int, str]]
    ) -> list[Hop]:
        hops = [Hop(first, None)]
        if at != first:
            hops.append(Hop(at, EDGE_WORDS[0]))
        while at != second:
            if at not in came:
                hops.append(Hop(second, EDGE_WORDS[0]))
                break
            upto, row, word = came[at]
            hops.append(Hop(row, word))
            if row != upto:
                hops.append(Hop(upto, EDGE_WORDS[0]))
            at = upto
        return hops


def _grouped(keys: Ints, num: int) -> tuple[Ints, Ints]:
    """(begin of each key's span, order that sorts by key)."""
    order = np.argsort(keys, kind="stable")
    counts = np.bincount(keys, minlength=num) if len(keys) else np.zeros(num, dtype=np.int64)
    begin = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)]).astype(np.int64)
    return begin, order.astype(np.int64)
