"""Rows of a run that grows: each is read once, in whatever order they come.

The rows that came since the last time are at hand without a statement, as long as somebody reads them now
and then (``News``). Who begins, or was away for longer, asks by SQL for what he has not read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from collector.storage._interface import News
from dashboard.tiles.news_rows import open_rows, rows_after
from dashboard.tiles.rows import Rows, rows_beyond
from dashboard.tiles.seen_rows import SeenRows
from dashboard.tiles.source import RowSource

NEW_NS = 120 * 10**9
"""Rows so far behind the newest are looked for now and then only."""

WHOLE_S = 5.0
SHARE = 20
"""Between two looks at everything: so many seconds, and so many times what one takes."""

NOTED_ROWS = 250_000
"""After so many rows it is noted how far each actor was read."""


class Read(NamedTuple):
    """What came.

    Attributes:
        rows: new ones, less collectives that have not completed.
        waiting: every collective that has not, now.
    """

    rows: Rows
    waiting: Rows


class NewRows:
    """The rows of a run that grows, each once; collectives when they have completed, or never will.

    Looks by SQL are mostly at the newest minutes only, which leaves stored files alone. They take the rows
    of actors that were that far already and of those that begin there; who lags behind, or comes late, is
    read by a look at everything, later. From that one on nothing is missing in the news.

    Args:
        mono_s: the clock.
    """

    def __init__(self, mono_s: Callable[[], float] = time.monotonic) -> None:
        self._mono_s = mono_s
        self._seen = SeenRows()
        self._place: Mapping[str, int] | None = None
        self._is_whole = False
        """Every row up to the place was read."""
        self._newest: int | None = None
        self._whole_at_s = 0.0

    @property
    def is_whole(self) -> bool:
        """Whether no older row is missing, as far as it is known."""
        return self._is_whole

    @property
    def is_due(self) -> bool:
        """Whether older rows are missing, and it is time to look for them."""
        return not self._is_whole and self._mono_s() >= self._whole_at_s

    def read(self, source: RowSource) -> Read:
        """What came since the last time; ``source`` is the same run each time, and not kept."""
        if self._place is not None and (self._is_whole or self._mono_s() < self._whole_at_s):
            found = self._by_news(source, self._place)
            if found is not None:
                return found
        return self._by_sql(source)

    def _by_news(self, source: RowSource, place: Mapping[str, int]) -> Read | None:
        # Before the rows: all up to a mark are among them, or were read.
        is_due = self._seen.num_noted > NOTED_ROWS
        marks = source.marks() if is_due and self._is_whole else None
        news = source.news()
        rows = None if news is None else rows_after(news, place)
        if news is None or rows is None:
            return None
        read = Read(rows, open_rows(news))
        self._seen.note(*read)
        if is_due:
            self._seen.settle(marks)
        self._went_on(news, rows)
        return read

    def _by_sql(self, source: RowSource) -> Read:
        began = self._mono_s()
        marks = source.marks()  # before the rows: all up to a mark are among them
        source.news()  # no answer is of a moment before this one
        self._seen.settle(None)
        since = None
        if self._newest is not None and began < self._whole_at_s:
            since = self._newest - NEW_NS
        every, news = rows_beyond(source, self._seen.upto(), self._seen.open(), since)
        waiting = open_rows(news)
        rows = self._seen.take(every, marks, waiting, since, NEW_NS)
        now = self._mono_s()
        self._is_whole = since is None
        if since is None:
            self._whole_at_s = now + max(WHOLE_S, SHARE * (now - began))
        self._went_on(news, every)
        return Read(rows, waiting)

    def _went_on(self, news: News, rows: Rows) -> None:
        self._place = news.place
        if len(rows.wall_ns):
            self._newest = max(self._newest or 0, int(rows.wall_ns.max()))
