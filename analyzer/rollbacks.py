"""Loads that turn updates void: what was issued, is not in the checkpoint, and is gone with it.

A load of scope group takes back what each author that loads the checkpoint had issued before, beyond
its frontier. A load of scope self takes back what the actor's earlier incarnations had issued beyond
it, where nobody else had it by then. Source: design contract 4.4, A2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analyzer.columns import Flags, Ints
from analyzer.dots import COUNTER_BITS, Dots, flat_dots
from analyzer.happens_before import HappensBefore
from analyzer.known_dots import KnownDots
from analyzer.rows import Rows

_COUNTERS = (1 << COUNTER_BITS) - 1


@dataclass(frozen=True)
class Load:
    """A loaded row that has a frontier."""

    row: int
    actor: int
    checkpoint: str
    scope: str
    frontier: dict[int, int]


class Rollbacks:
    """What loads made void."""

    def __init__(self, rows: Rows, dots: Dots, known: KnownDots) -> None:
        self._rows = rows
        self._dots = dots
        self._known = known
        self.loads = _loads(rows)

    @cached_property
    def of_self(self) -> list[tuple[Load, Ints]]:
        """Loads of scope self, each with the nodes beyond it of earlier incarnations, sorted.

        Applied rows elsewhere are still to be looked at (``gone_with``).
        """
        found = [(x, self._beyond(x, own=False)) for x in self.loads if x.scope == "self"]
        return [(load, nodes) for load, nodes in found if len(nodes)]

    @cached_property
    def of_group(self) -> list[tuple[list[Load], Ints]]:
        """Per checkpoint that its group loaded: the loads, and the nodes that they took back, sorted."""
        groups: dict[str, list[Load]] = {}
        for load in self.loads:
            if load.scope == "group":
                groups.setdefault(load.checkpoint, []).append(load)
        found = [
            (loads, np.unique(np.concatenate([self._beyond(x, own=True) for x in loads])))
            for loads in groups.values()
        ]
        return [(loads, nodes) for loads, nodes in found if len(nodes)]

    def _beyond(self, load: Load, own: bool) -> Ints:
        """Nodes of the loader's rank beyond the frontier; its own (``own``) as far as issued before."""
        known, rows = self._known, self._rows
        named = rows.actors[load.actor]
        parts = [np.empty(0, dtype=np.int64)]
        for author, span in self._spans.items():
            other = rows.actors[author]
            if other.rank != named.rank or other.incarnation > named.incarnation:
                continue
            if author == load.actor and not own:
                continue
            nodes = np.arange(span.start, span.stop)
            nodes = nodes[known.key[nodes] & _COUNTERS > load.frontier.get(author, 0)]
            if author == load.actor:
                issued = self._dots.issued_index(known.key[nodes])
                at = self._dots.updates.rows[np.maximum(issued, 0)]
                nodes = nodes[(issued >= 0) & (at < load.row)]
            parts.append(nodes)
        return np.concatenate(parts)

    @cached_property
    def _spans(self) -> dict[int, slice]:
        """Per author where its nodes lie."""
        authors, first = np.unique(self._known.author, return_index=True)
        ends = np.append(first, len(self._known))[1:].tolist()
        return {
            a: slice(i, j) for a, i, j in zip(authors.tolist(), first.tolist(), ends, strict=True)
        }

    def gone_with(self, load: Load, nodes: Ints, hb: HappensBefore) -> Ints:
        """Of scope self: those which nobody else had applied by then."""
        dots, known = self._dots, self._known
        actor = self._rows.actor[dots.updates.rows]
        outside = np.flatnonzero(
            dots.applied
            & np.isin(known.of_update, nodes)
            & (actor != known.author[known.of_update])
        )
        at = dots.updates.rows[outside]
        later = hb.before_many(np.full(len(at), load.row), at).astype(np.bool_)
        return np.setdiff1d(nodes, known.of_update[outside[~later]])

    def undone(self, nodes: Ints, at: Ints, hb: HappensBefore) -> Flags:
        """True where a load of the group's, before that row, had taken the dot back."""
        found = np.zeros(len(nodes), dtype=np.bool_)
        for number, (_, gone) in enumerate(self.of_group):
            asked = np.flatnonzero(np.isin(nodes, gone))
            found[asked] |= self.after(number, at[asked], hb)
        return found

    def after(self, number: int, at: Ints, hb: HappensBefore) -> Flags:
        """True where a load of this entry of ``of_group`` happens-before the row."""
        found = np.zeros(len(at), dtype=np.bool_)
        for load in self.of_group[number][0]:
            found |= hb.before_many(np.full(len(at), load.row), at).astype(np.bool_)
        return found


def _loads(rows: Rows) -> list[Load]:
    table = rows["checkpoints"]
    flat = flat_dots(rows, table, "frontier")
    frontiers: dict[int, dict[int, int]] = {}
    for owner, author, counter in zip(
        flat.owner.tolist(), flat.actor.tolist(), flat.counter.tolist(), strict=True
    ):
        one = frontiers.setdefault(owner, {})
        one[author] = max(one.get(author, 0), counter)
    found = []
    for i, row in enumerate(table.dicts()):
        if row["action"] == "loaded" and row["frontier"] is not None and row["scope"]:
            at = int(table.rows[i])
            found.append(
                Load(
                    row=at,
                    actor=int(rows.actor[at]),
                    checkpoint=row["checkpoint_id"] or f"unnamed {at}",
                    scope=row["scope"],
                    frontier=frontiers.get(i, {}),
                )
            )
    return found
