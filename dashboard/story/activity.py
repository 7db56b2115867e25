"""When each actor left rows: one entry a bucket of time, so that a run of any length is small.

It is the one question that looks at every row. Of a growing run only what is new is asked again, and
everything now and then, because a late sender may still fill in the past.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dashboard.story.source import RunSource

Ints = npt.NDArray[np.int64]
Key = tuple[int, int]
"""(rank, incarnation)."""

BUCKET_NS = 250_000_000
MAX_BUCKETS = 2_000_000
OVERLAP_NS = 60_000_000_000
"""So far back rows are asked for again at each look: senders are not equally fast."""


class Span(NamedTuple):
    """One actor's buckets in time.

    Attributes:
        first, last: wall_ns of the earliest and latest row in each bucket.
        seq, step: the highest in it; step -1 where no row has one.
        num: rows in it.
        end: wall_ns of the row with the highest seq in it.
    """

    first: Ints
    last: Ints
    seq: Ints
    step: Ints
    num: Ints
    end: Ints

    @property
    def first_ns(self) -> int:
        """The actor's earliest row."""
        return int(self.first.min())

    @property
    def last_ns(self) -> int:
        """Its last row: the one with the highest seq."""
        return int(self.end[int(np.argmax(self.seq))])


class Activity:
    """Every actor's buckets.

    Args:
        rows: (rank, incarnation, bucket, first, last, seq, step, num, end), sorted by the first three.
        bucket_ns: length of a bucket.
    """

    def __init__(self, rows: pa.Table, bucket_ns: int) -> None:
        self.rows = rows
        self.bucket_ns = bucket_ns
        self.spans: dict[Key, Span] = {}
        rank, incarnation = _ints(rows, "rank"), _ints(rows, "incarnation")
        edges = np.flatnonzero((np.diff(rank) != 0) | (np.diff(incarnation) != 0)) + 1
        columns = [_ints(rows, name) for name in Span._fields]
        for low, high in zip([0, *edges.tolist()], [*edges.tolist(), len(rank)], strict=True):
            if high > low:
                key = (int(rank[low]), int(incarnation[low]))
                self.spans[key] = Span(*(column[low:high] for column in columns))

    @property
    def first_ns(self) -> int | None:
        """The run's earliest row."""
        return min((span.first_ns for span in self.spans.values()), default=None)

    @property
    def last_ns(self) -> int | None:
        """The run's latest row."""
        return max((int(span.last.max()) for span in self.spans.values()), default=None)

    def grown(self, look: Look) -> Activity:
        """With what a look from ``since`` on has found in place of what was known from then on."""
        old = self.rows.filter(pa.array(_ints(self.rows, "bucket") < look.since))
        order = [(name, "ascending") for name in ("rank", "incarnation", "bucket")]
        return Activity(pa.concat_tables([old, look.rows]).sort_by(order), self.bucket_ns)

    def since(self) -> int | None:
        """The first bucket that is to be looked at again; None for all of them."""
        last = self.last_ns
        return None if last is None else (last - OVERLAP_NS) // self.bucket_ns


class Look(NamedTuple):
    """One look at a run's rows.

    Attributes:
        rows: see Activity.
        counts: all rows of each table that was looked at and has any.
        since: the first bucket; the lowest number there is when all were looked at.
    """

    rows: pa.Table
    counts: dict[str, int]
    since: int


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
    counts = " UNION ALL ".join(
        f"SELECT -1, {number}, 0, 0, 0, 0, 0, count(*)::BIGINT, 0 FROM {table}"  # noqa: S608
        for number, table in enumerate(names)
    )
    found = source.query_whole(
        f"""
        SELECT rank, incarnation, wall_ns // {bucket_ns} AS bucket, min(wall_ns) AS first,
            max(wall_ns) AS last, max(seq) AS seq, coalesce(max(step), -1) AS step,
            count(*)::BIGINT AS num, arg_max(wall_ns, seq) AS "end"
        FROM ({each}) GROUP BY rank, incarnation, bucket
        UNION ALL {counts}
        ORDER BY rank, incarnation, bucket
        """  # noqa: S608  # numbers and tables of the schema
    )
    is_count = _ints(found, "rank") < 0
    numbers = dict(
        zip(
            _ints(found, "incarnation")[is_count].tolist(),
            _ints(found, "num")[is_count].tolist(),
            strict=True,
        )
    )
    return Look(
        found.filter(pa.array(~is_count)),
        {table: numbers[number] for number, table in enumerate(names) if numbers[number]},
        -(1 << 62) if since is None else since,
    )


def _ints(rows: pa.Table, name: str) -> Ints:
    found: Ints = rows[name].to_numpy().astype(np.int64)
    return found
