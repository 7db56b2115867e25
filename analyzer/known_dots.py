"""Every dot that some row of updates names, as one node: its object, its fate, what it depends on.

Nodes are sorted by (author, counter), so a dot's origin's previous update is the node before it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from analyzer.clock_pass import clock_pass
from analyzer.columns import Flags, Ints
from analyzer.dots import COUNTER_BITS, Dots, FlatDots, flat_dots
from analyzer.rows import Rows


class KnownDots:
    """Nodes and their causes.

    Attributes:
        key: per node its dot key, sorted.
        author: per node the author's actor code.
        object: per node the object's code.
        void: True where the dot is void (design contract 4.4).
        of_update: per row of updates its node; -1 where it names no dot.
    """

    def __init__(self, rows: Rows, dots: Dots) -> None:
        self._rows = rows
        self._dots = dots
        named = dots.update_key >= 0
        self.key, inverse = np.unique(dots.update_key[named], return_inverse=True)
        self.of_update: Ints = np.full(len(named), -1, dtype=np.int64)
        self.of_update[named] = inverse
        self.author: Ints = self.key >> COUNTER_BITS
        self.void: Flags = np.isin(self.key, dots.void)
        # What a dot is, its issued row says; where nobody recorded one, the first row that names it.
        first = np.full(len(self.key), len(named), dtype=np.int64)
        np.minimum.at(first, inverse, np.flatnonzero(named))
        issued = dots.issued_index(self.key)
        self._source: Ints = np.where(issued >= 0, issued, first)
        self.object: Ints = dots.update_object[self._source]

    def __len__(self) -> int:
        return len(self.key)

    def node(self, keys: Ints) -> Ints:
        """Per dot key its node; -1 where no row of updates names it."""
        at = self.floor(keys)
        return np.where((at >= 0) & (self.key[at] == keys), at, -1) if len(self) else at

    def floor(self, keys: Ints) -> Ints:
        """Per dot key the same author's last node at or below it; -1 where there is none."""
        if not len(self):
            return np.full(len(keys), -1, dtype=np.int64)
        at = np.searchsorted(self.key, keys, side="right") - 1
        same = (at >= 0) & (self.author[at] == keys >> COUNTER_BITS)
        return np.where(same, at, -1).astype(np.int64)

    @cached_property
    def previous(self) -> Ints:
        """Per node its author's last node before it that is not void; -1 where there is none."""
        live = np.where(self.void, -1, np.arange(len(self)))
        last = np.maximum.accumulate(live) if len(live) else live
        before = np.concatenate([[-1], last[:-1]]).astype(np.int64)[: len(self)]
        same = (before >= 0) & (self.author[before] == self.author)
        return np.where(same, before, -1).astype(np.int64)

    # --- one object's dots ----------------------------------------------------------------

    @cached_property
    def on_object(self) -> tuple[Ints, Ints]:
        """Of nodes that are not void: object x number of nodes + node, sorted; and their nodes."""
        live = np.flatnonzero(~self.void)
        packed = np.sort(self.object[live] * len(self) + live)
        return packed, packed % max(len(self), 1)

    def floor_on(self, objects: Ints, nodes: Ints) -> Ints:
        """Per (object, node) the same author's last node on the object, not void, at or before it."""
        packed, found = self.on_object
        if not len(packed):
            return np.full(len(nodes), -1, dtype=np.int64)
        at = np.searchsorted(packed, objects * len(self) + nodes, side="right") - 1
        node = found[np.maximum(at, 0)]
        good = (at >= 0) & (nodes >= 0) & (self.object[node] == objects)
        good &= self.author[node] == self.author[np.maximum(nodes, 0)]
        return np.where(good, node, -1).astype(np.int64)

    # --- causes ---------------------------------------------------------------------------

    @cached_property
    def _flat_deps(self) -> FlatDots:
        return flat_dots(self._rows, self._dots.updates, "deps")

    @cached_property
    def deps(self) -> tuple[Ints, Ints]:
        """(begin of each node's span, dot keys): the dependencies that its issued row lists."""
        flat = self._flat_deps
        begin = np.searchsorted(flat.owner, np.arange(len(self.of_update) + 1))
        low, high = begin[self._source], begin[self._source + 1]
        count = high - low
        offsets = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], count)
        keys = flat.keys[np.repeat(low, count) + within]
        return offsets, keys

    @cached_property
    def _clocks(self) -> tuple[Ints, Ints, Ints, Ints]:
        """(per node an index into the table, table, author slot of each node, begin of each slot)."""
        num = len(self)
        authors, slot = np.unique(self.author, return_inverse=True)
        start = np.append(np.searchsorted(slot, np.arange(len(authors))), num).astype(np.int64)
        begin, keys = self.deps
        target = np.repeat(np.arange(num), np.diff(begin))
        source = self.floor(keys)
        # Of its own origin, a dot depends on all before it, listed or not.
        other = (source >= 0) & (self.author[source] != self.author[target])
        source, target = source[other], target[other]
        by_target, by_source = (_grouped(k, num) for k in (target, source))
        clock, table, _ = clock_pass(
            start, slot, by_target[0], source[by_target[1]],
            by_source[0], target[by_source[1]], 0,
        )  # fmt: skip
        return clock, table.astype(np.int64), slot.astype(np.int64), start

    def depends(self, nodes: Ints, causes: Ints) -> Flags:
        """True where the node depends on the cause: as listed, or as follows from what is listed."""
        if not len(nodes):
            return np.zeros(0, dtype=np.bool_)
        clock, table, slot, _ = self._clocks
        inside = slot[nodes] == slot[causes]
        return np.where(inside, causes < nodes, table[clock[nodes], slot[causes]] >= causes)

    @property
    def clocks(self) -> tuple[Ints, Ints, Ints]:
        """(per node an index into the table, the table, per node its author's column of it).

        An entry of the table is the last node of that author on which the node depends, or -1.
        """
        clock, table, slot, _ = self._clocks
        return clock, table, slot


def _grouped(keys: Ints, num: int) -> tuple[Ints, Ints]:
    """(begin of each key's span, order that sorts by key)."""
    order = np.argsort(keys, kind="stable").astype(np.int64)
    counts = np.bincount(keys, minlength=num)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), order
