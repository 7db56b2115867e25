"""The newest rows of a run by their place, for whoever keeps what was read and goes on from there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from collector.hot.hot_rows import Snapshot
from collector.hot.run import Run


class HotNews(NamedTuple):
    """See collector.storage.News: what is in memory, as it was after one commit."""

    snapshot: Snapshot
    run: Run

    @property
    def place(self) -> dict[str, int]:
        """See News."""
        sealed, tables = self.snapshot.num_sealed, self.snapshot.tables
        names = sealed.keys() | tables.keys()
        return {
            name: sealed.get(name, 0) + sum(rows.num_rows for rows in tables.get(name, ()))
            for name in names
        }

    def after(self, place: Mapping[str, int], table: str) -> list[pa.Table] | None:
        """See News."""
        left = self.snapshot.left.get(table, [])
        num_left = sum(rows.num_rows for rows in left)
        skip = place.get(table, 0) - self.snapshot.num_sealed.get(table, 0) + num_left
        if skip < 0:
            return None
        found = []
        for rows in (*left, *self.snapshot.tables.get(table, ())):
            if skip < rows.num_rows:
                found.append(rows.slice(skip))
            skip = max(0, skip - rows.num_rows)
        return found

    def open(self) -> pa.Table:
        """See News."""
        return self.run.rows.open_rows.table(self.snapshot.open)
