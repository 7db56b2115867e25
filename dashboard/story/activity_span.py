"""When one actor left rows, by bucket of time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


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

    def coarser(self, factor: int) -> Span:
        """In buckets so many times as long."""
        order = np.lexsort((self.seq, self.bucket // factor))
        bucket = self.bucket[order] // factor
        first, last, seq, step, num, end = (column[order] for column in self.columns)
        starts = np.flatnonzero(np.r_[True, bucket[1:] != bucket[:-1]])
        stops = np.r_[starts[1:], len(bucket)]
        columns = [
            np.minimum.reduceat(first, starts),
            np.maximum.reduceat(last, starts),
            seq[stops - 1],
            np.maximum.reduceat(step, starts),
            np.add.reduceat(num, starts),
            end[stops - 1],
        ]
        return Span(bucket[starts], columns)

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
