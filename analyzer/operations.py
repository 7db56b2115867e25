"""Operations: collectives, updates and reads, the rows that act under an epoch and a regime."""

from __future__ import annotations

import numpy as np

from analyzer.columns import NULL, Flags, Ints
from analyzer.rows import TABLE_NAMES, Rows

OPERATION_TABLES = ("collectives", "updates", "reads")


class Operations:
    """All operations that carry an epoch, in row order.

    Attributes:
        row, actor, group, epoch, regime: one entry an operation.
        follows: True for updates that only apply or discard what was issued elsewhere or before.
    """

    def __init__(self, rows: Rows) -> None:
        tables = [TABLE_NAMES.index(name) for name in OPERATION_TABLES]
        at = np.flatnonzero(np.isin(rows.table, tables) & (rows.epoch != NULL))
        self.row: Ints = at
        self.actor: Ints = rows.actor[at]
        self.group: Ints = rows.group[at]
        self.epoch: Ints = rows.epoch[at]
        self.regime: Ints = rows.regime[at]
        updates = rows["updates"]
        passive = updates.rows[~updates.mask("action", "issued")]
        self.follows: Flags = np.isin(at, passive, assume_unique=True)

    def __len__(self) -> int:
        return len(self.row)

    def of(self, actor: int) -> slice:
        """Where the actor's operations lie: rows are in order of actors."""
        low, high = np.searchsorted(self.actor, [actor, actor + 1])
        return slice(int(low), int(high))
