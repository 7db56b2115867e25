"""Every row of a trace in one global order, as int columns.

The order is (rank, incarnation, seq); a row's place in it is its number, by which every other part
of the analyzer names it. Exact duplicates are dropped and counted here.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from analyzer.columns import NULL, Columns, Flags, Ints, ints_of
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.ports import TraceSource
from cascade_runtime.vocabulary.regime import Regime
from cascade_runtime.vocabulary.schema import EVENT_TABLES

TABLE_NAMES: tuple[str, ...] = tuple(EVENT_TABLES)
"""Event tables; a row's ``table`` is an index into this."""

REGIMES: dict[int, str] = {regime.level: regime.value for regime in Regime}
"""Regime level (1 to 3) to word; level 0 is "no regime on this row"."""

LEVELS: dict[str | None, int] = {None: 0} | {word: level for level, word in REGIMES.items()}

_FEW_ACTORS = 1 << 16
_SEQ_BITS = 43
_SEQ_MAX = (1 << _SEQ_BITS) - 1


class Conflict(NamedTuple):
    """Two different rows under one (rank, incarnation, seq)."""

    rank: int
    incarnation: int
    seq: int


class Rows:
    """The trace's rows: one numpy array a leading column, and each table's own columns.

    Attributes:
        actors: every actor named anywhere; the first ``num_actors`` of them, in (rank, incarnation)
            order, are those with rows.
        start: row numbers where each actor's rows begin, and the end.
        num_duplicates: exact duplicates that were dropped.
        conflicts: rows that share a number and differ (one of them is kept).
    """

    def __init__(self, source: TraceSource) -> None:
        self.meta = source.meta
        self.recorded = frozenset(source.meta.recorded_tables)
        self._words: dict[str, dict[str, int]] = {}
        tables = [source.table(name) for name in TABLE_NAMES]
        # A source learns what to note while its tables are read.
        self.notes = list(source.notes)
        kept = self._order(tables)
        self._lead(tables, kept)

    # --- building ------------------------------------------------------------------------

    def _order(self, tables: list[Any]) -> tuple[Ints, Ints]:
        """(table, index in table) of each kept row, in global order."""
        sizes = [t.num_rows for t in tables]
        table = np.repeat(np.arange(len(tables), dtype=np.int64), sizes)
        index = np.concatenate([np.arange(size, dtype=np.int64) for size in sizes])
        rank, incarnation, seq = (
            np.concatenate([ints_of(t.column(c)) for t in tables])
            for c in ("rank", "incarnation", "seq")
        )
        order = _sorted(rank, incarnation, seq, table)
        rank, incarnation, seq = rank[order], incarnation[order], seq[order]
        same = (rank[1:] == rank[:-1]) & (incarnation[1:] == incarnation[:-1])
        same &= seq[1:] == seq[:-1]
        self.num_duplicates = 0
        self.conflicts: list[Conflict] = []
        table, index = table[order], index[order]
        if same.any():
            keep = self._settle_duplicates(tables, table, index, same)
            rank, incarnation, seq = rank[keep], incarnation[keep], seq[keep]
            table, index = table[keep], index[keep]
        self.n = len(rank)
        self.seq: Ints = seq
        self._name_actors(rank, incarnation)
        return table, index

    def _settle_duplicates(self, tables: list[Any], table: Ints, index: Ints, same: Flags) -> Flags:
        """Which rows to keep: one of each number, the same whatever order the files came in.

        ``same[i]``: row i + 1 has the number of row i.
        """
        keep = np.ones(len(table), dtype=np.bool_)
        edges = np.diff(np.concatenate([[0], same.astype(np.int8), [0]]))
        for first, last in zip(
            np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True
        ):
            span = range(int(first), int(last) + 1)
            dicts = [tables[table[i]].slice(int(index[i]), 1).to_pylist()[0] for i in span]
            texts = [f"{table[i]:02d} {row!r}" for i, row in zip(span, dicts, strict=True)]
            best = texts.index(min(texts))
            distinct = len(set(texts))
            self.num_duplicates += len(texts) - distinct
            if distinct > 1:
                row = dicts[best]
                self.conflicts.append(Conflict(row["rank"], row["incarnation"], row["seq"]))
            keep[span.start : span.stop] = False
            keep[span.start + best] = True
        return keep

    def _name_actors(self, rank: Ints, incarnation: Ints) -> None:
        change = np.ones(self.n, dtype=np.bool_)
        change[1:] = (rank[1:] != rank[:-1]) | (incarnation[1:] != incarnation[:-1])
        begins = np.flatnonzero(change)
        self.actors = [Actor(int(rank[i]), int(incarnation[i])) for i in begins]
        self.num_actors = len(self.actors)
        self._codes = {actor: code for code, actor in enumerate(self.actors)}
        self.start: Ints = np.append(begins, self.n).astype(np.int64)
        self.actor: Ints = np.cumsum(change).astype(np.int64) - 1
        self._place = (self.actor << _SEQ_BITS) | np.clip(self.seq, 0, _SEQ_MAX)

    def _lead(self, tables: list[Any], kept: tuple[Ints, Ints]) -> None:
        self.table, index = kept
        self.epoch = np.empty(self.n, dtype=np.int64)
        self.step, self.wall, self.mono, self.group, self.regime = (
            np.empty(self.n, dtype=np.int64) for _ in range(5)
        )
        self.index_in_table = np.empty(self.n, dtype=np.int64)
        self._tables: dict[str, Columns] = {}
        for number, name in enumerate(TABLE_NAMES):
            rows = np.flatnonzero(self.table == number)
            take = index[rows]
            arrow = tables[number]
            if len(take) != arrow.num_rows or (np.diff(take) != 1).any():
                arrow = arrow.take(take)
            columns = Columns(name, arrow, rows)
            self._tables[name] = columns
            self.index_in_table[rows] = np.arange(len(rows))
            for target, column in (
                (self.epoch, "epoch"),
                (self.step, "step"),
                (self.wall, "wall_ns"),
                (self.mono, "mono_ns"),
            ):
                target[rows] = columns.ints(column)
            self.group[rows] = self.codes("group", columns, "group_id")
            self.regime[rows] = _levels(columns)

    # --- asking --------------------------------------------------------------------------

    def __getitem__(self, table: str) -> Columns:
        """The columns of one event table."""
        return self._tables[table]

    def codes(self, domain: str, columns: Columns, column: str) -> Ints:
        """A string column in codes that all tables share within ``domain``; null is -1."""
        local, words = columns.words(column)
        known = self._words.setdefault(domain, {})
        shared = np.array([known.setdefault(w, len(known)) for w in words] + [-1], dtype=np.int64)
        return shared[local]

    def code(self, domain: str, word: str) -> int:
        """The shared code of one word (given one if it is new)."""
        known = self._words.setdefault(domain, {})
        return known.setdefault(word, len(known))

    def word(self, domain: str, code: int) -> str:
        """The word of a shared code."""
        return list(self._words[domain])[code]

    def actor_code(self, rank: int, incarnation: int | None) -> int:
        """The code of an actor, also of one that is only named."""
        actor = Actor(rank, incarnation or 0)
        if actor not in self._codes:
            self._codes[actor] = len(self.actors)
            self.actors.append(actor)
        return self._codes[actor]

    def actor_codes(self, rank: Ints, incarnation: Ints) -> Ints:
        """Actor codes of (rank, incarnation) columns; a null rank is -1, a null incarnation 0."""
        if len(rank) == 0:
            return np.empty(0, dtype=np.int64)
        known = rank != NULL
        again = np.where(incarnation == NULL, 0, incarnation)
        high, most = int(rank.max(initial=0)), int(again.max(initial=0))
        small = int(rank[known].min(initial=0)) >= 0 and int(again.min(initial=0)) >= 0
        if small and (high + 1) * (most + 1) <= max(_FEW_ACTORS, len(rank)):
            # So few that a table of all is cheaper than sorting.
            packed = np.where(known, rank * (most + 1) + again, 0)
            there = np.zeros((high + 1) * (most + 1), dtype=np.bool_)
            there[packed[known]] = True
            lookup = np.full(len(there), -1, dtype=np.int64)
            for place in np.flatnonzero(there).tolist():
                lookup[place] = self.actor_code(place // (most + 1), place % (most + 1))
            return np.where(known, lookup[packed], -1).astype(np.int64)
        packed = np.where(known, (rank << 32) | again, -1)
        unique, inverse = np.unique(packed, return_inverse=True)
        codes = [
            -1 if p < 0 else self.actor_code(int(p) >> 32, int(p) & 0xFFFFFFFF) for p in unique
        ]
        return np.array(codes, dtype=np.int64)[inverse]

    def has_rows(self, actor: int) -> bool:
        """True when the actor left rows (and is not only named by others)."""
        return actor < self.num_actors

    def first_row(self, actor: int) -> int:
        """Number of the actor's first row."""
        return int(self.start[actor])

    def last_row(self, actor: int) -> int:
        """Number of the actor's last row."""
        return int(self.start[actor + 1]) - 1

    def row_at(self, actor: int, seq: int) -> int | None:
        """The row of (actor, seq), or None when it is not in the trace."""
        if not self.has_rows(actor) or not 0 <= seq <= _SEQ_MAX:
            return None
        at = int(np.searchsorted(self._place, (actor << _SEQ_BITS) | seq))
        found = at < self.n and self.actor[at] == actor and self.seq[at] == seq
        return at if found else None

    def rows_from(self, actors: Ints, seqs: Ints) -> Ints:
        """Per (actor, seq): the actor's first row at or after seq; -1 when there is none."""
        places = (actors << _SEQ_BITS) | np.clip(seqs, 0, _SEQ_MAX)
        at = np.searchsorted(self._place, places)
        inside = at < self.start[actors + 1] if len(actors) else np.empty(0, dtype=np.bool_)
        return np.where(inside, at, -1).astype(np.int64)

    def table_of(self, row: int) -> str:
        """Name of the row's table."""
        return TABLE_NAMES[int(self.table[row])]

    def content(self, row: int) -> dict[str, Any]:
        """The row as a dict of Python values, leading columns included."""
        return self[self.table_of(row)].row(int(self.index_in_table[row]))

    def where(self, row: int) -> tuple[int, int, int]:
        """(rank, incarnation, seq) of a row."""
        actor = self.actors[int(self.actor[row])]
        return actor.rank, actor.incarnation, int(self.seq[row])


def _sorted(rank: Ints, incarnation: Ints, seq: Ints, table: Ints) -> Ints:
    """The order by (rank, incarnation, seq, table)."""
    columns = (rank, incarnation, seq)
    sizes = [int(c.max(initial=0)) + 1 for c in columns]
    fits = all(int(c.min(initial=0)) >= 0 for c in columns) and math.prod(sizes) < 2**63
    if not fits:
        return np.lexsort((table, seq, incarnation, rank))
    # Tables come one after the other, most of them in order: a stable sort merges such runs.
    return np.argsort((rank * sizes[1] + incarnation) * sizes[2] + seq, kind="stable")


def _levels(columns: Columns) -> Ints:
    codes, words = columns.words("regime")
    levels = np.array([LEVELS.get(word, 0) for word in words] + [0], dtype=np.int64)
    return levels[codes]
