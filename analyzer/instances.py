"""Collective instances: which members entered and completed (comm_id, cseq), and which are void.

Kinds (design contract 4.4): n-to-n (every entry before every completion), 1-to-n from the root,
n-to-1 to the root.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analyzer.columns import NULL, Flags, Ints
from analyzer.rows import Rows
from analyzer.walks import Members, Walks

N_TO_N = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"})
ONE_TO_N = frozenset({"broadcast", "scatter"})
N_TO_ONE = frozenset({"reduce", "gather"})

_KIND = dict.fromkeys(N_TO_N, 0) | dict.fromkeys(ONE_TO_N, 1) | dict.fromkeys(N_TO_ONE, 2)


@dataclass(frozen=True)
class Unfinished:
    """An instance that somebody entered and not every member completed."""

    comm: int
    cseq: int
    kind: int
    """0 n-to-n, 1 1-to-n, 2 n-to-1, -1 unknown or not agreed."""
    entries: tuple[int, ...]
    """Indices in the collectives table."""
    waiting: Members
    completed: Members
    absent: Members
    void: bool


class Instances:
    """The collectives table by instance.

    ``order`` sorts the table's rows by (comm, cseq, actor); ``begin`` marks where instances start
    in that order, with the end appended.
    """

    def __init__(self, rows: Rows, walks: Walks) -> None:
        self._rows = rows
        self._walks = walks
        table = rows["collectives"]
        self.table = table
        self.comm = rows.codes("comm", table, "comm_id")
        self.cseq = table.ints("cseq")
        self.actor = rows.actor[table.rows]
        done = table.ints("done_seq")
        self.completed: Flags = (done != NULL) & (table.ints("completed") != 0)
        # Completion lies just before the row at done_seq, and always after the entry.
        after = np.where(done == NULL, 0, np.maximum(done, rows.seq[table.rows] + 1))
        self.done_row: Ints = np.where(self.completed, rows.rows_from(self.actor, after), -1)
        usable = (self.comm >= 0) & (self.cseq != NULL)
        order = np.lexsort((self.actor, self.cseq, self.comm))
        self.order: Ints = order[usable[order]]
        comm, cseq = self.comm[self.order], self.cseq[self.order]
        new = np.ones(len(self.order), dtype=np.bool_)
        new[1:] = (comm[1:] != comm[:-1]) | (cseq[1:] != cseq[:-1])
        self.begin: Ints = np.append(np.flatnonzero(new), len(self.order)).astype(np.int64)
        self.of: Ints = np.cumsum(new).astype(np.int64) - 1
        codes, words = table.words("op")
        kinds = np.array([_KIND.get(word, -1) for word in words] + [-1], dtype=np.int64)
        self.kind_of_row: Ints = kinds[codes]
        self.kind: Ints = self._instance_kinds()

    def __len__(self) -> int:
        return len(self.begin) - 1

    def _instance_kinds(self) -> Ints:
        """An instance's kind; -1 where its members do not agree on one."""
        if not len(self):
            return np.empty(0, dtype=np.int64)
        kinds = self.kind_of_row[self.order]
        low = np.minimum.reduceat(kinds, self.begin[:-1])
        high = np.maximum.reduceat(kinds, self.begin[:-1])
        return np.where(low == high, low, -1)

    def arrival(self) -> Ints:
        """Per row of the table: when the member was ready (device start if known, else entry)."""
        start, enter = self.table.ints("start_ns"), self.table.ints("enter_ns")
        wall = self._rows.wall[self.table.rows]
        return np.where(start != NULL, start, np.where(enter != NULL, enter, wall))

    @property
    def num_hubs(self) -> int:
        """Hub nodes used by ``edges``: one an instance."""
        return len(self)

    def edges(self) -> tuple[Ints, Ints]:
        """(source, target) nodes; the hub of instance i is node ``rows.n + i``."""
        entry = self.table.rows[self.order]
        done = self.done_row[self.order]
        actor = self.actor[self.order]
        kind = self.kind[self.of] if len(self.of) else self.of
        hub = self._rows.n + self.of
        all_to_all = kind == 0
        out = all_to_all & (done >= 0)
        root = self._roots()[self.of] if len(self.of) else self.of
        is_root = np.isin(kind, (1, 2)) & (root >= 0) & (self._rank_of(actor) == root)
        # 1-to-n and n-to-1 also meet in the hub: only the root leads in, or only it is led out.
        into = all_to_all | ((kind == 1) & is_root) | ((kind == 2) & (root >= 0) & ~is_root)
        out |= (done >= 0) & (((kind == 1) & (root >= 0) & ~is_root) | ((kind == 2) & is_root))
        # Nothing leads into a hub whose root was not recorded; then nothing may wait for it.
        fed = np.zeros(len(self) + 1, dtype=np.bool_)
        fed[self.of[into]] = True
        out &= fed[self.of]
        return np.concatenate([entry[into], hub[out]]), np.concatenate([hub[into], done[out]])

    def _roots(self) -> Ints:
        """Per instance: the global rank of its root; -1 where null or not agreed."""
        root = self.table.ints("root")[self.order]
        if not len(self):
            return np.empty(0, dtype=np.int64)
        low = np.minimum.reduceat(
            np.where(root == NULL, np.iinfo(np.int64).max, root), self.begin[:-1]
        )
        high = np.maximum.reduceat(root, self.begin[:-1])
        return np.where(low == high, low, -1)

    def _rank_of(self, actors: Ints) -> Ints:
        ranks = np.array(
            [a.rank for a in self._rows.actors[: self._rows.num_actors]], dtype=np.int64
        )
        return ranks[actors] if len(actors) else actors

    @cached_property
    def roots(self) -> Ints:
        """Per instance: the root's global rank, or -1."""
        return self._roots()

    @cached_property
    def members_of(self) -> dict[int, Members]:
        """Members of each communicator, from groups rows."""
        groups = self._rows["groups"]
        comm = self._rows.codes("comm", groups, "comm_id")
        found: dict[int, Members] = {}
        for code, row in zip(comm.tolist(), groups.dicts(), strict=True):
            if code not in found and row["members"]:
                found[code] = tuple(
                    self._rows.actor_code(m["rank"], m["incarnation"]) for m in row["members"]
                )
        return found

    def comm_name(self, comm: int) -> str:
        """A communicator for people: its label, else its id."""
        return self._labels.get(comm) or self._rows.word("comm", comm)

    @cached_property
    def _labels(self) -> dict[int, str]:
        groups = self._rows["groups"]
        comm = self._rows.codes("comm", groups, "comm_id")
        return {c: w for c, w in zip(comm.tolist(), groups.values("label"), strict=True) if w}

    @cached_property
    def unfinished(self) -> list[Unfinished]:
        """Instances that not every member completed, in order of (comm, cseq)."""
        if not len(self):
            return []
        first = self.begin[:-1]
        all_done = np.logical_and.reduceat(self.completed[self.order], first)
        # Members are sorted inside an instance, so repeats stand side by side.
        actor = self.actor[self.order]
        new = np.ones(len(actor), dtype=np.int64)
        new[1:] = (actor[1:] != actor[:-1]) | (self.of[1:] != self.of[:-1])
        entered = np.add.reduceat(new, first)
        comm = self.comm[self.order[first]]
        size = np.zeros(int(comm.max()) + 1, dtype=np.int64)
        for code, members in self.members_of.items():
            if code < len(size):
                size[code] = len(members)
        return [
            self._unfinished(
                at,
                self.order[self.begin[at] : self.begin[at + 1]],
                self.members_of.get(int(comm[at])),
            )
            for at in np.flatnonzero(~all_done | (entered < size[comm])).tolist()
        ]

    def _unfinished(self, at: int, index: Ints, members: Members | None) -> Unfinished:
        completed = {int(self.actor[i]) for i in index if self.completed[i]}
        entered = {int(self.actor[i]) for i in index}
        waiting = entered - completed
        absent = set(members or ()) - entered
        everyone = entered | absent
        left_open = everyone - completed
        closed = self._walks.closed
        void = any(a in closed for a in left_open) or any(self._walks.failed(a) for a in everyone)
        if not void and waiting:
            void = all(
                any(step.row > int(self.table.rows[i]) for step in self._walks.commits_of(a))
                for i in index
                if (a := int(self.actor[i])) in waiting
            )
        return Unfinished(
            comm=int(self.comm[index[0]]),
            cseq=int(self.cseq[index[0]]),
            kind=int(self.kind[at]),
            entries=tuple(index.tolist()),
            waiting=tuple(sorted(waiting)),
            completed=tuple(sorted(completed)),
            absent=tuple(sorted(absent)),
            void=void,
        )

    def open(self) -> Iterator[Unfinished]:
        """Instances that someone still waits in and that are not void."""
        return (u for u in self.unfinished if u.waiting and not u.void)
