"""Waits for the lanes: from the result table ``waits``, or from the collectives themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dashboard.tiles.edges_native import Ints
from dashboard.tiles.rows import UNKNOWN, Rows
from dashboard.tiles.spans import Spans
from dashboard.tiles.waits_native import lay, match

MAX_PENDING = 1_000_000
"""Entries that wait for the other members of their collective. Of more, the oldest are given up: a
collective whose member died is never whole."""

MAX_COMMS = 100_000
"""Communicators that are known by name. Of more those are forgotten that nothing is kept of; where many
have a size, the oldest of them."""

SETTLE_S = 1.0
"""So long a collective that everybody has entered is waited for to be completed."""

_CSEQ_BITS = 40

_Member = tuple[int, int, int]
"""Instance, rank, incarnation."""


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

    Of a run that grows a collective is laid when all of its members have completed it, because a
    completion may say more of when it began and ended. One that everybody has entered and that does not
    complete is laid after a moment, as it is.

    Args:
        t0: that times count from.

    Attributes:
        num_given_up: entries of collectives that were never whole.
        num_laid: members of collectives that were laid, those that did not wait too.
        is_off: something was laid that is known to be otherwise by now: all must be read again.
    """

    def __init__(self, t0: int) -> None:
        self._t0 = t0
        self._codes: dict[str | None, int] = {}
        self._most_codes = MAX_COMMS
        self._sizes = np.zeros(64, np.int64)
        self._is_laid = np.zeros(64, np.bool_)
        self._pending = np.empty((7, 0), np.int64)
        self._laid_open: dict[_Member, tuple[int, int]] = {}
        """Of members that had not completed when their wait was laid: when it begins and ends."""
        self._held: dict[int, float] = {}
        """Instances that wait for completions alone, and since when."""
        self.num_given_up = self.num_laid = 0
        self.is_off = False

    @property
    def num_pending(self) -> int:
        """Entries whose collective is not whole yet."""
        return self._pending.shape[1]

    @property
    def num_held(self) -> int:
        """Instances that everybody has entered, and whose completions are waited for a moment."""
        return len(self._held)

    def add(
        self,
        lanes: Lanes,
        entered: Rows,
        groups: Rows,
        waiting: Rows | None = None,
        now_s: float = 0.0,
        *,
        is_whole: bool = True,
    ) -> None:
        """Add rows of the tables ``collectives`` and ``groups``.

        Args:
            lanes: get the waits.
            entered: collectives, each once.
            groups: who belongs to which communicator.
            waiting: of a run that grows, every collective that has not completed; ``entered`` has those
                that have, or never will.
            now_s: the clock, for those.
            is_whole: whether no older row is still to come: else a completion may be, though its
                collective is not among ``waiting`` any more.
        """
        resized = self._resize(groups)
        new = self._without_laid(self._columns(entered))
        still = np.empty((7, 0), np.int64) if waiting is None else self._columns(waiting)
        still = self._only_not_laid(still, is_whole)
        concerned = np.isin(self._pending[0], np.concatenate([new[0], still[0]]))
        if len(resized):
            concerned |= np.isin(self._pending[0] >> _CSEQ_BITS, resized)
        rest = self._pending[:, ~concerned]
        every = np.concatenate([self._pending[:, concerned], new, still], axis=1)
        if every.shape[1]:
            left = self._match(lanes, every, every.shape[1] - still.shape[1], now_s)
            self._pending = self._kept(np.concatenate([rest, left], axis=1))
        else:
            self._held = {}
        if len(self._codes) > self._most_codes:
            self._forget_codes()

    def _match(self, lanes: Lanes, every: Ints, num_closed: int, now_s: float) -> Ints:
        """Lay what is whole; the entries that wait on. The open ones come last."""
        order = np.lexsort((every[2], every[1], every[0]))
        is_open = order >= num_closed
        key, rank, _, arrival, leave, kind, root = every = np.ascontiguousarray(every[:, order])
        end, by = np.empty_like(key), np.empty_like(key)
        complete = np.empty(len(key), np.bool_)
        sizes = self._sizes[key >> _CSEQ_BITS]
        match(key, sizes, rank, arrival, leave, kind, root, end, by, complete)
        self._hold(key, is_open, complete, now_s)
        self.num_laid += int(np.count_nonzero(complete))
        self._is_laid[key[complete] >> _CSEQ_BITS] = True
        for at in np.flatnonzero(complete & is_open).tolist():
            member = (int(key[at]), int(rank[at]), int(every[2][at]))
            self._laid_open[member] = (int(arrival[at]), int(end[at]))
        waited = np.flatnonzero(complete & (end > arrival))
        waited = waited[np.lexsort((arrival[waited], rank[waited]))]
        lanes.add(rank[waited], arrival[waited], end[waited], by[waited])
        return every[:, ~complete & ~is_open]

    def _hold(
        self,
        key: Ints,
        is_open: npt.NDArray[np.bool_],
        complete: npt.NDArray[np.bool_],
        now_s: float,
    ) -> None:
        """What has open members is not laid yet: less of it is in ``complete`` then."""
        held = {}
        for one in np.unique(key[complete & is_open]).tolist():
            since_s = self._held.get(one, now_s)
            if now_s - since_s < SETTLE_S:
                held[one] = since_s
        self._held = held
        if held:
            complete &= ~np.isin(key, list(held))

    def _without_laid(self, new: Ints) -> Ints:
        """Less those that were laid before they completed."""
        if not self._laid_open:
            return new
        maybe = np.flatnonzero(np.isin(new[0], [key for key, _, _ in self._laid_open]))
        gone = []
        for at in maybe.tolist():
            key, rank, incarnation, arrival, leave = new[:5, at].tolist()
            laid = self._laid_open.pop((key, rank, incarnation), None)
            if laid is not None:
                gone.append(at)
                self.is_off |= arrival != laid[0] or leave < laid[1]
        return np.delete(new, gone, axis=1)

    def _only_not_laid(self, still: Ints, is_whole: bool) -> Ints:
        """Less those that are laid already; those that will not be heard of again are forgotten."""
        if not self._laid_open:
            return still
        members = list(zip(*(column.tolist() for column in still[:3]), strict=True))
        is_new = np.fromiter((m not in self._laid_open for m in members), np.bool_, len(members))
        if is_whole:
            known = self._laid_open
            self._laid_open = {m: known[m] for m in members if m in known}
        return still[:, is_new]

    def _columns(self, rows: Rows) -> Ints:
        """Rows of ``collectives`` that can be matched, by column."""
        comm = self._code(rows.comm)
        usable = (rows.cseq >= 0) & (rows.kind >= 0) & (comm > 0)
        usable &= rows.cseq < 1 << _CSEQ_BITS
        leave = np.where(rows.end_ns == UNKNOWN, np.iinfo(np.int64).max, rows.end_ns - self._t0)
        return np.stack(
            [
                comm << _CSEQ_BITS | np.maximum(rows.cseq, 0),
                rows.rank,
                rows.incarnation,
                rows.begin_ns - self._t0,
                leave,
                rows.kind,
                rows.root,
            ]
        )[:, usable]

    def _resize(self, groups: Rows) -> Ints:
        """Take in who belongs to which communicator; the communicators that have more members now."""
        comm = self._code(groups.comm)
        before = self._sizes.copy()
        np.maximum.at(self._sizes, comm, np.maximum(groups.cseq, 0))
        resized = np.flatnonzero(self._sizes > before)
        self.is_off |= bool(self._is_laid[resized].any())
        return resized

    def _kept(self, pending: Ints) -> Ints:
        too_many = pending.shape[1] - MAX_PENDING
        if too_many <= 0:
            return pending
        self.num_given_up += too_many
        newest = np.argsort(pending[3], kind="stable")[too_many:]
        return np.ascontiguousarray(pending[:, np.sort(newest)])

    def _forget_codes(self) -> None:
        """Number anew the communicators that something is kept of, in their order."""
        is_used = np.zeros(len(self._sizes), np.bool_)
        is_used[self._pending[0] >> _CSEQ_BITS] = True
        is_used[[key >> _CSEQ_BITS for key in (*self._held, *(m[0] for m in self._laid_open))]] = (
            True
        )
        sized = np.flatnonzero((self._sizes > 0) & ~is_used)
        is_used[sized[-(MAX_COMMS // 2) :]] = True
        is_used[0] = False
        used = np.flatnonzero(is_used)
        number = np.zeros(len(is_used), np.int64)
        number[used] = np.arange(1, len(used) + 1)
        places = number.tolist()

        def moved(key: int) -> int:
            return places[key >> _CSEQ_BITS] << _CSEQ_BITS | key & (1 << _CSEQ_BITS) - 1

        codes = self._pending[0] >> _CSEQ_BITS
        self._pending[0] += (number[codes] - codes) << _CSEQ_BITS
        self._held = {moved(key): since_s for key, since_s in self._held.items()}
        self._laid_open = {(moved(m[0]), m[1], m[2]): at for m, at in self._laid_open.items()}
        self._codes = {word: places[code] for word, code in self._codes.items() if places[code]}
        sizes, is_laid = self._sizes, self._is_laid
        self._sizes, self._is_laid = np.zeros_like(sizes), np.zeros_like(is_laid)
        self._sizes[number[used]], self._is_laid[number[used]] = sizes[used], is_laid[used]
        self._most_codes = max(MAX_COMMS, 2 * len(used))

    def _code(self, comm: Any) -> Ints:
        """A number above 0 for each communicator; 0 for null."""
        coded = comm.dictionary_encode()
        words = coded.dictionary.to_pylist()
        codes = [self._codes.setdefault(word, len(self._codes) + 1) for word in words]
        if len(self._codes) >= len(self._sizes):
            more = len(self._codes)
            self._sizes = np.append(self._sizes, np.zeros(more, np.int64))
            self._is_laid = np.append(self._is_laid, np.zeros(more, np.bool_))
        known = np.array([0, *codes], dtype=np.int64)
        places = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        found: Ints = known[places + 1]
        return found
