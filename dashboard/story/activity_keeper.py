"""When to look at a run's rows again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.storage._interface import News
from dashboard.story.activity import Activity, RowKey, Rows, fitting_bucket, look_at
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


class ActivityKeeper:
    """Keeps one run's activity.

    After a look at everything the rows that come are added. Where they are not at hand any more, because
    nobody watched for a while, a look at what is new comes first, and one at everything later.

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
        """The version of the last look, which may have left out old rows."""
        self._is_whole = False
        self._place: dict[str, int] | None = None
        self._open: set[RowKey] = set()
        """Collectives that are counted and have not completed."""
        self._grow_at_s = self._full_at_s = self._rest_at_s = 0.0
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

    def as_of(
        self, version: str, num_rows: int, rows: SmallRows, news: News | None
    ) -> Activity | None:
        """The activity of this version, or of one shortly before; None while it is being read.

        Args:
            version: of the run.
            num_rows: of all its tables.
            rows: the few rows of that version.
            news: its newest rows, of a run that grows.
        """
        if version == self._version and self._known is not None:
            return self._known
        if not self._source.is_live and self._known is not None:
            return self._known  # rows do not change there, results do
        if self._background.is_going_on:
            return self._known
        now = self._mono_s()
        if news is not None and self._grow(version, news, now):
            if self._is_whole or now < self._full_at_s:
                return self._known
        elif now < self._grow_at_s:
            return self._known
        elif version == self._partly:  # nothing comes; what a quick look left out is looked at now
            if now < self._rest_at_s:
                return self._known
            self._full_at_s = min(self._full_at_s, now)
        if num_rows > SYNC_ROWS:
            self._in_thread(version, rows)
        else:
            self._look(version, rows)
        return self._known

    def _grow(self, version: str, news: News, now: float) -> bool:
        """Add the rows that came; False when they are not at hand."""
        if self._known is None or self._place is None:
            return False
        if any(news.place.get(table, 0) < upto for table, upto in self._place.items()):
            return True  # a look in the background, which ended since, has seen more than this
        parts = {table: news.after(self._place, table) for table in EVENT_TABLES}
        if any(part is None for part in parts.values()):
            self._place = None
            return False
        completed = Rows.of(parts.pop("collectives") or ())
        entered = Rows.of([news.open()])
        more = Rows.of(table for part in parts.values() for table in part or ())
        more = more.and_all([completed.without(self._open), entered.without(self._open)])
        if len(more.rank):
            self._known = self._known.grown(more)
        self._place, self._open = news.place, entered.keys()
        self._partly = version
        if (
            _fitting(self._known) > self._known.bucket_ns
        ):  # too many by now: all are looked at again
            self._is_whole, self._full_at_s = False, min(self._full_at_s, now)
        if self._is_whole:
            self._version = version
        return True

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
        known = self._known
        is_full = known is None or began >= self._full_at_s
        if known is None or is_full:
            bucket_ns = max(self._bucket(rows), 0 if known is None else _fitting(known))
            look = look_at(self._source, EVENT_TABLES, bucket_ns)
            self._known = Activity(look.spans, bucket_ns)
            took, now = self._mono_s() - began, self._mono_s()
            self._full_at_s = now + max(5.0, FULL_SHARE * took)
            self._rest_at_s = now + max(REST_S, GROW_SHARE * took)
        else:
            look = look_at(self._source, EVENT_TABLES, known.bucket_ns, known.since())
            self._known = known.looked_again(look)
        if look.news is not None:
            self._place, self._open = look.news.place, Rows.of([look.news.open()]).keys()
        took = self._mono_s() - began
        self._grow_at_s = self._mono_s() + max(MIN_PAUSE_S, GROW_SHARE * took)
        self._is_whole, self._partly = is_full, version
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


def _fitting(known: Activity) -> int:
    """The length of bucket that suits what is known."""
    return fitting_bucket((known.last_ns or 0) - (known.first_ns or 0), len(known.spans))
