"""The hash table that pairs completions with collectives: senders choose the keys, and cannot crowd them."""

from __future__ import annotations

import numpy as np
import pytest

from collector.hot.scanned import paired
from collector.wire.pairs_native import SECRET, slot_of

HIGHEST = 1 << 14


def crowded(num):
    """(rank, incarnation, seq) that all began at one slot when nothing about it was secret."""
    rank = np.arange(num, dtype=np.int64)
    return rank, rank << 17, np.zeros(num, np.int64)


def aligned(num):
    """They differ in high bits alone."""
    zero = np.zeros(num, np.int64)
    return zero, zero, np.arange(num, dtype=np.int64) << 40


def plain(num):
    zero = np.zeros(num, np.int64)
    return zero, zero, np.arange(num, dtype=np.int64)


def num_probes(keys, secret):
    """Of a search for each key, in a table as it is made for them."""
    num = len(keys[0])
    size = 1 << (2 * num).bit_length()
    taken, probes = bytearray(size), 0
    for rank, incarnation, seq in zip(*(column.tolist() for column in keys), strict=True):
        slot = slot_of(rank, incarnation, seq, size - 1, secret)
        probes += 1
        while taken[slot]:
            slot = (slot + 1) & (size - 1)
            probes += 1
        taken[slot] = 1
    return probes


@pytest.mark.parametrize("keys", [crowded, aligned, plain])
@pytest.mark.parametrize("num", [4_000, 8_000, HIGHEST])
def test_chosen_places_do_not_crowd(keys, num):
    for secret in (SECRET, np.uint64(0), np.uint64(1), np.uint64((1 << 64) - 1)):
        assert num_probes(keys(num), secret) < 3 * num


def test_where_a_place_lies_is_of_this_process():
    slots = [
        [int(slot_of(0, 0, seq, 1023, np.uint64(secret))) for seq in range(64)]
        for secret in (3, 4, 1 << 63)
    ]
    assert slots[0] != slots[1] != slots[2] != slots[0]


def test_crowded_places_are_paired_right():
    num = 2_000
    rank, incarnation, seq = (np.concatenate([column, column]) for column in crowded(num))
    opened, done = np.arange(num), num + np.random.default_rng(1).permutation(num)
    of_opened, of_done, is_twice = paired(rank, incarnation, seq, opened, done)
    assert not is_twice
    assert (done[of_opened] == opened + num).all() and (opened[of_done] == done - num).all()
