"""Updates by dot: who issued, applied and discarded what, which dots are void, which are known.

A dot (rank, incarnation, counter) is one int key here: actor code and counter packed.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from analyzer.columns import NULL, Columns, Flags, Ints
from analyzer.rows import Rows
from analyzer.walks import Walks

COUNTER_BITS = 42
"""Low bits of a dot key that hold the counter."""

_COUNTER_MAX = (1 << COUNTER_BITS) - 1


def dot_keys(actors: Ints, counters: Ints) -> Ints:
    """Keys of dots; -1 where actor or counter is null."""
    keys = (actors << COUNTER_BITS) | np.clip(counters, 0, _COUNTER_MAX)
    return np.where((actors < 0) | (counters == NULL), -1, keys).astype(np.int64)


KeyOrKeys = TypeVar("KeyOrKeys", int, Ints)


def key_actor(key: KeyOrKeys) -> KeyOrKeys:
    """The author's actor code of a dot key."""
    return key >> COUNTER_BITS


def key_counter(key: KeyOrKeys) -> KeyOrKeys:
    """The counter of a dot key."""
    return key & _COUNTER_MAX


class FlatDots(NamedTuple):
    """A list-of-dot column laid flat."""

    owner: Ints
    """Index, in the table, of the row each dot stands on."""
    actor: Ints
    counter: Ints
    given: Flags
    """Per row of the table: False where the list is null."""

    @property
    def keys(self) -> Ints:
        """Dot keys, flat."""
        return dot_keys(self.actor, self.counter)


def flat_dots(rows: Rows, columns: Columns, column: str) -> FlatDots:
    """The dots of a list column, flat."""
    lists = columns.lists(column)
    if not lists.fields or not len(lists.fields["rank"]):
        empty = np.empty(0, dtype=np.int64)
        return FlatDots(empty, empty, empty, lists.given)
    actor = rows.actor_codes(lists.fields["rank"], lists.fields["incarnation"])
    counter = np.where(lists.fields["counter"] == NULL, 0, lists.fields["counter"])
    return FlatDots(lists.owner(), actor, counter, lists.given)


class Dots:
    """The updates and reads tables in codes, and what follows about each dot."""

    def __init__(self, rows: Rows, walks: Walks) -> None:
        self._rows = rows
        self._walks = walks
        updates, reads = rows["updates"], rows["reads"]
        self.updates = updates
        self.reads = reads
        self.update_object = rows.codes("object", updates, "object")
        self.update_key = dot_keys(
            rows.actor_codes(updates.ints("origin_rank"), updates.ints("origin_incarnation")),
            updates.ints("counter"),
        )
        self.issued: Flags = updates.mask("action", "issued") & (self.update_key >= 0)
        self.applied: Flags = updates.mask("action", "applied") & (self.update_key >= 0)
        self.read_object = rows.codes("object", reads, "object")
        self.read_key = dot_keys(
            rows.actor_codes(reads.ints("origin_rank"), reads.ints("origin_incarnation")),
            reads.ints("counter"),
        )
        self.read_frontier = flat_dots(rows, reads, "frontier")
        # The dot's own issued row: the origin's first, else (a relay's mistake) the first of all.
        keys = self.update_key[self.issued]
        at = updates.rows[self.issued]
        foreign = rows.actor[at] != keys >> COUNTER_BITS
        order = np.lexsort((at, foreign, keys))
        self._issued_keys, first = np.unique(keys[order], return_index=True)
        self._issued_index = np.flatnonzero(self.issued)[order][first]

    @cached_property
    def void(self) -> Ints:
        """Sorted keys of void dots: no version, every dependency on them is satisfied.

        Void is what its author discarded or, once the author was closed, a member of its cohort. What
        another cohort discarded before (of a step it folded it takes the parameters alone) is not.
        """
        index = np.flatnonzero(self.updates.mask("action", "discarded") & (self.update_key >= 0))
        found = set()
        for i in index.tolist():
            key = int(self.update_key[i])
            author, here = key_actor(key), int(self._rows.actor[self.updates.rows[i]])
            if here == author or (
                self._walks.was_closed(author, int(self._rows.epoch[self.updates.rows[i]]))
                and here in self._walks.cohort_mates(author)
            ):
                found.add(key)
        return np.array(sorted(found), dtype=np.int64)

    @cached_property
    def loaded_upto(self) -> dict[int, int]:
        """Per author: the highest counter inside any checkpoint or snapshot that was loaded."""
        checkpoints = self._rows["checkpoints"]
        taken = checkpoints.mask("action", "loaded", "received")
        dots = flat_dots(self._rows, checkpoints, "frontier")
        found: dict[int, int] = {}
        for owner, actor, counter in zip(
            dots.owner.tolist(), dots.actor.tolist(), dots.counter.tolist(), strict=True
        ):
            if taken[owner]:
                found[actor] = max(found.get(actor, 0), counter)
        return found

    def issued_index(self, keys: Ints) -> Ints:
        """Per dot: index in ``updates`` of its issued row; -1 where there is none."""
        if not len(self._issued_keys):
            return np.full(len(keys), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._issued_keys, keys), len(self._issued_keys) - 1)
        return np.where(self._issued_keys[at] == keys, self._issued_index[at], -1)

    @property
    def first_issued(self) -> Ints:
        """Of each dot the index in ``updates`` of its own issued row, in order of keys."""
        return self._issued_index

    def issued_row(self, key: int) -> int | None:
        """Row number of the dot's issued row, or None."""
        index = int(self.issued_index(np.array([key]))[0])
        return None if index < 0 else int(self.updates.rows[index])

    def name(self, key: int) -> str:
        """A dot for people: ``rank:counter``, the incarnation added where it is not the first."""
        return f"{self._rows.actors[key_actor(key)]}:{key_counter(key)}"

    @cached_property
    def delta_objects(self) -> frozenset[int]:
        """Codes of objects whose updates are added, not assigned."""
        objects = self._rows["objects"]
        codes = self._rows.codes("object", objects, "object")
        return frozenset(codes[objects.mask("update_kind", "delta")].tolist())

    @cached_property
    def on_object(self) -> dict[tuple[int, int], Ints]:
        """Per (object, author): sorted counters of its dots that are known and not void."""
        known = (self.issued | self.applied) & ~np.isin(self.update_key, self.void)
        pairs: dict[tuple[int, int], set[int]] = {}
        for obj, key in zip(
            self.update_object[known].tolist(), self.update_key[known].tolist(), strict=True
        ):
            pairs.setdefault((obj, key_actor(key)), set()).add(key_counter(key))
        return {pair: np.array(sorted(counters)) for pair, counters in pairs.items()}

    def floor(self, obj: int, author: int, counter: int) -> int:
        """The author's last dot on the object at or below the counter; 0 when there is none."""
        counters = self.on_object.get((obj, author))
        if counters is None:
            return 0
        at = int(np.searchsorted(counters, counter, side="right"))
        return int(counters[at - 1]) if at else 0
