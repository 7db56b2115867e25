"""Which completion belongs to which entered collective, in compiled code: a hash table over places."""

from __future__ import annotations

import numba
import numpy as np

_njit = numba.njit(nogil=True, cache=True)


@_njit
def _slot(rank, incarnation, seq, mask):  # type: ignore[no-untyped-def]
    """Where the search for a place begins."""
    mixed = np.uint64(seq) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= (np.uint64(rank) << np.uint64(17)) ^ np.uint64(incarnation)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return np.int64((mixed >> np.uint64(20)) & np.uint64(mask))


@_njit
def pair_places(rank, incarnation, seq, opened, done, heads, of_opened, of_done):  # type: ignore[no-untyped-def]
    """Join completions to the collectives that they complete.

    Args:
        rank, incarnation, seq: int64, of each record.
        opened, done: int64, the records that are entered collectives, each at another place, and those
            that are completions.
        heads: int64, a power of two of them and more than ``opened`` has, all -1; gets the table.
        of_opened, of_done: int64, all -1; get the place of the other one in ``done`` and ``opened``.

    Returns:
        True when a collective is completed twice.
    """
    mask = len(heads) - 1
    twice = False
    for i in range(len(opened)):
        at = opened[i]
        slot = _slot(rank[at], incarnation[at], seq[at], mask)
        while heads[slot] >= 0:
            slot = (slot + 1) & mask
        heads[slot] = i
    for j in range(len(done)):
        at = done[j]
        slot = _slot(rank[at], incarnation[at], seq[at], mask)
        while heads[slot] >= 0:
            i = heads[slot]
            other = opened[i]
            if (
                seq[other] == seq[at]
                and rank[other] == rank[at]
                and incarnation[other] == incarnation[at]
            ):
                twice = twice or of_opened[i] >= 0
                of_opened[i], of_done[j] = j, i
                break
            slot = (slot + 1) & mask
    return twice
