"""When each actor left rows: one entry a bucket of time, so that a run of any length is small.

It is the one question that looks at every row. Of a growing run the rows that come are added; who was
away for long asks for what is new, and for everything now and then, because a late sender may have filled
in the past.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collector.storage._interface import News
from dashboard.story.source import RunSource

Ints = npt.NDArray[np.int64]
Key = tuple[int, int]
"""(rank, incarnation)."""

RowKey = tuple[int, int, int]
"""(rank, incarnation, seq)."""

BUCKET_NS = 250_000_000
MAX_BUCKETS = 2_000_000
OVERLAP_NS = 60_000_000_000
"""So far back rows are asked for again at each look: senders are not equally fast."""


class Span:
    """One actor's buckets in time. Nothing in it changes: one that grows is another.

    Attributes:
        first, last: wall_ns of the earliest and latest row in each bucket.
        seq, step: the highest in it; step -1 where no row has one.
        num: rows in it.
        end: wall_ns of the row with the highest seq in it.
    """

    FIELDS = ("first", "last", "seq", "step", "num", "end")

    def __init__(self, bucket: Ints, columns: Sequence[Ints]) -> None:
        self.bucket = bucket
        self.columns = columns
        self._pauses: tuple[int, list[tuple[int, int]]] | None = None
        self.first, self.last, self.seq, self.step, self.num, self.end = columns

    @cached_property
    def first_ns(self) -> int:
        """The actor's earliest row."""
        return int(self.first.min())

    @cached_property
    def last_ns(self) -> int:
        """Its last row: the one with the highest seq."""
        return int(self.end[int(np.argmax(self.seq))])

    @cached_property
    def latest_ns(self) -> int:
        """The latest time of a row of it."""
        return int(self.last.max())

    @cached_property
    def highest_step(self) -> int:
        """The highest step; -1 when it has none."""
        return int(self.step.max())

    @cached_property
    def usual_ns(self) -> float:
        """The median distance of the buckets in which it has rows; 0 when there are not two."""
        distances = np.diff(self.first)
        return float(np.median(distances)) if len(distances) else 0.0

    def pauses(self, least_ns: int) -> list[tuple[int, int]]:
        """The times between two buckets that last longer: (its last row before, the first after)."""
        if self._pauses is None or self._pauses[0] != least_ns:
            begin, end = self.last[:-1], self.first[1:]
            long = end - begin > least_ns
            found = list(zip(begin[long].tolist(), end[long].tolist(), strict=True))
            self._pauses = (least_ns, found)
        return self._pauses[1]

    def grown(self, more: Span) -> Span:
        """With more rows of the actor, in any of the buckets."""
        if more.bucket[0] > self.bucket[-1]:
            return Span(
                np.concatenate([self.bucket, more.bucket]),
                [np.concatenate(pair) for pair in zip(self.columns, more.columns, strict=True)],
            )
        return self._merged(more)

    def _merged(self, more: Span) -> Span:
        bucket = np.concatenate([self.bucket, more.bucket])
        both = (np.concatenate(pair) for pair in zip(self.columns, more.columns, strict=True))
        order = np.argsort(bucket, kind="stable")
        bucket = bucket[order]
        first, last, seq, step, num, end = (column[order] for column in both)
        starts = np.flatnonzero(np.r_[True, bucket[1:] != bucket[:-1]])
        follows = np.minimum(starts + 1, len(bucket) - 1)  # a bucket is there twice at most
        newest = np.where(
            (bucket[follows] == bucket[starts]) & (seq[follows] > seq[starts]), follows, starts
        )
        columns = [
            np.minimum.reduceat(first, starts),
            np.maximum.reduceat(last, starts),
            np.maximum.reduceat(seq, starts),
            np.maximum.reduceat(step, starts),
            np.add.reduceat(num, starts),
            end[newest],
        ]
        return Span(bucket[starts], columns)


class Activity:
    """Every actor's buckets.

    Args:
        spans: by (rank, incarnation), in that order.
        bucket_ns: length of a bucket.
    """

    def __init__(self, spans: dict[Key, Span], bucket_ns: int) -> None:
        self.spans = spans
        self.bucket_ns = bucket_ns

    @cached_property
    def first_ns(self) -> int | None:
        """The run's earliest row."""
        return min((span.first_ns for span in self.spans.values()), default=None)

    @cached_property
    def last_ns(self) -> int | None:
        """The run's latest row."""
        return max((span.latest_ns for span in self.spans.values()), default=None)

    def looked_again(self, look: Look) -> Activity:
        """With what a look from ``since`` on has found in place of what was known from then on."""
        spans = {}
        for key, span in self.spans.items():
            keep = span.bucket < look.since
            if keep.all():
                spans[key] = span
            elif keep.any():
                spans[key] = Span(span.bucket[keep], [column[keep] for column in span.columns])
        return Activity(_joined(spans, look.spans), self.bucket_ns)

    def grown(self, rows: Rows) -> Activity:
        """With more rows, each of which was not in it."""
        return Activity(_joined(self.spans, rows.spans(self.bucket_ns)), self.bucket_ns)

    def since(self) -> int | None:
        """The first bucket that is to be looked at again; None for all of them."""
        last = self.last_ns
        return None if last is None else (last - OVERLAP_NS) // self.bucket_ns


def _joined(known: dict[Key, Span], more: dict[Key, Span]) -> dict[Key, Span]:
    joined = dict(known)
    for key, span in more.items():
        joined[key] = joined[key].grown(span) if key in joined else span
    return joined if len(joined) == len(known) else dict(sorted(joined.items()))


class Rows(NamedTuple):
    """Rows of any tables; step -1 where there is none."""

    rank: Ints
    incarnation: Ints
    seq: Ints
    step: Ints
    wall_ns: Ints

    @classmethod
    def of(cls, tables: Iterable[pa.Table]) -> Rows:
        """The rows of these tables."""
        parts = [table.select(cls._fields) for table in tables]
        if not parts:
            return cls(*(np.zeros(0, np.int64) for _ in cls._fields))
        whole = pa.concat_tables(parts)  # one conversion a column, however many parts there are
        return cls(*(_ints(whole, name, -1) for name in cls._fields))

    def and_all(self, others: Iterable[Rows]) -> Rows:
        """These rows and those."""
        return Rows(*(np.concatenate(columns) for columns in zip(self, *others, strict=True)))

    def keys(self) -> set[RowKey]:
        """Which rows they are."""
        return set(
            zip(self.rank.tolist(), self.incarnation.tolist(), self.seq.tolist(), strict=True)
        )

    def without(self, known: set[RowKey]) -> Rows:
        """Less those rows, which are few."""
        maybe = np.flatnonzero(np.isin(self.seq, [seq for _, _, seq in known]))
        columns = (column[maybe].tolist() for column in (self.rank, self.incarnation, self.seq))
        gone = [
            at for at, key in zip(maybe, zip(*columns, strict=True), strict=True) if key in known
        ]
        return Rows(*(np.delete(column, gone) for column in self)) if gone else self

    def spans(self, bucket_ns: int) -> dict[Key, Span]:
        """By actor, in buckets."""
        if not len(self.rank):
            return {}
        bucket = self.wall_ns // bucket_ns
        order = np.lexsort((self.seq, bucket, self.incarnation, self.rank))
        rank, incarnation, seq, step, wall, bucket = (
            column[order]
            for column in (
                self.rank, self.incarnation, self.seq, self.step, self.wall_ns, bucket,
            )
        )  # fmt: skip
        other = (rank[1:] != rank[:-1]) | (incarnation[1:] != incarnation[:-1])
        starts = np.flatnonzero(np.r_[True, other | (bucket[1:] != bucket[:-1])])
        stops = np.r_[starts[1:], len(rank)]
        columns = [
            np.minimum.reduceat(wall, starts),
            np.maximum.reduceat(wall, starts),
            seq[stops - 1],
            np.maximum.reduceat(step, starts),
            stops - starts,
            wall[stops - 1],
        ]
        return _by_actor(rank[starts], incarnation[starts], bucket[starts], columns)


def _by_actor(
    rank: Ints, incarnation: Ints, bucket: Ints, columns: Sequence[Ints]
) -> dict[Key, Span]:
    edges = np.flatnonzero((np.diff(rank) != 0) | (np.diff(incarnation) != 0)) + 1
    spans: dict[Key, Span] = {}
    for low, high in zip([0, *edges.tolist()], [*edges.tolist(), len(rank)], strict=True):
        if high > low:
            key = (int(rank[low]), int(incarnation[low]))
            spans[key] = Span(bucket[low:high], [column[low:high] for column in columns])
    return spans


class Look(NamedTuple):
    """One look at a run's rows.

    Attributes:
        spans: see Activity.
        since: the first bucket; the lowest number there is when all were looked at.
        news: as of the rows that it saw; None of a run that does not grow.
    """

    spans: dict[Key, Span]
    since: int
    news: News | None


def fitting_bucket(span_ns: int, num_actors: int) -> int:
    """The shortest bucket of 250 ms doubled that keeps the number of buckets bounded."""
    bucket = BUCKET_NS
    while max(span_ns, 0) // bucket * max(num_actors, 1) > MAX_BUCKETS:
        bucket *= 2
    return bucket


def look_at(
    source: RunSource, tables: Iterable[str], bucket_ns: int, since: int | None = None
) -> Look:
    """Look at the rows of these tables, in one statement: each costs a live store the same again.

    Args:
        source: the run.
        tables: event tables.
        bucket_ns: length of a bucket.
        since: the first bucket; all of them when not given.
    """
    names = list(tables) or ["actors"]
    where = "" if since is None else f" WHERE wall_ns >= {since * bucket_ns}"
    each = " UNION ALL ".join(
        f"SELECT rank, incarnation, seq, step, wall_ns FROM {table}{where}"  # noqa: S608
        for table in names
    )
    found, news = source.query_at(
        f"""
        SELECT rank, incarnation, wall_ns // {bucket_ns} AS bucket, min(wall_ns) AS first,
            max(wall_ns) AS last, max(seq) AS seq, coalesce(max(step), -1) AS step,
            count(*)::BIGINT AS num, arg_max(wall_ns, seq) AS "end"
        FROM ({each}) GROUP BY rank, incarnation, bucket
        ORDER BY rank, incarnation, bucket
        """  # noqa: S608  # numbers and tables of the schema
    )
    rank, incarnation, bucket = (_ints(found, n) for n in ("rank", "incarnation", "bucket"))
    spans = _by_actor(rank, incarnation, bucket, [_ints(found, name) for name in Span.FIELDS])
    return Look(spans, -(1 << 62) if since is None else since, news)


def _ints(rows: pa.Table, name: str, null: int | None = None) -> Ints:
    column = rows[name]
    if null is not None and column.null_count:
        column = pc.fill_null(column, null)
    found: Ints = column.to_numpy().astype(np.int64, copy=False)
    return found
