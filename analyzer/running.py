"""Small array helpers that several rules share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from analyzer.columns import Flags, Ints


def groups_of(*keys: Ints) -> Ints:
    """One int a row that is equal exactly where all keys are."""
    if not len(keys[0]):
        return np.empty(0, dtype=np.int64)
    combined = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        unique, inverse = np.unique(key, return_inverse=True)
        combined = combined * len(unique) + inverse
        combined = np.unique(combined, return_inverse=True)[1].astype(np.int64)
    return combined


def best_before(group: Ints, value: Ints, counts: Flags) -> Ints:
    """Per position: where the largest counting value before it, in its group, stands; -1 if none.

    Positions are sorted by group; only those with ``counts`` contribute. Of equal values the first
    stands.
    """
    n = len(group)
    if not n:
        return np.empty(0, dtype=np.int64)
    # Rank of (value, earlier first): distinct, so a running maximum of it names a position.
    order = np.lexsort((-np.arange(n), value))
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    running = np.maximum.accumulate(np.where(counts, rank, -1) + group * (n + 1)) - group * (n + 1)
    shifted = np.empty(n, dtype=np.int64)
    shifted[0] = -1
    shifted[1:] = np.where(group[1:] == group[:-1], running[:-1], -1)
    return np.where(shifted < 0, -1, order[np.maximum(shifted, 0)])


def minority(values: Sequence[Hashable]) -> list[int]:
    """Positions that hold other than the most common value; all of them on a tie."""
    counts = Counter(values).most_common()
    if len(counts) > 1 and counts[0][1] == counts[1][1]:
        return list(range(len(values)))
    return [i for i, value in enumerate(values) if value != counts[0][0]]
