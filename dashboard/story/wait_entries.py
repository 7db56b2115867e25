"""When each rank entered each collective that everybody waits in, and who made whom wait by that."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analyzer.instances import N_TO_N

Ints = npt.NDArray[np.int64]

MAX_ENTRIES = 1_000_000
"""That are kept; of more the newest are."""

MIN_CODES = 1_000
"""Of more names of communicators those that have no entry any more are forgotten."""

CSEQ_BITS = 40
_COLUMNS = ("comm_id", "cseq", "rank", "came", "wall_ns")


def entries_sql(since_ns: int) -> str:
    """Asks for the entries of collectives that have completed, from a wall clock on."""
    words = ", ".join(f"'{op}'" for op in sorted(N_TO_N))
    return f"""
        SELECT comm_id, cseq, rank, coalesce(start_ns, enter_ns, wall_ns) AS came, wall_ns
        FROM collectives
        WHERE wall_ns >= {since_ns} AND completed AND op IN ({words})
            AND comm_id IS NOT NULL AND cseq >= 0 AND cseq < {1 << CSEQ_BITS}
    """  # noqa: S608  # numbers and words of ours


def entries_of(rows: pa.Table) -> pa.Table:
    """What ``entries_sql`` asks, of rows of ``collectives`` at hand, whenever they were."""
    wanted = pc.and_(rows["completed"], pc.is_in(rows["op"], pa.array(sorted(N_TO_N))))
    inside = pc.and_(
        pc.greater_equal(rows["cseq"], 0), pc.less(rows["cseq"], pa.scalar(1 << CSEQ_BITS))
    )
    rows = rows.filter(pc.and_(pc.and_(wanted, inside), pc.is_valid(rows["comm_id"])))
    came = pc.coalesce(rows["start_ns"], rows["enter_ns"], rows["wall_ns"])
    columns = [rows["comm_id"], rows["cseq"], rows["rank"], came, rows["wall_ns"]]
    return pa.table(dict(zip(_COLUMNS, columns, strict=True)))


class Pairs(NamedTuple):
    """Who made whom wait, the longest first."""

    caused_by: Ints
    waited: Ints
    num: Ints
    wait_ns: Ints


class WaitEntries:
    """The entries, sorted by collective; they may come in any order.

    Args:
        since_ns: wall clock of the earliest that are kept.
    """

    def __init__(self, since_ns: int) -> None:
        self.since_ns = since_ns
        self._codes: dict[str, int] = {}
        self._most_codes = MIN_CODES
        self._key, self._rank, self._came, self._wall = (np.zeros(0, np.int64) for _ in range(4))

    @property
    def is_full(self) -> bool:
        """Whether some were let go because there were too many."""
        return len(self._key) >= MAX_ENTRIES

    @property
    def num_bytes(self) -> int:
        """In memory."""
        return sum(column.nbytes for column in (self._key, self._rank, self._came, self._wall))

    def add(self, entries: pa.Table) -> None:
        """Add the answer to ``entries_sql``, or ``entries_of`` rows that came."""
        if not entries.num_rows:
            return
        key = self._comm(entries["comm_id"]) << CSEQ_BITS | _ints(entries["cseq"])
        columns = [key, *(_ints(entries[name]) for name in ("rank", "came", "wall_ns"))]
        known = (self._key, self._rank, self._came, self._wall)
        every = [np.concatenate(pair) for pair in zip(known, columns, strict=True)]
        order = np.argsort(every[0], kind="stable")  # quick: what is known is in order
        self._key, self._rank, self._came, self._wall = (column[order] for column in every)
        self.forget(self.since_ns)

    def forget(self, since_ns: int) -> None:
        """Let go of what is older, and of the oldest where there is too much."""
        self.since_ns = max(self.since_ns, since_ns)
        keep = self._wall >= self.since_ns
        num_more = len(self._wall) - MAX_ENTRIES
        if num_more > 0:
            order = np.argpartition(self._wall, num_more)
            keep[order[:num_more]] = False  # of those of one moment some, too
            self.since_ns = max(self.since_ns, int(self._wall[order[num_more]]))
        if not keep.all():
            columns = (self._key, self._rank, self._came, self._wall)
            self._key, self._rank, self._came, self._wall = (column[keep] for column in columns)
            if len(self._codes) > self._most_codes:
                self._forget_codes()

    def _forget_codes(self) -> None:
        """Number anew those that have an entry, in their order: the entries stay sorted."""
        codes = self._key >> CSEQ_BITS
        used, places = np.unique(codes, return_inverse=True)
        number = dict(zip(used.tolist(), range(1, len(used) + 1), strict=True))
        self._codes = {w: number[code] for w, code in self._codes.items() if code in number}
        self._key += (places + 1 - codes) << CSEQ_BITS
        self._most_codes = max(MIN_CODES, 2 * len(used))

    def pairs(self) -> Pairs:
        """Whoever entered last is whom the others waited for; of several the lowest rank."""
        if not len(self._key):
            return Pairs(*(np.zeros(0, np.int64) for _ in Pairs._fields))
        firsts = np.flatnonzero(np.r_[True, self._key[1:] != self._key[:-1]])
        sizes = np.diff(np.r_[firsts, len(self._key)])
        last_at = np.repeat(np.maximum.reduceat(self._came, firsts), sizes)
        is_last = self._came == last_at
        no_rank = np.iinfo(np.int64).max
        last = np.minimum.reduceat(np.where(is_last, self._rank, no_rank), firsts)
        waits = np.flatnonzero(~is_last)
        code = np.repeat(last, sizes)[waits] << 32 | self._rank[waits]
        codes, places, num = np.unique(code, return_inverse=True, return_counts=True)
        wait_ns = np.zeros(len(codes), np.int64)
        np.add.at(wait_ns, places, last_at[waits] - self._came[waits])
        caused_by, waited = codes >> 32, codes & 0xFFFFFFFF
        order = np.lexsort((waited, caused_by, -wait_ns))
        return Pairs(*(column[order] for column in (caused_by, waited, num, wait_ns)))

    def _comm(self, names: Any) -> Ints:
        coded = names.combine_chunks().dictionary_encode()
        words = coded.dictionary.to_pylist()
        codes = [self._codes.setdefault(word, len(self._codes) + 1) for word in words]
        found: Ints = np.array(codes, np.int64)[coded.indices.to_numpy(zero_copy_only=False)]
        return found


def _ints(column: Any) -> Ints:
    found: Ints = column.to_numpy().astype(np.int64, copy=False)
    return found
