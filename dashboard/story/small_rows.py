"""The few rows that a story is told from: who took part, walks, views, debts, faults, gaps.

Each part has a statement that reads it from a whole run; rows that every member writes of one thing are
made one there, because with many ranks they are many. Of a run that grows the rows that come are then
added to what was read (small_parts.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec
import pyarrow as pa

from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.storage._interface import News
from dashboard.story import small_parts as parts
from dashboard.story.firsts import Row
from dashboard.story.points import POINT_TABLES, POINTS, Points, TooLate
from dashboard.story.small_parts import MAX_DEBTS, MAX_FAULTS, MAX_GAPS, MAX_IN_FLIGHT
from dashboard.story.source import RunSource

_NUMBER = ", ".join(parts.NUMBER)


def _columns(names: tuple[str, ...]) -> str:
    return ", ".join(names)


_ACTORS = f"SELECT {_columns(parts.Actors.columns)} FROM actors"  # noqa: S608
_WALKS = f"""
SELECT {_columns(parts.Walks.columns)} FROM transitions
WHERE phase = 'committed' AND coalesce(new_epoch, epoch) IS NOT NULL
QUALIFY row_number() OVER (
    PARTITION BY group_id, coalesce(new_epoch, epoch), list_sort(list_distinct(coalesce(members, [])))
    ORDER BY coalesce(proposer.rank = rank AND proposer.incarnation = incarnation, false) DESC,
        {_NUMBER}
) = 1
"""  # noqa: S608
_VIEWS = f"""
SELECT {_columns(parts.Views.columns)} FROM membership WHERE len(members) > 0
QUALIFY row_number() OVER (PARTITION BY group_id ORDER BY coalesce(epoch, 0), {_NUMBER}) = 1
"""  # noqa: S608
_CHANGES = f"""
WITH told AS (
    SELECT *, 'departed' AS what, unnest(departed) AS actor FROM membership
    UNION ALL
    SELECT *, 'joined', unnest(joined) FROM membership
)
SELECT {_columns(parts.Changes.columns[:-2])},
    CASE what WHEN 'departed' THEN [actor] END AS departed,
    CASE what WHEN 'joined' THEN [actor] END AS joined
FROM told WHERE actor IS NOT NULL
QUALIFY row_number() OVER (
    PARTITION BY what, actor, group_id, epoch ORDER BY wall_ns, {_NUMBER}
) = 1
"""  # noqa: S608
_DEBT = tuple(name for name in parts.Debts.columns if name != "in_flight")
_DEBTS = f"""
WITH first AS (
    SELECT * FROM debt WHERE action IN ('opened', 'settled', 'written_off')
    QUALIFY row_number() OVER (
        PARTITION BY action = 'opened',
            coalesce(debt_id, concat('unnamed ', rank, ':', incarnation, ':', seq))
        ORDER BY {_NUMBER}
    ) = 1
)
SELECT {_columns(_DEBT)}, in_flight[1:{MAX_IN_FLIGHT}] AS in_flight,
    coalesce(len(in_flight), 0) AS num_in_flight
FROM first
QUALIFY action != 'opened'
    OR row_number() OVER (PARTITION BY action = 'opened' ORDER BY wall_ns, rank, seq) <= {MAX_DEBTS}
"""  # noqa: S608
_FAULTS = f"""
SELECT {_columns(parts.Faults.columns)} FROM health WHERE fault IS NOT NULL
ORDER BY wall_ns, {_NUMBER} LIMIT {MAX_FAULTS}
"""  # noqa: S608
_GAPS = f"""
SELECT {_columns(parts.Gaps.columns)} FROM gaps ORDER BY wall_ns, {_NUMBER} LIMIT {MAX_GAPS}
"""  # noqa: S608
_EVERY = ", ".join(f"(SELECT count(*) FROM {t})::BIGINT AS {t}" for t in EVENT_TABLES)  # noqa: S608
_COUNTS = f"SELECT {_EVERY}"


class SmallRows(msgspec.Struct, kw_only=True):
    """What was read; ``points`` stays in columns.

    Attributes:
        counts: rows of each event table that has any.
    """

    counts: dict[str, int]
    actors: list[Row]
    walks: list[Row]
    views: list[Row]
    changes: list[Row]
    debts: list[Row]
    faults: list[Row]
    gaps: list[Row]
    points: pa.Table


class _Part(Protocol):
    """One part, of rows in any order."""

    def add(self, rows: pa.Table) -> None:
        """Take rows as its statement answers them, or as they are stored."""
        ...

    def rows(self) -> Any:
        """What the part is."""
        ...


class _How(NamedTuple):
    make: Callable[[], _Part]
    columns: tuple[str, ...]
    sql: str
    tables: tuple[str, ...]


_PARTS: dict[str, _How] = {
    "actors": _How(parts.Actors, parts.Actors.columns, _ACTORS, ("actors",)),
    "walks": _How(parts.Walks, parts.Walks.columns, _WALKS, ("transitions",)),
    "views": _How(parts.Views, parts.Views.columns, _VIEWS, ("membership",)),
    "changes": _How(parts.Changes, parts.Changes.columns, _CHANGES, ("membership",)),
    "debts": _How(parts.Debts, parts.Debts.columns, _DEBTS, ("debt",)),
    "faults": _How(parts.Faults, parts.Faults.columns, _FAULTS, ("health",)),
    "gaps": _How(parts.Gaps, parts.Gaps.columns, _GAPS, ("gaps",)),
    "points": _How(Points, Points.columns, POINTS, POINT_TABLES),
}


class _Held:
    """One part of a run, up to a place in its tables; None in a run that does not grow."""

    def __init__(self, how: _How) -> None:
        self._how = how
        self._part = how.make()
        self._place: Mapping[str, int] | None = None
        self._was_read = False
        self.rows: Any = self._part.rows()

    def renew(self, source: RunSource, counts: dict[str, int], news: News | None) -> None:
        """Bring it up to the news; ``counts`` are as of them."""
        if self._was_read and (news is None or self._grow(news)):
            return
        self._part = self._how.make()
        if any(table in counts for table in self._how.tables):
            answer, news = source.query_at(self._how.sql)
            self._part.add(answer)
        self.rows, self._was_read = self._part.rows(), True
        self._place = None if news is None else news.place

    def _grow(self, news: News) -> bool:
        """Add what came; False when it is not at hand, or came too late to be added."""
        if self._place is None:
            return False
        more: list[pa.Table] = []
        for table in self._how.tables:
            found = news.after(self._place, table)
            if found is None:
                return False
            more += [rows.select(self._how.columns) for rows in found]
        if more:
            try:
                self._part.add(more[0] if len(more) == 1 else pa.concat_tables(more))
            except TooLate:
                return False
            self.rows = self._part.rows()
        self._place = news.place
        return True


class SmallKeeper:
    """Keeps one run's few rows.

    Args:
        source: the run.
    """

    def __init__(self, source: RunSource) -> None:
        self._source = source
        self._held = {name: _Held(how) for name, how in _PARTS.items()}
        self._base: dict[str, int] | None = None

    def as_of(self, news: News | None) -> SmallRows:
        """The rows as of the news, or as of a moment later."""
        counts = self._counts(news)
        for held in self._held.values():
            held.renew(self._source, counts, news)
        return SmallRows(counts=counts, **{name: held.rows for name, held in self._held.items()})

    def _counts(self, news: News | None) -> dict[str, int]:
        if self._base is None:
            answer, seen = self._source.query_at(_COUNTS)
            (counted,) = answer.to_pylist()
            self._base = counted if seen is None else _less(counted, seen)
            news = seen if news is None else news
        counts = self._base if news is None else _more(self._base, news)
        return {table: number for table, number in counts.items() if number}


def _less(counts: dict[str, int], news: News) -> dict[str, int]:
    """Rows that are in files from before the store was opened."""
    now = _more(dict.fromkeys(counts, 0), news)
    return {table: number - now[table] for table, number in counts.items()}


def _more(base: dict[str, int], news: News) -> dict[str, int]:
    place = news.place
    counts = {table: number + place.get(table, 0) for table, number in base.items()}
    counts["collectives"] += news.open().num_rows
    return counts
