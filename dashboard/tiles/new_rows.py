"""Rows of a run that grows: each is read once, in whatever order they come."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dashboard.tiles.edges_native import Ints
from dashboard.tiles.rows import Rows, rows_beyond
from dashboard.tiles.source import RowSource

NEW_NS = 120 * 10**9
"""Rows so far behind the newest are looked for now and then only."""

WHOLE_S = 5.0
SHARE = 20
"""Between two looks at everything: so many seconds, and so many times what one takes."""

MOST_AHEAD = 1_000_000
"""Of an actor's rows beyond a hole: who has more is read on from there, and the hole stays."""


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


class NewRows:
    """The rows of a run that grows, each once.

    Most looks are at the newest minutes only, which leaves stored files alone. They take the rows of
    actors that were that far already and of those that begin there; who lags behind, or comes late,
    is read by a look at everything, now and then.

    A sender's batches need not come in order. A source that can tell how far an actor's rows are all
    there (``RowSource.marks``) is read again from there on, and what was read already is left out.

    Args:
        mono_s: the clock.
    """

    def __init__(self, mono_s: Callable[[], float] = time.monotonic) -> None:
        self._mono_s = mono_s
        self._seen: dict[int, _Seen] = {}
        self._newest: int | None = None
        self._whole_at_s = 0.0

    def read(self, source: RowSource) -> Rows:
        """What came since the last time; ``source`` is the same run each time, and not kept."""
        began = self._mono_s()
        marks = source.marks()  # before the rows: all up to a mark are among them
        since = None
        if self._newest is None or began >= self._whole_at_s:
            rows = self._look(source, None)
            self._whole_at_s = self._mono_s() + max(WHOLE_S, SHARE * (self._mono_s() - began))
        else:
            since = self._newest - NEW_NS
            rows = self._look(source, since)
        return self._only_new(rows, marks, since)

    def _only_new(
        self, rows: Rows, marks: dict[tuple[int, int], int] | None, since: int | None
    ) -> Rows:
        """Less what was read before, and less actors of whom older rows may be missing here."""
        if not len(rows.what):
            return rows
        self._newest = max(self._newest or 0, int(rows.wall_ns.max()))
        actor = rows.rank << 32 | rows.incarnation
        keep = np.zeros(len(actor), np.bool_)
        order = np.argsort(actor, kind="stable")
        codes, starts = np.unique(actor[order], return_index=True)
        for code, mine in zip(codes.tolist(), np.split(order, starts[1:]), strict=True):
            known = self._seen.get(code)
            seq, wall_ns = rows.seq[mine], rows.wall_ns[mine]
            if since is not None and not _keeps_up(known, seq, since):
                continue
            known = known or _Seen(-1, 0, _NOTHING, _NOTHING)
            is_new = ~np.isin(seq, known.ahead)
            keep[mine] = is_new
            ahead = np.concatenate([known.ahead, seq[is_new]])
            ahead_ns = np.concatenate([known.ahead_ns, wall_ns[is_new]])
            upto = int(ahead.max(initial=known.upto))
            if marks is not None and len(ahead) <= MOST_AHEAD:
                upto = max(known.upto, marks.get((code >> 32, code & 0xFFFFFFFF), -1))
            below = ahead <= upto
            wall = int(ahead_ns[below].max(initial=known.wall_ns))
            self._seen[code] = _Seen(upto, wall, ahead[~below], ahead_ns[~below])
        return rows if keep.all() else rows.where(keep)

    def _look(self, source: RowSource, since: int | None) -> Rows:
        seen = [(code >> 32, code & 0xFFFFFFFF, known.upto) for code, known in self._seen.items()]
        return rows_beyond(source, seen, since)


def _keeps_up(known: _Seen | None, seq: Ints, since: int) -> bool:
    """Whether all of an actor's rows that were not read yet are of ``since`` or later."""
    if known is None:
        return int(seq.min()) == 0
    return known.wall_ns >= since + NEW_NS // 2
