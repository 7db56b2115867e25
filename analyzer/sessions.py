"""What one actor read of one object, in order: shared by the session rules S1 and S2.

A load or a received snapshot starts a session anew (design contract 4.4).
"""

from __future__ import annotations

import numpy as np

from analyzer.columns import NULL, Flags, Ints
from analyzer.history import History
from analyzer.rows import LEVELS


class Sessions:
    """The reads table with what the session rules need of it.

    Attributes:
        judged: reads that session guarantees hold for (not under EVENTUAL).
        session: per read, how often its actor had loaded a state before.
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
        frontier = dots.read_frontier
        begin = np.searchsorted(frontier.owner, np.arange(len(self.row) + 1))
        self._begin: list[int] = begin.tolist()
        self.has_frontier: Flags = frontier.given

    def sessions_at(self, row: Ints) -> Ints:
        """How many loads, of any actor, stand before each row; equal inside one session."""
        return np.searchsorted(self._loads, row).astype(np.int64)

    def frontier(self, index: int) -> dict[int, int]:
        """Author to counter of one read's frontier."""
        flat = self._history.dots.read_frontier
        span = slice(self._begin[index], self._begin[index + 1])
        found: dict[int, int] = {}
        for actor, counter in zip(
            flat.actor[span].tolist(), flat.counter[span].tolist(), strict=True
        ):
            found[actor] = max(found.get(actor, 0), counter)
        return found

    def by_frontier(self, index: int) -> bool:
        """True when the read is compared by frontier: a delta object, or only a frontier given."""
        if not self.has_frontier[index]:
            return False
        return int(self.object[index]) in self._history.dots.delta_objects or self.key[index] < 0

    def by_dot(self, index: int) -> bool:
        """True when the read is compared by the dot it saw (no dot: the initial value)."""
        return (not self.has_frontier[index] or self.key[index] >= 0) and int(
            self.object[index]
        ) not in self._history.dots.delta_objects

    def older(self, one: int, other: int) -> bool:
        """True when dot ``one`` is an older version than dot ``other``; -1 is the initial value."""
        if one == other or other < 0:
            return False
        if one < 0:
            return True
        dots = self._history.dots
        first, second = dots.issued_row(one), dots.issued_row(other)
        if first is None or second is None:
            return False
        versions = [
            int(dots.updates.ints("version")[self._history.rows.index_in_table[row]])
            for row in (first, second)
        ]
        if NULL not in versions:
            return versions[0] < versions[1]
        return self._history.happens_before(first, second)
