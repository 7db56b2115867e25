"""A run in a collector's store; rows may still come."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pyarrow as pa

from cascade_runtime.vocabulary.report import Report
from cascade_runtime.vocabulary.trace_meta import TraceMeta
from collector.storage._interface import EventStore, News
from dashboard.live.judged import LIVE_S, has_mark, signature_of, was_judged
from dashboard.story.report_file import ReportFile
from dashboard.story.source import MAX_PLAN
from dashboard.tiles.background import is_background

MAX_AGE_S = 0.5
"""A page's question may be answered as of so long ago, but not as of before the story on that page."""


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
        self._root = Path(store.run(run_id).path).resolve()
        self._whole: str | None = None
        self._news_s = float("-inf")
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
        if is_background():
            return self._store.query(sql, self.run_id, background=True)
        age_s = min(MAX_AGE_S, time.monotonic() - self._news_s)
        return self._store.query(sql, self.run_id, max_age_s=age_s)

    def query_whole(self, sql: str) -> pa.Table:
        """See RunSource; rows come, so nothing is kept."""
        return self._store.query(sql, self.run_id, background=is_background())

    def query_at(self, sql: str) -> tuple[pa.Table, News]:
        """See RunSource."""
        return self._store.query_at(sql, self.run_id, background=is_background())

    def question(self) -> AbstractContextManager[None]:
        """See RunSource; nothing gives way to what is asked in the background."""
        return nullcontext() if is_background() else self._store.question()

    def news(self) -> News:
        """See RunSource."""
        began_s = time.monotonic()
        news = self._store.news(self.run_id)
        self._news_s = began_s
        return news

    def report(self) -> Report | None:
        """See RunSource."""
        return self._file.read()

    def judged_ns(self) -> int | None:
        """See RunSource."""
        return self._file.stamp()[1] or None

    def marks(self) -> dict[tuple[int, int], int]:
        """See RunSource."""
        return {(m.rank, m.incarnation): m.seq for m in self._store.marks(self.run_id)}

    def is_judged_whole(self) -> bool:
        """See RunSource; the live analysis leaves a mark beside such a report.

        A run that fell silent is judged as a whole too, and rows may come after that: the mark counts
        for the very files that it names, and only while every row is in a file.
        """
        version = self.version()
        if self._whole == version:  # files may be merged meanwhile; rows are as they were
            return True
        if self.report() is None or not has_mark(self._root):
            return False
        if not self._store.is_published(self.run_id):
            return False
        if not was_judged(self._root, signature_of(self._root)) or version != self.version():
            return False
        self._whole = version
        return True

    def problem(self) -> str | None:
        """See RunSource; the live analysis tells it to whoever runs the collector."""
        return None

    def results(self, name: str) -> pa.Table | None:
        """See RunSource."""
        return None if self.report() is None else self.query(f"FROM {name}")

    def close(self) -> None:
        """See RunSource."""
