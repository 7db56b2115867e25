"""The one topological pass that gives every row its vector clock (numba).

A clock is a row of a shared table: entry ``b`` is the last row number of actor ``b`` that
happened-before (-1: none); the actor's own entry is implicit. Rows that learn nothing share their
predecessor's clock, the members of an n-to-n collective share one (findings of the design, after
tree clocks, Mathur et al., ASPLOS 2022: pay for what changed).

The compiled loop allocates nothing and hands back to Python when its table is full or when it meets
a cycle; so it compiles in a second or two.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from analyzer.columns import Ints

Table = npt.NDArray[np.int32]

_DONE, _FULL, _STUCK = 0, 1, 2
_USED, _DEPTH, _TODO = 0, 1, 2


class Clocked(NamedTuple):
    """What the pass found."""

    clock: Ints
    """Per row an index into ``table``."""
    table: Table
    cycles: list[list[int]]
    """Rows of each cycle. It is cut at one row, whose unmet edges are left out, so the clocks after
    it say less than the edges do."""


def clock_pass(
    start: Ints,
    actor: Ints,
    in_begin: Ints,
    in_source: Ints,
    out_begin: Ints,
    out_target: Ints,
    num_hubs: int,
) -> Clocked:
    """Clocks of all rows.

    Args:
        start: where each actor's rows begin, and the end.
        actor: actor of each row.
        in_begin, in_source: per node (rows, then hubs) the sources of edges into it.
        out_begin, out_target: per node the targets of edges out of it.
        num_hubs: how many hub nodes follow the rows.
    """
    n, k = len(actor), len(start) - 1
    clock = np.zeros(n, dtype=np.int64)
    hub_clock = np.full(num_hubs, -1, dtype=np.int64)
    hub_base = np.full(num_hubs, -2, dtype=np.int64)
    unmet = np.diff(in_begin)
    at = start[:-1].copy()
    stack = np.zeros(k + 1, dtype=np.int64)
    stack[:k] = np.arange(k)[::-1]
    stacked = np.ones(k, dtype=np.bool_)
    # The first clock knows nothing.
    table = np.full((1024, k), -1, dtype=np.int32)
    state = np.array([1, k, n], dtype=np.int64)
    cycles: list[list[int]] = []
    while True:
        status = _advance(
            start, actor, in_begin, in_source, out_begin, out_target,
            clock, hub_clock, hub_base, unmet, at, stack, stacked, table, state,
        )  # fmt: skip
        if status == _DONE:
            return Clocked(clock, table[: int(state[_USED])], cycles)
        if status == _FULL:
            wider = np.empty((2 * len(table), k), dtype=np.int32)
            wider[: len(table)] = table  # the new half is touched only as it fills
            table = wider
        else:
            cycle = _find_cycle(n, start, actor, at, in_begin, in_source)
            cycles.append(cycle)
            cut = int(actor[cycle[0]])
            unmet[at[cut]] = 0
            stacked[cut] = True
            stack[state[_DEPTH]] = cut
            state[_DEPTH] += 1


@numba.njit(cache=True)
def _advance(
    start: Ints,
    actor: Ints,
    in_begin: Ints,
    in_source: Ints,
    out_begin: Ints,
    out_target: Ints,
    clock: Ints,
    hub_clock: Ints,
    hub_base: Ints,
    unmet: Ints,
    at: Ints,
    stack: Ints,
    stacked: npt.NDArray[np.bool_],
    table: Table,
    state: Ints,
) -> int:
    """Take rows whose causes are all taken, until none is left, the table is full, or it is stuck."""
    n = actor.shape[0]
    while state[_DEPTH] > 0:
        state[_DEPTH] -= 1
        a = stack[state[_DEPTH]]
        stacked[a] = False
        while at[a] < start[a + 1] and unmet[at[a]] <= 0:
            row = at[a]
            # This row needs a clock at most, and so does each hub that it may complete.
            if state[_USED] + 1 + out_begin[row + 1] - out_begin[row] > table.shape[0]:
                stacked[a] = True
                stack[state[_DEPTH]] = a
                state[_DEPTH] += 1
                return _FULL
            current = clock[row - 1] if row > start[a] else 0
            own = False  # True when no other row uses ``current`` yet
            for e in range(in_begin[row], in_begin[row + 1]):
                source = in_source[e]
                source_actor = -1
                if source >= n:
                    other = hub_clock[source - n]
                    if other < 0:
                        continue  # left out: part of a cycle
                    order = 1
                    if current != hub_base[source - n]:
                        order = _compare(table, current, other, a)
                    if order == 0:
                        continue
                    if order == 1:
                        current = other
                        own = False
                        continue
                else:
                    source_actor = actor[source]
                    # Left out (part of a cycle), or already known.
                    if source >= at[source_actor] or table[current, source_actor] >= source:
                        continue
                    other = clock[source]
                if not own:
                    _copy(table, current, state[_USED])
                    current = state[_USED]
                    state[_USED] += 1
                    own = True
                _join(table, other, current)
                if source_actor >= 0:
                    table[current, source_actor] = source
            clock[row] = current
            at[a] = row + 1
            state[_TODO] -= 1
            for e in range(out_begin[row], out_begin[row + 1]):
                target = out_target[e]
                unmet[target] -= 1
                if unmet[target] != 0:
                    continue
                if target < n:
                    _wake(target, a, actor, at, stack, stacked, state)
                    continue
                _meet(
                    target, n, actor, in_begin, in_source, clock, hub_clock, hub_base, table, state
                )
                for f in range(out_begin[target], out_begin[target + 1]):
                    after = out_target[f]
                    unmet[after] -= 1
                    if unmet[after] == 0:
                        _wake(after, a, actor, at, stack, stacked, state)
    return _DONE if state[_TODO] == 0 else _STUCK


@numba.njit(cache=True)
def _compare(table: Table, current: int, other: int, skip: int) -> int:
    """0: other adds nothing; 1: other covers current; 2: neither covers the other."""
    more = False
    less = False
    for b in range(table.shape[1]):
        if b != skip:
            if table[current, b] > table[other, b]:
                more = True
            elif table[current, b] < table[other, b]:
                less = True
    if not less:
        return 0
    return 2 if more else 1


@numba.njit(cache=True)
def _copy(table: Table, source: int, target: int) -> None:
    for b in range(table.shape[1]):
        table[target, b] = table[source, b]


@numba.njit(cache=True)
def _join(table: Table, source: int, target: int) -> None:
    for b in range(table.shape[1]):
        if table[source, b] > table[target, b]:
            table[target, b] = table[source, b]


@numba.njit(cache=True)
def _wake(
    row: int,
    busy: int,
    actor: Ints,
    at: Ints,
    stack: Ints,
    stacked: npt.NDArray[np.bool_],
    state: Ints,
) -> None:
    """Put the row's actor on the stack, when it waits for just this row."""
    b = actor[row]
    if at[b] == row and not stacked[b] and b != busy:
        stacked[b] = True
        stack[state[_DEPTH]] = b
        state[_DEPTH] += 1


@numba.njit(cache=True)
def _meet(
    node: int,
    n: int,
    actor: Ints,
    in_begin: Ints,
    in_source: Ints,
    clock: Ints,
    hub_clock: Ints,
    hub_base: Ints,
    table: Table,
    state: Ints,
) -> None:
    """All entries of a hub are taken: its clock joins theirs."""
    base = clock[in_source[in_begin[node]]]
    used = state[_USED]
    _copy(table, base, used)
    same = True
    for f in range(in_begin[node], in_begin[node + 1]):
        other = clock[in_source[f]]
        if other != base:
            same = False
            _join(table, other, used)
    for f in range(in_begin[node], in_begin[node + 1]):
        entry = in_source[f]
        if entry > table[used, actor[entry]]:
            table[used, actor[entry]] = entry
    hub_clock[node - n] = used
    if same:
        hub_base[node - n] = base
    state[_USED] += 1


def _find_cycle(
    n: int, start: Ints, actor: Ints, at: Ints, in_begin: Ints, in_source: Ints
) -> list[int]:
    """Follow who waits for whom among the stuck rows until an actor repeats; the rows of the circle.

    Each row happens-before the next, and the last before the first, where the caller cuts.
    """
    a = int(np.flatnonzero(at < start[1:])[0])
    path: list[tuple[int, int]] = []
    seen: dict[int, int] = {}
    while a not in seen:
        seen[a] = len(path)
        row = int(at[a])
        cause = _blocker(row, n, actor, at, in_begin, in_source)
        path.append((row, cause))
        a = int(actor[cause])
    waiting = list(dict.fromkeys(row for pair in path[seen[a] :] for row in pair))
    return [waiting[0], *reversed(waiting[1:])]


def _blocker(row: int, n: int, actor: Ints, at: Ints, in_begin: Ints, in_source: Ints) -> int:
    """A row that has not been reached and that ``row`` waits for."""
    for source in in_source[in_begin[row] : in_begin[row + 1]].tolist():
        entries = (
            [source] if source < n else in_source[in_begin[source] : in_begin[source + 1]].tolist()
        )
        for entry in entries:
            if entry >= at[actor[entry]]:
                return int(entry)
    return row
