"""A run in a collector's store; rows may still come."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa

from cascade_runtime.vocabulary.report import Report
from cascade_runtime.vocabulary.trace_meta import TraceMeta
from collector.storage._interface import EventStore
from dashboard.story.report_file import ReportFile
from dashboard.story.source import MAX_PLAN

JUDGED = "judged.json"
"""See dashboard.live.judged."""

LIVE_S = 3600.0
"""A run that did not end and brought nothing for so long is not waited for any more."""


class LiveRun:
    """A ``RunSource`` over an event store; the live analysis writes its results beside it.

    Args:
        store: where the run's rows are; whoever opened it closes it.
        run_id: the run.

    Raises:
        NoSuchRun: there is none of that id.
    """

    is_live = True

    def __init__(self, store: EventStore, run_id: str) -> None:
        self._store = store
        self.run_id = run_id
        self._root = Path(store.run(run_id).path)
        self._file = ReportFile(self._root)

    def meta(self) -> TraceMeta:
        """See RunSource."""
        return self._store.meta(self.run_id)

    def plan(self) -> list[str]:
        """See RunSource."""
        return list(self.meta().story or [])[:MAX_PLAN]

    def version(self) -> str:
        """See RunSource."""
        run = self._store.run(self.run_id)
        inode, mtime_ns = self._file.stamp()
        # A completion changes a row without adding one: when something came is part of it.
        return f"{run.num_rows}-{run.last_seen_ns}-{run.ended_ns or 0}-{inode}.{mtime_ns}"

    def num_rows(self) -> int:
        """See RunSource."""
        return self._store.run(self.run_id).num_rows

    def is_open(self) -> bool:
        """See RunSource."""
        run = self._store.run(self.run_id)
        return run.ended_ns is None and time.time() - run.last_seen_ns / 1e9 < LIVE_S

    def last_came_ns(self) -> int | None:
        """See RunSource."""
        return self._store.run(self.run_id).last_seen_ns

    def query(self, sql: str) -> pa.Table:
        """See RunSource."""
        return self._store.query(sql, self.run_id)

    def query_whole(self, sql: str) -> pa.Table:
        """See RunSource; rows come, so nothing is kept."""
        return self.query(sql)

    def report(self) -> Report | None:
        """See RunSource."""
        return self._file.read()

    def judged_ns(self) -> int | None:
        """See RunSource."""
        return self._file.stamp()[1] or None

    def is_judged_whole(self) -> bool:
        """See RunSource; the live analysis leaves a mark beside such a report."""
        return self.report() is not None and (self._root / "results" / JUDGED).exists()

    def problem(self) -> str | None:
        """See RunSource; the live analysis tells it to whoever runs the collector."""
        return None

    def results(self, name: str) -> pa.Table | None:
        """See RunSource."""
        return None if self.report() is None else self.query(f"FROM {name}")

    def close(self) -> None:
        """See RunSource."""
