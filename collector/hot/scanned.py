"""What a scanned batch says of its actors, without making its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from collector.wire.batch import Scan
from collector.wire.pairs_native import pair_places
from collector.wire.scan_plan import DONE, NUMBER, Ints

_DONE = NUMBER[DONE]

Stretch = tuple[tuple[int, int], int, int]
"""(rank, incarnation), first seq, last seq."""

PlaceKey = tuple[int, int, int]
"""(rank, incarnation, seq)"""


class Completions(NamedTuple):
    """What the completions of a batch belong to.

    Attributes:
        here: places of the rows that they complete in this batch, int64[3, completions].
        before: the others' rows, which were entered earlier.
        left_open: rows that are entered here and not completed.
        is_twice: whether two are of one row that is entered here.
    """

    here: Ints
    before: list[PlaceKey]
    left_open: list[PlaceKey]
    is_twice: bool

    @property
    def num(self) -> int:
        """How many there are."""
        return int(self.here.shape[1]) + len(self.before)


def new_stretches(scan: Scan) -> list[Stretch] | None:
    """The seqs that the rows take, a stretch an actor; None when they are not in a row."""
    rows = np.flatnonzero(scan.kinds != _DONE)
    if not len(rows):
        return []
    rank, incarnation, seq = (part[rows] for part in (scan.rank, scan.incarnation, scan.seq))
    actor = rank << 31 | incarnation
    order = np.arange(len(rows))
    if not (actor == actor[0]).all():
        order = np.argsort(actor, kind="stable")
        actor, seq = actor[order], seq[order]
    same = actor[1:] == actor[:-1]
    if not (seq[1:][same] == seq[:-1][same] + 1).all():
        return None
    firsts = np.concatenate(([0], np.flatnonzero(~same) + 1))
    lasts = np.concatenate((firsts[1:] - 1, [len(seq) - 1]))
    at = order[firsts]
    actors = zip(rank[at].tolist(), incarnation[at].tolist(), strict=True)
    return list(zip(actors, seq[firsts].tolist(), seq[lasts].tolist(), strict=True))


def actors_of_each(scan: Scan, nums: Sequence[int]) -> list[list[tuple[int, int]]]:
    """The actors of several batches that were joined into one.

    Args:
        scan: of all of them.
        nums: records of each.
    """
    batch = np.repeat(np.arange(len(nums)), nums)
    order = np.lexsort((scan.incarnation, scan.rank, batch))
    batch, rank, incarnation = (part[order] for part in (batch, scan.rank, scan.incarnation))
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (
        (batch[1:] != batch[:-1]) | (rank[1:] != rank[:-1]) | (incarnation[1:] != incarnation[:-1])
    )
    actors: list[list[tuple[int, int]]] = [[] for _ in nums]
    columns = (part[fresh].tolist() for part in (batch, rank, incarnation))
    for number, *actor in zip(*columns, strict=True):
        actors[number].append((actor[0], actor[1]))
    return actors


def scan_completions(scan: Scan) -> Completions:
    """The completions, and which of them need a row that came earlier."""
    opened, done = np.flatnonzero(scan.opens), np.flatnonzero(scan.kinds == _DONE)
    of_opened, of_done, is_twice = paired(scan.rank, scan.incarnation, scan.seq, opened, done)
    here = done[of_done >= 0]
    return Completions(
        np.stack([scan.rank[here], scan.incarnation[here], scan.seq[here]]),
        _places(scan, done[of_done < 0]),
        _places(scan, opened[of_opened < 0]),
        is_twice,
    )


def paired(
    rank: Ints, incarnation: Ints, seq: Ints, opened: Ints, done: Ints
) -> tuple[Ints, Ints, bool]:
    """Join the completions among records to the collectives among them.

    Args:
        rank, incarnation, seq: of each record.
        opened: the records that are entered collectives, each at another place.
        done: those that are completions.

    Returns:
        For each of ``opened`` its place in ``done``, for each of ``done`` its place in ``opened`` (-1
        where there is none), and whether a collective is completed twice.
    """
    of_opened, of_done = np.full(len(opened), -1, np.int64), np.full(len(done), -1, np.int64)
    if not len(opened) or not len(done):
        return of_opened, of_done, False
    heads = np.full(1 << (2 * len(opened)).bit_length(), -1, np.int64)
    is_twice = pair_places(rank, incarnation, seq, opened, done, heads, of_opened, of_done)
    return of_opened, of_done, bool(is_twice)


def _places(scan: Scan, at: np.ndarray) -> list[PlaceKey]:
    if not len(at):
        return []
    columns = (scan.rank[at], scan.incarnation[at], scan.seq[at])
    return list(zip(*(column.tolist() for column in columns), strict=True))
