# mypy: disallow-untyped-decorators=False
"""Compiled: who waited for whom in collectives that everybody has entered; where judged waits lie."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from dashboard.tiles.edges_native import Ints

Flags = npt.NDArray[np.bool_]

N_TO_N, ONE_TO_N, N_TO_ONE = range(3)
NOBODY = -1

_njit: Any = numba.njit(nogil=True, cache=True)


@_njit
def match(
    key: Ints,
    size: Ints,
    rank: Ints,
    arrival: Ints,
    leave: Ints,
    kind: Ints,
    root: Ints,
    end: Ints,
    by: Ints,
    complete: Flags,
) -> None:
    """Judge the instances that are whole.

    Args:
        key: equal for the members of an instance, sorted by it and rank.
        size: how many members it has; 0 where that is not known.
        rank, arrival, kind, root: of each member.
        leave: when it was through, or the largest number.
        end: gets the end of its wait; its arrival where it did not wait.
        by: gets for whom it waited.
        complete: gets whether its instance is whole.
    """
    low, num = 0, key.shape[0]
    while low < num:
        high = low + 1
        same = True
        while high < num and key[high] == key[low]:
            same = same and kind[high] == kind[low] and root[high] == root[low]
            high += 1
        whole = size[low] > 0 and high - low >= size[low]
        last, culprit = np.int64(-(1 << 62)), np.int64(NOBODY)
        for i in range(low, high):
            complete[i] = whole
            end[i] = arrival[i]
            by[i] = NOBODY
            is_root = rank[i] == root[i]
            needed = kind[i] == N_TO_N
            needed = needed or (kind[i] == ONE_TO_N and is_root)
            needed = needed or (kind[i] == N_TO_ONE and root[i] >= 0 and not is_root)
            if needed and arrival[i] > last:
                last, culprit = arrival[i], rank[i]
        if whole and same and culprit != NOBODY:
            for i in range(low, high):
                is_root = rank[i] == root[i]
                if (kind[i] == ONE_TO_N and is_root) or (kind[i] == N_TO_ONE and not is_root):
                    continue
                until = min(last, leave[i])
                if until > arrival[i]:
                    end[i] = until
                    by[i] = culprit
        low = high


@_njit
def lay(actor: Ints, start: Ints, wait: Ints) -> None:
    """Move starts to where the counted part of a judged wait lies.

    The analysis counts of a wait what no earlier one of its actor covers: it begins where those end.

    Args:
        actor: sorted by it, then by start.
        start: when the member was ready; changed.
        wait: ns that were counted, above 0.
    """
    until = np.int64(-(1 << 62))
    for i in range(start.shape[0]):
        if i == 0 or actor[i] != actor[i - 1]:
            until = np.int64(-(1 << 62))
        start[i] = max(start[i], until)
        until = start[i] + wait[i]
