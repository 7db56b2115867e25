"""Which rows of a run were read already, for whoever asks for the others by SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from collector.storage._interface import News
from dashboard.tiles.edges_native import Ints
from dashboard.tiles.rows import Rows

MOST_AHEAD = 1_000_000
"""Of an actor's rows beyond a hole: who has more is read on from there, and the hole stays."""

Marks = Mapping[tuple[int, int], int]


class _Seen(NamedTuple):
    """How far an actor was read: every row up to a seq, and some beyond a hole.

    Attributes:
        upto: that seq.
        wall_ns: of the latest row up to there.
        ahead, ahead_ns: seqs beyond it that were read, and their times.
    """

    upto: int
    wall_ns: int
    ahead: Ints
    ahead_ns: Ints


_NOTHING = np.zeros(0, np.int64)
_BEGIN = _Seen(-1, 0, _NOTHING, _NOTHING)


class SeenRows:
    """The rows that were read, by actor. A collective that has not completed is not read yet.

    A sender's batches need not come in order. A source that can tell how far an actor's rows are all
    there (``RowSource.marks``) is read again from there on, and what was read already is left out.

    Attributes:
        num_noted: rows that were noted and not settled yet.
    """

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self._noted: list[tuple[Ints, Ints, Ints]] = []
        self.num_noted = 0

    def upto(self) -> list[tuple[int, int, int]]:
        """(rank, incarnation, seq up to which every row was read) of each actor."""
        return [(code >> 32, code & 0xFFFFFFFF, known.upto) for code, known in self._seen.items()]

    def note(self, rows: Rows) -> None:
        """These were read; cheap."""
        if len(rows.seq):
            self._noted.append((_actors(rows), rows.seq, rows.wall_ns))
            self.num_noted += len(rows.seq)

    def settle(self, marks: Marks | None, news: News | None) -> None:
        """Sort what was noted under its actors.

        Args:
            marks: up to which every row was read, or never comes; None where that is not known.
            news: as of the last row that was read; None where there are no marks.
        """
        noted, self._noted, self.num_noted = self._noted, [], 0
        if not noted:
            return
        actor, seq, wall_ns = (np.concatenate(column) for column in zip(*noted, strict=True))
        floors = _floors(news) if news is not None else {}
        for code, mine in _by_actor(actor):
            known = self._seen.get(code, _BEGIN)
            upto = known.upto if marks is None else _mark(marks, floors, code)
            self._add(code, known, seq[mine], wall_ns[mine], upto)

    def take(
        self, rows: Rows, marks: Marks | None, news: News, since: int | None, new_ns: int
    ) -> Rows:
        """Of the answer to a look what was not read before; it is read then.

        Args:
            rows: the answer.
            marks: as they were before the look.
            news: as of the answer.
            since: wall clock that the look began at: actors of whom older rows may be missing are left out.
            new_ns: how far behind the newest row that is.
        """
        keep = np.zeros(len(rows.seq), np.bool_)
        floors = _floors(news)
        for code, mine in _by_actor(_actors(rows)):
            known = self._seen.get(code)
            seq, wall_ns = rows.seq[mine], rows.wall_ns[mine]
            if since is not None and not _keeps_up(known, seq, since + new_ns // 2):
                continue
            known = known or _BEGIN
            is_new = ~np.isin(seq, known.ahead)
            keep[mine] = is_new
            upto = int(seq.max()) if marks is None else _mark(marks, floors, code)
            self._add(code, known, seq[is_new], wall_ns[is_new], upto)
        return rows if keep.all() else rows.where(keep)

    def _add(self, code: int, known: _Seen, seq: Ints, wall_ns: Ints, upto: int) -> None:
        ahead = np.concatenate([known.ahead, seq])
        ahead_ns = np.concatenate([known.ahead_ns, wall_ns])
        upto = max(known.upto, upto)
        if len(ahead) > MOST_AHEAD:
            upto = max(upto, int(ahead.max()))
        below = ahead <= upto
        wall = int(ahead_ns[below].max(initial=known.wall_ns))
        self._seen[code] = _Seen(upto, wall, ahead[~below], ahead_ns[~below])


def _actors(rows: Rows) -> Ints:
    return rows.rank << 32 | rows.incarnation


def _by_actor(actor: Ints) -> Iterator[tuple[int, Ints]]:
    """(code, places) of each."""
    if not len(actor):
        return
    order = np.argsort(actor, kind="stable")
    codes, starts = np.unique(actor[order], return_index=True)
    yield from zip(codes.tolist(), np.split(order, starts[1:]), strict=True)


def _mark(marks: Marks, floors: Mapping[int, int], code: int) -> int:
    """Up to this seq there is nothing left to be read of an actor."""
    mark = marks.get((code >> 32, code & 0xFFFFFFFF), -1)
    return min(mark, floors.get(code, mark + 1) - 1)


def _floors(news: News) -> dict[int, int]:
    """By actor the first of its collectives that have not completed: they are read when they do."""
    rows = news.open()
    found: dict[int, int] = {}
    columns = (rows[name].to_pylist() for name in ("rank", "incarnation", "seq"))
    for rank, incarnation, seq in zip(*columns, strict=True):
        code = rank << 32 | incarnation
        found[code] = min(seq, found.get(code, seq))
    return found


def _keeps_up(known: _Seen | None, seq: Ints, since: int) -> bool:
    """Whether all of an actor's rows that were not read yet are of ``since`` or later."""
    if known is None:
        return int(seq.min()) == 0
    return known.wall_ns >= since
