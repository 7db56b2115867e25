"""The compiled passes of the session rules: where what an actor reads of an object goes back.

Reads come group by group (one actor, object and session), in order inside each.
"""

from __future__ import annotations

import numba
import numpy as np

from analyzer.clock_pass import Table
from analyzer.columns import NULL, Flags, Ints


@numba.njit(cache=True)
def folded_less(
    group: Ints, begin: Ints, author: Ints, top: Ints, num_authors: int
) -> tuple[Ints, Ints]:
    """Reads by frontier that lack what an earlier one of their group had.

    Args:
        group: per read; equal ones lie together.
        begin: per read where its entries begin, and the end.
        author, top: per entry, whose it is and that author's last update on the object that it covers,
            as a number that grows along an author's updates; -1: none.
        num_authors: authors are below this.

    Returns:
        (per read the earlier one, or -1; the number that it had of the author that is behind).
    """
    n = len(group)
    earlier = np.full(n, -1, dtype=np.int64)
    had = np.full(n, -1, dtype=np.int64)
    best = np.full(num_authors, -1, dtype=np.int64)
    of = np.zeros(num_authors, dtype=np.int64)
    now = np.full(num_authors, -1, dtype=np.int64)
    known = np.zeros(num_authors, dtype=np.int64)
    num_known = 0
    for i in range(n):
        if i == 0 or group[i] != group[i - 1]:
            for k in range(num_known):
                best[known[k]] = -1
            num_known = 0
        for e in range(begin[i], begin[i + 1]):
            now[author[e]] = max(now[author[e]], top[e])
        for k in range(num_known):
            a = known[k]
            if now[a] < best[a] and (earlier[i] < 0 or best[a] < had[i]):
                earlier[i] = of[a]
                had[i] = best[a]
        for e in range(begin[i], begin[i + 1]):
            a = author[e]
            if now[a] > best[a]:
                if best[a] < 0:
                    known[num_known] = a
                    num_known += 1
                best[a] = now[a]
                of[a] = i
            now[a] = -1
    return earlier, had


@numba.njit(cache=True)
def older(
    one: int, other: int, issued: Ints, version: Ints, actor: Ints, clock: Ints, table: Table
) -> bool:
    """True when dot ``one`` is an older version than ``other``; a negative dot is the initial value.

    Args:
        one, other: indices into ``issued`` and ``version``, one a distinct dot.
        issued: row of each dot's issue, or -1.
        version: of each dot, or NULL.
        actor: of each row.
        clock, table: as ``HappensBefore.clocks``.
    """
    if one == other or other < 0:
        return False
    if one < 0:
        return True
    a, b = issued[one], issued[other]
    if a < 0 or b < 0:
        return False
    if version[one] != NULL and version[other] != NULL:
        return bool(version[one] < version[other])
    return _before(a, b, actor, clock, table)


@numba.njit(cache=True)
def seen_newer(
    group: Ints,
    dot: Ints,
    counts: Flags,
    issued: Ints,
    version: Ints,
    actor: Ints,
    clock: Ints,
    table: Table,
) -> Ints:
    """Per read by dot an earlier one of its group that saw a newer dot, or -1.

    Args:
        group: per read; equal ones lie together.
        dot: per read the distinct dot that it saw; -1: the initial value.
        counts: False where the dot is void, so that nothing is older than it.
        issued, version, actor, clock, table: as for ``older``.
    """
    n = len(group)
    found = np.full(n, -1, dtype=np.int64)
    kept = np.empty(n, dtype=np.int64)
    num = 0
    for i in range(n):
        if i == 0 or group[i] != group[i - 1]:
            num = 0
        d = dot[i]
        again = False
        for k in range(num):
            again = again or dot[kept[k]] == d
            if found[i] < 0 and older(d, dot[kept[k]], issued, version, actor, clock, table):
                found[i] = kept[k]
        if again or d < 0 or not counts[i]:
            continue
        # Forget what this one stands for: all that is older than it is older than this one.
        left = 0
        for k in range(num):
            s = dot[kept[k]]
            covered = issued[s] >= 0 and issued[d] >= 0
            covered = covered and (
                version[s] == NULL or (version[d] != NULL and version[d] >= version[s])
            )
            if not (covered and _before(issued[s], issued[d], actor, clock, table)):
                kept[left] = kept[k]
                left += 1
        kept[left] = i
        num = left + 1
    return found


@numba.njit(cache=True)
def older_many(
    one: Ints, other: Ints, issued: Ints, version: Ints, actor: Ints, clock: Ints, table: Table
) -> Flags:
    """``older`` for pairs."""
    found = np.zeros(len(one), dtype=np.bool_)
    for i in range(len(one)):
        found[i] = older(one[i], other[i], issued, version, actor, clock, table)
    return found


@numba.njit(cache=True)
def _before(first: int, second: int, actor: Ints, clock: Ints, table: Table) -> bool:
    a = actor[first]
    if a == actor[second]:
        return bool(first < second)
    return bool(table[clock[second], a] >= first)
