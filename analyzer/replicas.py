"""What each actor's copy holds at each of its updates: applied, loaded, or nothing to wait for.

A load replaces the copy: what was applied before it counts no more. Source: design contract 4.4.
"""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import numpy.typing as npt

from analyzer.columns import Flags, Ints
from analyzer.dots import COUNTER_BITS, Dots, flat_dots
from analyzer.known_dots import KnownDots
from analyzer.rows import Rows

HELD, LACKING, UNSURE = 0, 1, 2
"""Answers of ``Replicas.ask``; UNSURE: inside a loaded state whose content was not recorded."""


class Replicas:
    """Asked whether an actor's copy held an update when it came to another one.

    Args:
        rows: the trace's rows.
        dots: its updates and reads.
        known: its dots.
        undone: given (nodes, rows), True where a load had made the dot void before that row.
    """

    def __init__(
        self,
        rows: Rows,
        dots: Dots,
        known: KnownDots,
        undone: Callable[[Ints, Ints], Flags],
    ) -> None:
        self._rows = rows
        self._dots = dots
        self._known = known
        self._undone = undone
        at = dots.updates.rows
        self.actor: Ints = rows.actor[at]
        checkpoints = rows["checkpoints"]
        taken = np.flatnonzero(checkpoints.mask("action", "loaded", "received"))
        self._load_rows: Ints = checkpoints.rows[taken]
        flat = flat_dots(rows, checkpoints, "frontier")
        self._given: Flags = flat.given[taken]
        frontiers: dict[int, dict[int, int]] = {}
        for owner, author, counter in zip(
            flat.owner.tolist(), flat.actor.tolist(), flat.counter.tolist(), strict=True
        ):
            one = frontiers.setdefault(owner, {})
            one[author] = max(one.get(author, 0), counter)
        self._loaded = [frontiers.get(i, {}) for i in taken.tolist()]
        own = dots.issued & (dots.update_key >> COUNTER_BITS == self.actor)
        self._holds: Flags = dots.applied | own
        # Equal inside what one actor did between two loads, and nowhere else.
        self._session: Ints = np.searchsorted(self._load_rows, at) + self.actor * (
            len(self._load_rows) + 1
        )
        gone = updates_discarded(dots)
        self._gone: Ints = np.unique(self.actor[gone] * len(known) + known.of_update[gone])
        self._holders = _holders(rows)

    def ask(self, at: Ints, keys: Ints) -> npt.NDArray[np.int8]:
        """Per (index in updates, dot key): whether the dot was in the copy just before that row.

        ``at`` must be ascending.
        """
        nodes = self._known.node(keys)
        begin = np.searchsorted(at, np.arange(len(self.actor) + 1))
        held = _held_before(
            self._session, self._known.of_update, self._holds, begin, nodes, len(self._known)
        )
        answer = np.where(held, HELD, LACKING).astype(np.int8)
        left = np.flatnonzero(~held)
        if len(left):
            answer[left] = self._otherwise(at[left], keys[left], nodes[left])
        return answer

    def keeps(self, actors: Ints, objects: Ints) -> Flags:
        """True where the actor holds the object at all."""
        kept = np.ones(len(actors), dtype=np.bool_)
        for obj, ranks in self._holders.items():
            for i in np.flatnonzero(objects == obj).tolist():
                kept[i] = self._rows.actors[int(actors[i])].rank in ranks
        return kept

    @property
    def loaders(self) -> Ints:
        """Actors that loaded or received a state."""
        return np.unique(self._rows.actor[self._load_rows])

    @property
    def loads(self) -> list[tuple[int, dict[int, int]]]:
        """(row, author to counter) of everybody's loads, in row order."""
        return list(zip(self._load_rows.tolist(), self._loaded, strict=True))

    def loads_of(self, actor: int) -> list[tuple[int, dict[int, int]]]:
        """(row, author to counter) of the actor's loads, in order."""
        pairs = zip(self._load_rows.tolist(), self._loaded, strict=True)
        return [(row, frontier) for row, frontier in pairs if self._rows.actor[row] == actor]

    def _otherwise(self, at: Ints, keys: Ints, nodes: Ints) -> npt.NDArray[np.int8]:
        """Of dots that were not applied: void, discarded here, loaded, not kept, or lacking."""
        known, actor = self._known, self.actor[at]
        row = self._dots.updates.rows[at]
        is_known = nodes >= 0
        node = np.maximum(nodes, 0)
        fine = np.zeros(len(at), dtype=np.bool_)
        if len(known):
            fine |= is_known & known.void[node]
            fine |= is_known & np.isin(actor * len(known) + node, self._gone)
            fine |= is_known & ~self.keeps(actor, known.object[node])
            fine |= is_known & self._undone(node, row)
        answer = np.where(fine, HELD, LACKING).astype(np.int8)
        load = np.searchsorted(self._load_rows, row) - 1
        loaded = load >= 0
        loaded[loaded] = self.actor[at[loaded]] == self._rows.actor[self._load_rows[load[loaded]]]
        author, counter = keys >> COUNTER_BITS, keys & ((1 << COUNTER_BITS) - 1)
        for i in np.flatnonzero(loaded & ~fine).tolist():
            if counter[i] <= self._loaded[load[i]].get(int(author[i]), 0):
                answer[i] = HELD
            elif not self._given[load[i]]:
                answer[i] = UNSURE
        return answer


def updates_discarded(dots: Dots) -> Flags:
    """Rows of updates that discard a dot."""
    found: Flags = dots.updates.mask("action", "discarded") & (dots.update_key >= 0)
    return found


def _holders(rows: Rows) -> dict[int, frozenset[int]]:
    """Ranks that hold an object, of objects which not all hold."""
    table = rows["objects"]
    codes = rows.codes("object", table, "object")
    return {
        code: frozenset(ranks)
        for code, ranks in zip(codes.tolist(), table.values("holders"), strict=True)
        if ranks is not None
    }


@numba.njit(cache=True)
def _held_before(
    session: Ints, node: Ints, holds: Flags, begin: Ints, asked: Ints, num_nodes: int
) -> Flags:
    """Per question whether an earlier row of its session holds the node; -1 is never held."""
    held = np.zeros(len(asked), dtype=np.bool_)
    since = np.full(num_nodes, -1, dtype=np.int64)
    for i in range(len(session)):
        for e in range(begin[i], begin[i + 1]):
            held[e] = asked[e] >= 0 and since[asked[e]] == session[i]
        if holds[i]:
            since[node[i]] = session[i]
    return held
