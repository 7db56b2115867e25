"""The part of a wait in which the actor's device was idle."""

from __future__ import annotations

import numpy as np

from analyzer.columns import NULL, Ints
from analyzer.history import History
from analyzer.hosts import Clocks
from analyzer.root_blame import Floats
from analyzer.wait_entries import Entries


def exposed_waits(history: History, clocks: Clocks, entries: Entries) -> Floats:
    """Per entry the part of its wait in which the actor's device was idle; NaN without spans."""
    rows, table = history.rows, history.rows["compute"]
    exposed = np.full(len(entries.at), np.nan)
    start, end = table.ints("start_ns"), table.ints("end_ns")
    given = (start != NULL) & (end != NULL) & (end > start)
    owner = rows.actor[table.rows]
    for actor in np.unique(owner[given]).tolist():
        mine = given & (owner == actor)
        who = owner[mine]
        begun, ended = (clocks.times(who, t[mine]) - clocks.start_ns for t in (start, end))
        edge, busy = _busy_until(begun, ended)
        at = np.flatnonzero(entries.actor == actor)
        until = np.minimum(
            entries.leave[at], np.where(np.isnan(entries.last[at]), np.inf, entries.last[at])
        )
        until = np.where(entries.completed[at], until, entries.leave[at])
        covered = np.interp(until, edge, busy) - np.interp(until - entries.wait[at], edge, busy)
        exposed[at] = np.maximum(entries.wait[at] - np.maximum(covered, 0.0), 0.0)
    return exposed


def _busy_until(start: Ints, end: Ints) -> tuple[Floats, Floats]:
    """Points (time, busy time so far) of the union of spans."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    fresh = np.concatenate([[True], start[1:] > end[:-1]])
    first = start[fresh]
    final = end[np.concatenate([np.flatnonzero(fresh)[1:] - 1, [len(end) - 1]])]
    length = np.cumsum(final - first)
    edge = np.stack([first, final], axis=1).ravel().astype(np.float64)
    busy = np.stack([length - (final - first), length], axis=1).ravel().astype(np.float64)
    return edge, busy
