"""Which seqs of one actor are stored, and which are known to be missing: its high-water mark."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

_END = float("inf")

Span = tuple[int, int]
"""(first, last), both in it"""


class Spans:
    """A set of seqs kept as disjoint, sorted, non-touching spans; nearly always there is one.

    One thread changes it; others may iterate over it meanwhile and see it as it was at some time.

    Args:
        spans: (first, last) pairs, in any order.
    """

    __slots__ = ("_spans",)

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._spans: list[Span] = _merged(sorted(spans))

    def copy(self) -> Spans:
        """An independent copy."""
        twin = Spans.__new__(Spans)  # one an actor and commit: nothing is to be sorted again
        twin._spans = self._spans.copy()
        return twin

    def __contains__(self, seq: int) -> bool:
        return self.end_of(seq) is not None

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self)

    def __iter__(self) -> Iterator[Span]:
        return iter(self._spans.copy())

    @property
    def last(self) -> int:
        """The highest seq stored; -1 when none is."""
        return self._spans[-1][1] if self._spans else -1

    def end_of(self, seq: int) -> int | None:
        """The last seq of the span that ``seq`` lies in; None when it is not stored."""
        at = bisect_right(self._spans, (seq, _END)) - 1
        return self._spans[at][1] if at >= 0 and seq <= self._spans[at][1] else None

    def is_free(self, first: int, last: int) -> bool:
        """True when no seq from ``first`` to ``last`` is stored."""
        if not self._spans or self._spans[-1][1] < first:  # the usual case
            return True
        at = bisect_right(self._spans, (last, _END)) - 1
        return at < 0 or self._spans[at][1] < first

    def add(self, first: int, last: int) -> None:
        """Store all seqs from ``first`` to ``last``; some may be there already."""
        spans = self._spans
        if spans and spans[-1][1] + 1 == first:  # the usual case
            spans[-1] = (spans[-1][0], last)
            return
        low = bisect_right(spans, (first, _END)) - 1
        if low < 0 or spans[low][1] < first - 1:
            low += 1
        high = bisect_right(spans, (last + 1, _END))
        if low < high:
            first, last = min(first, spans[low][0]), max(last, spans[high - 1][1])
        spans[low:high] = [(first, last)]  # one step: a reader sees it before or after

    def take(self, seqs: list[int]) -> list[bool] | None:
        """Store seqs and say which of them are new.

        Returns:
            None when all are (the usual case), else a flag a seq; of two equal ones the first is new.
        """
        if not seqs:
            return None
        first, last = seqs[0], seqs[-1]
        in_row = last - first + 1 == len(seqs) and seqs == list(range(first, last + 1))
        if in_row and self.is_free(first, last):
            self.add(first, last)
            return None
        flags = []
        fresh: set[int] = set()
        for seq in seqs:
            new = seq not in fresh and seq not in self
            flags.append(new)
            if new:
                fresh.add(seq)
        # At once: seq by seq, a batch of every second number would move the list each time.
        runs = _merged([(seq, seq) for seq in sorted(fresh)])
        if len(runs) < 8:
            for run in runs:
                self.add(*run)
        else:
            self._spans = _merged(sorted([*self._spans, *runs]))
        return None if all(flags) else flags


class Known:
    """What is known of one actor's seqs.

    Attributes:
        stored: rows that are here; a row whose seq is in it is a duplicate.
        covered: seqs that a ``gaps`` row says are gone. A row that turns up there all the same is
            taken, so this is kept apart.
    """

    __slots__ = ("covered", "stored")

    def __init__(self, stored: Spans | None = None, covered: Spans | None = None) -> None:
        self.stored = Spans() if stored is None else stored
        self.covered = Spans() if covered is None else covered

    def copy(self) -> Known:
        """An independent copy."""
        return Known(self.stored.copy(), self.covered.copy())

    @property
    def mark(self) -> int:
        """Every seq up to and with this one is stored or known to be gone; -1 when 0 is neither."""
        if self.covered.last < 0:  # the usual case: nothing reaches over a hole
            end = self.stored.end_of(0)
            return -1 if end is None else end
        mark = -1
        while True:
            ends = (self.stored.end_of(mark + 1), self.covered.end_of(mark + 1))
            further = max((end for end in ends if end is not None), default=None)
            if further is None:
                return mark
            mark = further

    @property
    def last(self) -> int:
        """The highest seq stored or known to be gone; -1 when there is none."""
        return max(self.stored.last, self.covered.last)

    def holes(self, below: int) -> list[Span]:
        """The stretches below a seq that are neither stored nor known to be gone."""
        holes, at = [], 0
        for first, last in _merged(sorted([*self.stored, *self.covered])):
            if first >= below:
                break
            if first > at:
                holes.append((at, first - 1))
            at = last + 1
        if at < below:
            holes.append((at, below - 1))
        return holes


def _merged(spans: list[Span]) -> list[Span]:
    """Sorted spans with those that touch or overlap made one."""
    merged: list[Span] = []
    for first, last in spans:
        if merged and first <= merged[-1][1] + 1:
            if last > merged[-1][1]:
                merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
    return merged
