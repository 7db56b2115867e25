"""Which completion belongs to which entered collective, in compiled code: a hash table over places.

Senders choose places. Without a secret they could choose such as all begin at one slot, and a batch would
take the square of its length.
"""

from __future__ import annotations

import secrets

import numba
import numpy as np

_njit = numba.njit(nogil=True, cache=True)

SECRET = np.uint64(secrets.randbits(64))
"""Of this process: ``pair_places`` is given it."""


@_njit
def _mixed(bits):  # type: ignore[no-untyped-def]
    """Every bit of the answer depends on every bit given."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@_njit
def slot_of(rank, incarnation, seq, mask, secret):  # type: ignore[no-untyped-def]
    """Where the search for a place begins.

    Each number is mixed by multiplication with what the secret and those before it made: nobody who does
    not know the secret can tell which other one makes up for it.
    """
    bits = _mixed(np.uint64(seq) ^ secret)
    bits = _mixed((bits ^ np.uint64(rank)) * np.uint64(0x9E3779B97F4A7C15) + secret)
    bits = _mixed((bits ^ np.uint64(incarnation)) * np.uint64(0xD6E8FEB86659FD93) + secret)
    return np.int64(bits & np.uint64(mask))


@_njit
def pair_places(  # type: ignore[no-untyped-def]
    rank, incarnation, seq, opened, done, heads, of_opened, of_done, secret
):
    """Join completions to the collectives that they complete.

    Args:
        rank, incarnation, seq: int64, of each record.
        opened, done: int64, the records that are entered collectives, each at another place, and those
            that are completions.
        heads: int64, a power of two of them and more than ``opened`` has, all -1; gets the table.
        of_opened, of_done: int64, all -1; get the place of the other one in ``done`` and ``opened``.
        secret: uint64, ``SECRET``.

    Returns:
        True when a collective is completed twice.
    """
    mask = len(heads) - 1
    twice = False
    for i in range(len(opened)):
        at = opened[i]
        slot = slot_of(rank[at], incarnation[at], seq[at], mask, secret)
        while heads[slot] >= 0:
            slot = (slot + 1) & mask
        heads[slot] = i
    for j in range(len(done)):
        at = done[j]
        slot = slot_of(rank[at], incarnation[at], seq[at], mask, secret)
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
