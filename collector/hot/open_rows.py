"""The open collectives as Arrow, made anew only as far as they changed."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cascade_runtime.vocabulary.events import Collectives
from collector.schema.arrow import empty_table
from collector.schema.rows import events_to_table


class OpenRows:
    """Keeps the table of the last call. Collectives that hang stay open, so that most of it is kept.

    Structs cost 10 us each to convert, and every question over collectives needs them all.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: list[Collectives] = []
        self._table = empty_table("collectives")

    def table(self, rows: Sequence[Collectives]) -> pa.Table:
        """The rows as Arrow, in an order of its own. A row that changes is another object."""
        with self._lock:
            wanted = {id(row) for row in rows}
            kept = [id(row) in wanted for row in self._rows]
            known = {id(row) for row in self._rows}
            fresh = [row for row in rows if id(row) not in known]
            if fresh or not all(kept):
                old = self._table.filter(pa.array(np.array(kept, np.bool_)))
                self._rows = [row for row, keep in zip(self._rows, kept, strict=True) if keep]
                self._rows += fresh
                new = events_to_table("collectives", fresh)
                self._table = pa.concat_tables([old, new]).combine_chunks()
            return self._table
