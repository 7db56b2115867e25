"""What a scanned batch says of its actors, without making its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from collector.wire.batch import Scan
from collector.wire.scan_plan import DONE, NUMBER

_DONE = NUMBER[DONE]

Stretch = tuple[tuple[int, int], int, int]
"""(rank, incarnation), first seq, last seq."""

PlaceKey = tuple[int, int, int]
"""(rank, incarnation, seq)"""


class Completions(NamedTuple):
    """The completions of a batch.

    Attributes:
        all: of every one, the row that it completes.
        before: of those, the rows that were not entered in this batch before them.
    """

    all: list[PlaceKey]
    before: list[PlaceKey]


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
    done = _places(scan, np.flatnonzero(scan.kinds == _DONE))
    if not done:
        return Completions([], [])
    waiting = set(_places(scan, np.flatnonzero(scan.opens)))
    before = []
    for key in done:
        if key in waiting:
            waiting.remove(key)
        else:
            before.append(key)
    return Completions(done, before)


def open_places(scan: Scan) -> tuple[list[PlaceKey], list[PlaceKey]]:
    """(rows that this batch leaves open, rows of earlier batches that it completes)."""
    done = _places(scan, np.flatnonzero(scan.kinds == _DONE))
    entered = _places(scan, np.flatnonzero(scan.opens))
    mine = set(entered)
    completed = set(done)
    return [k for k in entered if k not in completed], [k for k in done if k not in mine]


def _places(scan: Scan, at: np.ndarray) -> list[PlaceKey]:
    columns = (scan.rank[at], scan.incarnation[at], scan.seq[at])
    return list(zip(*(column.tolist() for column in columns), strict=True))
