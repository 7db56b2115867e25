"""Which seqs of one actor are stored, and which are known to be missing: its high-water mark."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator


class Spans:
    """A set of seqs kept as disjoint, sorted, non-touching spans; nearly always there is one.

    Args:
        spans: (first, last) pairs, in any order.
    """

    __slots__ = ("_firsts", "_lasts")

    def __init__(self, spans: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in spans:
            self.add(first, last)

    def copy(self) -> Spans:
        """An independent copy."""
        twin = Spans()
        twin._firsts, twin._lasts = self._firsts.copy(), self._lasts.copy()
        return twin

    def __contains__(self, seq: int) -> bool:
        at = bisect_right(self._firsts, seq) - 1
        return at >= 0 and seq <= self._lasts[at]

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(zip(self._firsts, self._lasts, strict=True))

    @property
    def last(self) -> int:
        """The highest seq stored; -1 when none is."""
        return self._lasts[-1] if self._lasts else -1

    def end_of(self, seq: int) -> int | None:
        """The last seq of the span that ``seq`` lies in; None when it is not stored."""
        at = bisect_right(self._firsts, seq) - 1
        return self._lasts[at] if at >= 0 and seq <= self._lasts[at] else None

    def is_free(self, first: int, last: int) -> bool:
        """True when no seq from ``first`` to ``last`` is stored."""
        at = bisect_right(self._firsts, last) - 1
        return at < 0 or self._lasts[at] < first

    def add(self, first: int, last: int) -> None:
        """Store all seqs from ``first`` to ``last``; some may be there already."""
        low = bisect_right(self._firsts, first) - 1
        if low < 0 or self._lasts[low] < first - 1:
            low += 1
        high = bisect_right(self._firsts, last + 1)
        if low < high:
            first, last = min(first, self._firsts[low]), max(last, self._lasts[high - 1])
        self._firsts[low:high] = [first]
        self._lasts[low:high] = [last]

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
        for seq in seqs:
            new = seq not in self
            flags.append(new)
            if new:
                self.add(seq, seq)
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
        self.stored = stored or Spans()
        self.covered = covered or Spans()

    def copy(self) -> Known:
        """An independent copy."""
        return Known(self.stored.copy(), self.covered.copy())

    @property
    def mark(self) -> int:
        """Every seq up to and with this one is stored or known to be gone; -1 when 0 is neither."""
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
