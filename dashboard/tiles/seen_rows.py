"""Which rows of a run were read already, for whoever asks for the others by SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from dashboard.tiles.edges_native import Ints
from dashboard.tiles.rows import Rows

MOST_AHEAD = 200_000
"""Of an actor's rows beyond a hole: of more only the later half is kept apart, and holes before it stay."""

Marks = Mapping[tuple[int, int], int]


class _Seen(NamedTuple):
    """How far an actor was read: every row up to a seq but for a few, and some beyond a hole.

    Attributes:
        upto: that seq.
        wall_ns: of the latest row up to there.
        ahead, ahead_ns: seqs beyond it that were read, and their times.
        open: seqs up to there of collectives that had not completed: they are read when they do.
    """

    upto: int
    wall_ns: int
    ahead: Ints
    ahead_ns: Ints
    open: Ints


_NOTHING = np.zeros(0, np.int64)
_BEGIN = _Seen(-1, 0, _NOTHING, _NOTHING, _NOTHING)


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
        self._waiting: Rows | None = None
        self.num_noted = 0

    def upto(self) -> list[tuple[int, int, int]]:
        """(rank, incarnation, seq up to which every row was read, but for ``open``) of each actor."""
        return [(code >> 32, code & 0xFFFFFFFF, known.upto) for code, known in self._seen.items()]

    def open(self) -> list[tuple[int, int, int]]:
        """(rank, incarnation, seq) of the collectives up to there that had not completed."""
        return [
            (code >> 32, code & 0xFFFFFFFF, seq)
            for code, known in self._seen.items()
            for seq in known.open.tolist()
        ]

    def note(self, rows: Rows, waiting: Rows) -> None:
        """These were read; cheap.

        Args:
            rows: new ones.
            waiting: every collective that had not completed then.
        """
        if len(rows.seq):
            self._noted.append((_actors(rows), rows.seq, rows.wall_ns))
            self.num_noted += len(rows.seq)
            self._waiting = waiting

    def settle(self, marks: Marks | None) -> None:
        """Sort what was noted under its actors.

        Args:
            marks: up to which every row was read, or never comes; None where that is not known.
        """
        noted, self._noted, self.num_noted = self._noted, [], 0
        waiting, self._waiting = self._waiting, None
        if not noted or waiting is None:
            return
        actor, seq, wall_ns = (np.concatenate(column) for column in zip(*noted, strict=True))
        still = _seqs(waiting)
        for code, mine in _by_actor(actor):
            known = self._seen.get(code, _BEGIN)
            upto = known.upto if marks is None else _mark(marks, code)
            self._add(code, known, seq[mine], wall_ns[mine], upto, still.get(code, _NOTHING))

    def take(
        self, rows: Rows, marks: Marks | None, waiting: Rows, since: int | None, new_ns: int
    ) -> Rows:
        """Of the answer to a look what was not read before; it is read then.

        Args:
            rows: the answer.
            marks: as they were before the look.
            waiting: every collective that had not completed, as of the answer.
            since: wall clock that the look began at: actors of whom older rows may be missing are left out.
            new_ns: how far behind the newest row that is.
        """
        keep = np.zeros(len(rows.seq), np.bool_)
        still = _seqs(waiting)
        for code, mine in _by_actor(_actors(rows)):
            known = self._seen.get(code)
            seq, wall_ns = rows.seq[mine], rows.wall_ns[mine]
            if since is not None and not _keeps_up(known, seq, since + new_ns // 2):
                continue
            known = known or _BEGIN
            is_new = ~np.isin(seq, known.ahead)
            keep[mine] = is_new
            upto = int(seq.max()) if marks is None else _mark(marks, code)
            mine_open = still.get(code, _NOTHING)
            self._add(code, known, seq[is_new], wall_ns[is_new], upto, mine_open)
        return rows if keep.all() else rows.where(keep)

    def _add(
        self, code: int, known: _Seen, seq: Ints, wall_ns: Ints, upto: int, still: Ints
    ) -> None:
        ahead = np.concatenate([known.ahead, seq])
        ahead_ns = np.concatenate([known.ahead_ns, wall_ns])
        upto = max(known.upto, upto)
        beyond = ahead[ahead > upto]
        if len(beyond) > MOST_AHEAD:
            last = len(beyond) - MOST_AHEAD // 2 - 1
            upto = int(np.partition(beyond, last)[last])
        below = ahead <= upto
        wall = int(ahead_ns[below].max(initial=known.wall_ns))
        is_open = np.setdiff1d(np.union1d(known.open, still[still <= upto]), seq)
        self._seen[code] = _Seen(upto, wall, ahead[~below], ahead_ns[~below], is_open)


def _actors(rows: Rows) -> Ints:
    return rows.rank << 32 | rows.incarnation


def _by_actor(actor: Ints) -> Iterator[tuple[int, Ints]]:
    """(code, places) of each."""
    if not len(actor):
        return
    order = np.argsort(actor, kind="stable")
    codes, starts = np.unique(actor[order], return_index=True)
    yield from zip(codes.tolist(), np.split(order, starts[1:]), strict=True)


def _mark(marks: Marks, code: int) -> int:
    """Up to this seq all of an actor's rows are there."""
    return marks.get((code >> 32, code & 0xFFFFFFFF), -1)


def _seqs(waiting: Rows) -> dict[int, Ints]:
    """By actor its collectives that have not completed."""
    return {code: waiting.seq[mine] for code, mine in _by_actor(_actors(waiting))}


def _keeps_up(known: _Seen | None, seq: Ints, since: int) -> bool:
    """Whether all of an actor's rows that were not read yet are of ``since`` or later."""
    if known is None:
        return int(seq.min()) == 0
    return known.wall_ns >= since
