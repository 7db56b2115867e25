"""A trace that is still being written: what comes next is not here yet, and that is no evidence.

Without this a live run is full of operations that "never completed". Each actor gets a ``gaps`` row
behind its last one, in memory only, so that checks which rest on absence say unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cascade_runtime.vocabulary.events import Gaps
from cascade_runtime.vocabulary.ports import SourceNote
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from cascade_runtime.vocabulary.trace_meta import TraceMeta
from collector.schema.rows import events_to_table
from collector.trace.trace_folder import TraceFolder

QUIET_S = 30.0
"""A run that did not end and brought nothing for so long hangs or was lost: then absence counts."""

_KEY = ("rank", "incarnation", "seq", "wall_ns")


def is_growing(trace: TraceFolder, wall_s: float) -> bool:
    """True for a run in a collector's data folder that has not ended and got rows lately.

    Args:
        trace: the run's folder.
        wall_s: the time now, as in ``time.time``.
    """
    if trace.meta.ended_ns is not None:
        return False
    written = [f.stat().st_mtime for f in trace.path.glob("events/*/tail.parquet")]
    return bool(written) and wall_s - max(written) < QUIET_S


class GrowingTrace:
    """A ``TraceSource`` over a trace folder that a collector writes meanwhile.

    Args:
        trace: the folder as it is now.
    """

    def __init__(self, trace: TraceFolder) -> None:
        self._trace = trace
        self.meta: TraceMeta = trace.meta
        self.inputs: list[str] = trace.inputs
        self.notes: list[SourceNote] = trace.notes

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """See TraceFolder.table; ``gaps`` has a row more for each actor."""
        rows = self._trace.table(name, columns)
        if name != "gaps":
            return rows
        return pa.concat_tables([rows, self._tails().select(rows.column_names)])

    def _tails(self) -> pa.Table:
        parts = [self._trace.table(name, _KEY) for name in EVENT_TABLES]
        rows = pa.concat_tables(parts).sort_by([(name, "ascending") for name in _KEY])
        rank, incarnation, seq, wall = (rows[name].to_numpy() for name in _KEY)
        ends = np.flatnonzero((np.diff(rank) != 0) | (np.diff(incarnation) != 0))
        last = [*ends.tolist(), len(rank) - 1] if len(rank) else []
        return events_to_table(
            "gaps",
            [
                self._tail(int(rank[i]), int(incarnation[i]), int(seq[i]), int(wall[i]))
                for i in last
            ],
        )

    def _tail(self, rank: int, incarnation: int, seq: int, wall_ns: int) -> Gaps:
        return Gaps(
            self.meta.run_id, rank, incarnation, seq + 1, "world", None, None, None, wall_ns, None,
            first_seq=seq + 1, last_seq=None, num_events=None, tables=None, reason="not_supplied",
        )  # fmt: skip
