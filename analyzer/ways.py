"""Whether anything but the update itself leads from its issue to a row that saw it."""

from __future__ import annotations

import numba
import numpy as np

from analyzer.clock_pass import Table
from analyzer.columns import Flags, Ints
from analyzer.history import History


def other_ways(history: History, issued: Ints, seen: Ints) -> Flags:
    """True where a path of happens-before that does not end in a seen update leads there.

    Args:
        history: the trace.
        issued: rows of issues.
        seen: beside each, a row of another actor that applied or read that update.
    """
    rows = history.rows
    begin, source = history.hb.incoming
    return _other_ways(
        issued, seen, rows.actor, rows.start, *history.hb.clocks, begin, source,
        np.full(len(begin) - 1 - rows.n, -1, dtype=np.int64),
        np.full(len(begin) - 1 - rows.n, -1, dtype=np.int64),
    )  # fmt: skip


@numba.njit(cache=True)
def _other_ways(
    issued: Ints,
    seen: Ints,
    actor: Ints,
    start: Ints,
    clock: Ints,
    table: Table,
    begin: Ints,
    source: Ints,
    of_hub: Ints,
    upto_hub: Ints,
) -> Flags:
    """``of_hub``, ``upto_hub``: per collective the author asked for last, and what its members knew."""
    n = len(actor)
    found = np.zeros(len(issued), dtype=np.bool_)
    for i in range(len(issued)):
        row, write = seen[i], issued[i]
        author = actor[write]
        if row > start[actor[row]] and table[clock[row - 1], author] >= write:
            found[i] = True
            continue
        # A collective that its actor completed just before this very row.
        for e in range(begin[row], begin[row + 1]):
            hub = source[e] - n
            if hub < 0:
                continue
            if of_hub[hub] != author:
                upto = -1
                for f in range(begin[hub + n], begin[hub + n + 1]):
                    entry = source[f]
                    known = entry if actor[entry] == author else table[clock[entry], author]
                    upto = max(upto, known)
                of_hub[hub] = author
                upto_hub[hub] = upto
            if upto_hub[hub] >= write:
                found[i] = True
    return found
