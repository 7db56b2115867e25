"""When to look at a run's rows again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from cascade_runtime.vocabulary.schema import EVENT_TABLES
from dashboard.story.activity import Activity, fitting_bucket, look_at
from dashboard.story.background_look import RETRY_S, SYNC_ROWS, BackgroundLook
from dashboard.story.small_rows import SmallRows
from dashboard.story.source import RunSource

GROW_SHARE = 5
FULL_SHARE = 50
"""Pauses between two looks, in what one takes: at what is new, at everything."""

MIN_PAUSE_S = 0.25
REST_S = 2.0
"""After a look at everything: so long until one at what quick looks left out, when nothing comes."""

LARGE_PAUSE_S = 2.0
"""Between two looks at a run of more than SYNC_ROWS."""

EVERY_TABLE_S = 5.0
"""Tables without rows are looked at so often: each costs, and it is seldom that one gets its first."""


class ActivityKeeper:
    """Keeps one run's activity.

    Args:
        source: the run.
        mono_s: the clock.
    """

    def __init__(self, source: RunSource, mono_s: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._mono_s = mono_s
        self._known: Activity | None = None
        self._version: str | None = None
        self._partly: str | None = None
        """The version of the last look, which may have left out old rows and tables without any."""
        self._grow_at_s = self._full_at_s = self._rest_at_s = 0.0
        self._tables_at_s = 0.0
        self._counts: dict[str, int] = {}
        self._began_s = 0.0
        self._background = BackgroundLook("cascade-activity", f"the rows of run {source.run_id}")

    def building(self) -> dict[str, Any] | None:
        """What a person is told while the first look is being taken."""
        if self._known is not None or not self._background.is_going_on:
            return None
        # How long it takes is not known before it ended once; a bar that only nears its end is honest.
        waited_s = self._mono_s() - self._began_s
        return {"share": round(waited_s / (waited_s + 5.0), 2), "what": "reading every row's time"}

    @property
    def generation(self) -> int:
        """Grows when rows were looked at in the background."""
        return self._background.generation

    def is_of(self, version: str) -> bool:
        """Whether all that is known is of this version, or of a run whose rows do not change."""
        return version == self._version or (not self._source.is_live and self._known is not None)

    def counts(self, version: str) -> dict[str, int] | None:
        """Rows of each table, when they were counted at this version; see ``is_of``."""
        return self._counts if version == self._partly else None

    def as_of(self, version: str, num_rows: int, rows: SmallRows) -> Activity | None:
        """The activity of this version, or of one shortly before; None while it is being read."""
        if version == self._version and self._known is not None:
            return self._known
        if not self._source.is_live and self._known is not None:
            return self._known  # rows do not change there, results do
        is_large = num_rows > SYNC_ROWS
        now = self._mono_s()
        if now < self._grow_at_s:
            return self._known
        if version == self._partly:  # nothing comes; what a quick look left out is looked at now
            if now < self._rest_at_s:
                return self._known
            self._full_at_s = min(self._full_at_s, now)
        if is_large:
            self._in_thread(version, rows)
        else:
            self._look(version, rows)
        return self._known

    def _in_thread(self, version: str, rows: SmallRows) -> None:
        def look() -> None:
            self._look(version, rows)
            self._grow_at_s = max(self._grow_at_s, self._mono_s() + LARGE_PAUSE_S)

        def failed() -> None:
            self._grow_at_s = self._mono_s() + RETRY_S

        now = self._mono_s()
        if self._background.begin(look, failed):
            self._began_s = now

    def _look(self, version: str, rows: SmallRows) -> None:
        began = self._mono_s()
        tables = set(rows.counts) | set(self._counts)
        is_full = self._known is None or began >= self._full_at_s
        if is_full or began >= self._tables_at_s:
            tables, self._tables_at_s = set(EVENT_TABLES), began + EVERY_TABLE_S
        ordered = [table for table in EVENT_TABLES if table in tables]
        known = self._known
        if known is None or is_full:
            bucket_ns = self._bucket(rows)
            look = look_at(self._source, ordered, bucket_ns)
            self._known = Activity(look.rows, bucket_ns)
            took, now = self._mono_s() - began, self._mono_s()
            self._full_at_s = now + max(5.0, FULL_SHARE * took)
            self._rest_at_s = now + max(REST_S, GROW_SHARE * took)
        else:
            look = look_at(self._source, ordered, known.bucket_ns, known.since())
            self._known = known.grown(look)
        took = self._mono_s() - began
        self._grow_at_s = self._mono_s() + max(MIN_PAUSE_S, GROW_SHARE * took)
        self._counts, self._partly = look.counts, version
        if is_full:
            self._version = version

    def _bucket(self, rows: SmallRows) -> int:
        seen = rows.points["wall_ns"].to_pylist()
        meta = self._source.meta()
        begin = min(seen, default=meta.created_ns)
        end = max([*seen, meta.ended_ns or 0])
        if meta.ended_ns is None and self._source.is_live:
            end = max(end, self._source.last_came_ns() or 0)
        return fitting_bucket(end - begin, len(rows.actors))
