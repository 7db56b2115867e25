"""The newest rows of a run by their place, for whoever keeps what was read and goes on from there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import pyarrow as pa

from collector.hot.run import Run
from collector.hot.snapshot import Snapshot


class _Parts(NamedTuple):
    """A table's rows in memory, oldest first.

    Attributes:
        rows: of each part.
        begins: the place of each part's first row, and of the row that will come next.
    """

    rows: list[pa.Table]
    begins: list[int]


class HotNews:
    """See collector.storage.News: what is in memory, as it was after one commit.

    Several parts of a picture ask for the same places: they are counted once.
    """

    def __init__(self, snapshot: Snapshot, run: Run) -> None:
        self._snapshot = snapshot
        self._run = run
        self._parts: dict[str, _Parts] = {}

    @cached_property
    def place(self) -> dict[str, int]:
        """See News."""
        names = self._snapshot.num_sealed.keys() | self._snapshot.tables.keys()
        return {name: self._parts_of(name).begins[-1] for name in names}

    def after(self, place: Mapping[str, int], table: str) -> list[pa.Table] | None:
        """See News."""
        at = place.get(table, 0)
        rows, begins = self._parts_of(table)
        if at < begins[0]:
            return None
        first = bisect_right(begins, at) - 1
        found = rows[first:]
        if found and at > begins[first]:
            found[0] = found[0].slice(at - begins[first])
        return found

    def open(self) -> pa.Table:
        """See News."""
        return self._run.rows.open_rows.table(self._snapshot.open)

    def _parts_of(self, table: str) -> _Parts:
        known = self._parts.get(table)
        if known is None:
            left = self._snapshot.left.get(table, [])
            num_sealed = self._snapshot.num_sealed.get(table, 0)
            first = num_sealed - sum(rows.num_rows for rows in left)
            rows = [*left, *self._snapshot.tables.get(table, ())]
            begins = list(accumulate((one.num_rows for one in rows), initial=first))
            known = self._parts[table] = _Parts(rows, begins)
        return known
