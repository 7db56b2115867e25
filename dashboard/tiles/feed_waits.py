"""Waits for the lanes: from the result table ``waits``, or from the collectives themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from dashboard.tiles.edges_native import Ints
from dashboard.tiles.rows import UNKNOWN, Rows
from dashboard.tiles.spans import Spans
from dashboard.tiles.waits_native import lay, match

MAX_PENDING = 1_000_000
"""Entries that wait for the other members of their collective. Of more, the oldest are given up: a
collective whose member died is never whole."""

_CSEQ_BITS = 40


class Lanes:
    """The two lanes of waits: who waited, and who was waited for."""

    def __init__(self) -> None:
        self.waited = Spans(union=True)
        self.caused = Spans(union=False)

    def add(self, rank: Ints, start: Ints, end: Ints, by: Ints) -> None:
        """Add waits, sorted by start in each rank.

        A rank that waits in several collectives at once waits once; what counts of a wait is said
        to be caused by the rank that it was for.
        """
        counted = self.waited.uncovered(rank, start, end)
        self.waited.add(rank, start, end)
        blamed = (by >= 0) & (counted > 0)
        self.caused.add(by[blamed], (end - counted)[blamed], end[blamed])


def add_judged(lanes: Lanes, t0: int, waits: Any) -> None:
    """Add a part of ``rows.judged_parts``."""
    rank, incarnation, begin, wait, by = (
        waits[name].to_numpy() for name in ("rank", "incarnation", "begin_ns", "wait_ns", "by")
    )
    actor = rank << 32 | incarnation
    order = np.lexsort((begin, actor))
    start, wait = begin[order] - t0, wait[order]
    lay(actor[order], start, wait)
    lanes.add(rank[order], start, start + wait, by[order])


class Provisional:
    """Finds waits in collectives as they come, in any order.

    Args:
        t0: that times count from.
    """

    def __init__(self, t0: int) -> None:
        self._t0 = t0
        self._codes: dict[str | None, int] = {}
        self._sizes = np.zeros(64, np.int64)
        self._pending = np.empty((7, 0), np.int64)
        self.num_given_up = 0
        """Entries of collectives that were never whole."""

    @property
    def num_pending(self) -> int:
        """Entries whose collective is not whole yet."""
        return self._pending.shape[1]

    def add(self, lanes: Lanes, entered: Rows, groups: Rows) -> None:
        """Add rows of the tables ``collectives`` and ``groups``."""
        comm = self._code(groups.comm)
        np.maximum.at(self._sizes, comm, np.maximum(groups.cseq, 0))
        comm = self._code(entered.comm)
        usable = (entered.cseq >= 0) & (entered.kind >= 0) & (comm > 0)
        usable &= entered.cseq < 1 << _CSEQ_BITS
        leave = np.where(
            entered.end_ns == UNKNOWN, np.iinfo(np.int64).max, entered.end_ns - self._t0
        )
        new = np.stack(
            [
                comm << _CSEQ_BITS | np.maximum(entered.cseq, 0),
                entered.rank,
                entered.incarnation,
                entered.begin_ns - self._t0,
                leave,
                entered.kind,
                entered.root,
            ]
        )[:, usable]
        if new.shape[1]:
            self._match(lanes, np.concatenate([self._pending, new], axis=1))
        elif len(groups.rank) and self.num_pending:
            self._match(lanes, self._pending)

    def _match(self, lanes: Lanes, every: Ints) -> None:
        order = np.lexsort((every[2], every[1], every[0]))
        key, rank, _, arrival, leave, kind, root = every = np.ascontiguousarray(every[:, order])
        end, by = np.empty_like(key), np.empty_like(key)
        complete = np.empty(len(key), np.bool_)
        sizes = self._sizes[key >> _CSEQ_BITS]
        match(key, sizes, rank, arrival, leave, kind, root, end, by, complete)
        self._pending = self._kept(every[:, ~complete])
        waited = np.flatnonzero(complete & (end > arrival))
        waited = waited[np.lexsort((arrival[waited], rank[waited]))]
        lanes.add(rank[waited], arrival[waited], end[waited], by[waited])

    def _kept(self, pending: Ints) -> Ints:
        too_many = pending.shape[1] - MAX_PENDING
        if too_many <= 0:
            return pending
        self.num_given_up += too_many
        newest = np.argsort(pending[3], kind="stable")[too_many:]
        return np.ascontiguousarray(pending[:, np.sort(newest)])

    def _code(self, comm: Any) -> Ints:
        """A number above 0 for each communicator; 0 for null."""
        coded = comm.dictionary_encode()
        words = coded.dictionary.to_pylist()
        codes = [self._codes.setdefault(word, len(self._codes) + 1) for word in words]
        if len(self._codes) >= len(self._sizes):
            self._sizes = np.append(self._sizes, np.zeros(len(self._codes), np.int64))
        known = np.array([0, *codes], dtype=np.int64)
        places = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        found: Ints = known[places + 1]
        return found
