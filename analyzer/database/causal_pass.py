"""The compiled pass over transactions: who is causally before whom, and what reads say of the rest.

A clock is a row of a table: entry ``s`` is the last position in session ``s`` that is causally before.
Rows are freed when their last reader is through, so there are as many as transactions in flight. Those of
transactions that know nothing share the first row.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from analyzer.columns import Ints

MAX_CLOCK_BYTES = 2 << 30
"""Of all clocks at once; beyond it the pass gives up."""

_FIRST_BYTES = 64 << 20


class Passed(NamedTuple):
    """What the pass found."""

    num_done: int
    """Transactions that have a place in the order; fewer than there are where causes form a circle."""
    done: Ints
    """Per transaction 1 where it has."""
    before: Ints
    after: Ints
    by: Ints
    """Forced orders: transaction ``before`` must come before ``after``, because of that read."""
    stale: Ints
    newer: Ints
    """Reads whose value was overwritten for certain, and a transaction that overwrote it."""
    too_large: bool
    """True where it gave up, because the clocks would need more than ``max_bytes``."""


@numba.njit(cache=True)
def causal_pass(
    start: Ints,
    session: Ints,
    read_begin: Ints,
    read_from: Ints,
    read_key: Ints,
    read_op: Ints,
    num_readers: Ints,
    reader_begin: Ints,
    reader: Ints,
    key_begin: Ints,
    span_session: Ints,
    span_begin: Ints,
    span_txn: Ints,
    max_bytes: int,
) -> Passed:
    """One pass in causal order.

    Args:
        start: per session its first transaction, and the end.
        session: of each transaction.
        read_begin: per transaction where its reads of others begin, and the end.
        read_from, read_key, read_op: per read the transaction it read from (-1: the initial value), its
            key's code, its operation.
        num_readers: per transaction how many such reads read from it.
        reader_begin, reader: per transaction the transactions that read from it, once a read.
        key_begin: per key where its spans begin, and the end.
        span_session, span_begin: per span (key and session) its session, where it begins, and the end.
        span_txn: the session's transactions that write the key, ascending.
        max_bytes: of the clocks.
    """
    num, k = len(session), len(start) - 1
    size = max(2, min(1024, num + 1, min(_FIRST_BYTES, max_bytes) // (4 * k)))
    table = np.full((size, k), -1, dtype=np.int32)
    # The first stays as it is.
    num_free = size - 1
    free = np.empty(size, dtype=np.int64)
    free[:num_free] = np.arange(1, size)[::-1]
    too_large = False
    row = np.full(num, -1, dtype=np.int64)
    uses = num_readers.copy()
    unmet = np.zeros(num, dtype=np.int64)
    for t in range(num):
        for e in range(read_begin[t], read_begin[t + 1]):
            if read_from[e] >= 0:
                unmet[t] += 1
    at = start[:-1].copy()
    stack = np.arange(k)[::-1].copy()
    stacked = np.ones(k, dtype=np.bool_)
    depth = k
    done = np.zeros(num, dtype=np.int64)
    num_done = 0
    before = []
    after = []
    by = []
    stale = []
    newer = []
    while depth > 0 and not too_large:
        depth -= 1
        s = stack[depth]
        stacked[s] = False
        while at[s] < start[s + 1] and unmet[at[s]] == 0:
            t = at[s]
            causes = 0
            for e in range(read_begin[t], read_begin[t + 1]):
                causes += read_from[e] >= 0
            if t == start[s] and causes == 0:
                mine = 0
            elif t > start[s] and uses[t - 1] == 0 and row[t - 1] > 0:
                mine = row[t - 1]  # nobody else asks for it any more
            else:
                if num_free == 0:
                    size = table.shape[0]
                    if 8 * size * k > max_bytes:
                        too_large = True
                        break
                    wider = np.empty((2 * size, k), dtype=np.int32)
                    wider[:size] = table  # the new half is touched only as it fills
                    table = wider
                    free = np.empty(2 * size, dtype=np.int64)
                    free[:size] = np.arange(size, 2 * size)[::-1]
                    num_free = size
                num_free -= 1
                mine = free[num_free]
                table[mine] = table[row[t - 1] if t > start[s] else 0]
            if t > start[s]:
                table[mine, s] = t - 1
            for e in range(read_begin[t], read_begin[t + 1]):
                f = read_from[e]
                if f >= 0 and table[mine, session[f]] < f:
                    other = row[f]
                    if other > 0:
                        for c in range(k):
                            if table[other, c] > table[mine, c]:
                                table[mine, c] = table[other, c]
                    table[mine, session[f]] = f
            row[t] = mine
            for e in range(read_begin[t], read_begin[t + 1]):
                f, x = read_from[e], read_key[e]
                for span in range(key_begin[x], key_begin[x + 1]):
                    w = span_session[span]
                    upto = table[mine, w]
                    low, high = span_begin[span], span_begin[span + 1]
                    if upto < span_txn[low]:
                        continue
                    place = low + np.searchsorted(span_txn[low:high], upto, side="right") - 1
                    other = span_txn[place]
                    if other == f:
                        continue
                    if f < 0 or (session[f] == w and other > f):
                        stale.append(read_op[e])
                        newer.append(other)
                    elif session[f] != w and table[row[f], w] < other:
                        before.append(other)
                        after.append(f)
                        by.append(read_op[e])
            for e in range(read_begin[t], read_begin[t + 1]):
                f = read_from[e]
                if f >= 0:
                    uses[f] -= 1
                    # Nobody after it, or who came after it is through; else its row is taken over.
                    last = f + 1 == start[session[f] + 1]
                    if uses[f] == 0 and (last or at[session[f]] > f + 1) and row[f] > 0:
                        free[num_free] = row[f]
                        num_free += 1
            if t > start[s] and row[t - 1] != mine and uses[t - 1] == 0 and row[t - 1] > 0:
                free[num_free] = row[t - 1]
                num_free += 1
            if t + 1 == start[s + 1] and uses[t] == 0 and mine > 0:
                free[num_free] = mine
                num_free += 1
            done[t] = 1
            num_done += 1
            at[s] = t + 1
            for e in range(reader_begin[t], reader_begin[t + 1]):
                r = reader[e]
                unmet[r] -= 1
                q = session[r]
                if unmet[r] == 0 and at[q] == r and not stacked[q] and q != s:
                    stacked[q] = True
                    stack[depth] = q
                    depth += 1
    return Passed(
        num_done,
        done,
        np.array(before, dtype=np.int64),
        np.array(after, dtype=np.int64),
        np.array(by, dtype=np.int64),
        np.array(stale, dtype=np.int64),
        np.array(newer, dtype=np.int64),
        too_large,
    )


@numba.njit(cache=True)
def in_order(begin: Ints, target: Ints, num: int) -> Ints:
    """Per node 1 where a topological order reaches it; 0 on and behind circles."""
    degree = np.zeros(num, dtype=np.int64)
    for node in target:
        degree[node] += 1
    queue = np.empty(num, dtype=np.int64)
    tail = 0
    for node in range(num):
        if degree[node] == 0:
            queue[tail] = node
            tail += 1
    reached = np.zeros(num, dtype=np.int64)
    head = 0
    while head < tail:
        node = queue[head]
        head += 1
        reached[node] = 1
        for e in range(begin[node], begin[node + 1]):
            degree[target[e]] -= 1
            if degree[target[e]] == 0:
                queue[tail] = target[e]
                tail += 1
    return reached
