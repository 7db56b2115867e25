"""What one actor read of one object, in order: shared by the session rules S1 and S2.

A load or a received snapshot starts a session anew (design contract 4.4).
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from analyzer.clock_pass import Table
from analyzer.columns import NULL, Flags, Ints
from analyzer.history import History
from analyzer.rows import LEVELS
from analyzer.running import groups_of


class Versions(NamedTuple):
    """Distinct dots that reads saw or actors issued, as ``session_pass.older`` compares them."""

    key: Ints
    """Sorted dot keys."""
    issued: Ints
    version: Ints
    actor: Ints
    clock: Ints
    table: Table

    @property
    def facts(self) -> tuple[Ints, Ints, Ints, Ints, Table]:
        """All but the keys, in the order in which the passes take them."""
        return self.issued, self.version, self.actor, self.clock, self.table

    def place(self, keys: Ints) -> Ints:
        """Index of each key; -1 for the initial value. All keys must be among ``key``."""
        return np.where(keys < 0, -1, np.searchsorted(self.key, keys)).astype(np.int64)


class Sessions:
    """The reads table with what the session rules need of it.

    Attributes:
        judged: reads that session guarantees hold for (not under EVENTUAL).
        session: per read, how often its actor had loaded a state before.
        by_frontier: reads compared by frontier: of a delta object, or with only a frontier given.
        by_dot: reads compared by the dot that they saw (no dot: the initial value).
    """

    def __init__(self, history: History) -> None:
        rows, dots = history.rows, history.dots
        self._history = history
        self.row: Ints = dots.reads.rows
        self.actor: Ints = rows.actor[self.row]
        self.object: Ints = dots.read_object
        self.version: Ints = dots.reads.ints("version")
        self.key: Ints = dots.read_key
        self.judged: Flags = rows.regime[self.row] != LEVELS["EVENTUAL"]
        checkpoints = rows["checkpoints"]
        self._loads: Ints = checkpoints.rows[checkpoints.mask("action", "loaded", "received")]
        self.session: Ints = self.sessions_at(self.row)
        given = dots.read_frontier.given
        delta = np.isin(self.object, list(dots.delta_objects))
        self.by_frontier: Flags = given & (delta | (self.key < 0))
        self.by_dot: Flags = (~given | (self.key >= 0)) & ~delta

    def sessions_at(self, row: Ints) -> Ints:
        """How many loads, of any actor, stand before each row; equal inside one session."""
        return np.searchsorted(self._loads, row).astype(np.int64)

    def grouped(self, reads: Ints) -> tuple[Ints, Ints]:
        """(the reads group by group, in order inside each; the group of each)."""
        group = groups_of(self.actor[reads], self.object[reads], self.session[reads])
        order = np.lexsort((self.row[reads], group))
        return reads[order], group[order]

    def entries(self, reads: Ints) -> tuple[Ints, Ints]:
        """(where the frontier's entries of each read begin, and the end; indices of the entries)."""
        owner = self._history.dots.read_frontier.owner
        low, high = (np.searchsorted(owner, reads, side=side) for side in ("left", "right"))
        begin = np.concatenate([[0], np.cumsum(high - low)]).astype(np.int64)
        within = np.arange(begin[-1]) - np.repeat(begin[:-1], high - low)
        return begin, (np.repeat(low, high - low) + within).astype(np.int64)

    @cached_property
    def versions(self) -> Versions:
        """Dots that reads without a version saw, and all that were issued."""
        history, dots = self._history, self._history.dots
        seen = self.key[(self.version == NULL) & (self.key >= 0)]
        key = np.unique(np.concatenate([seen, dots.update_key[dots.issued]]))
        index = dots.issued_index(key)
        known = index >= 0
        issued = np.full(len(key), -1, dtype=np.int64)
        version = np.full(len(key), NULL, dtype=np.int64)
        issued[known] = dots.updates.rows[index[known]]
        version[known] = dots.updates.ints("version")[index[known]]
        return Versions(key, issued, version, history.rows.actor, *history.hb.clocks)
