"""Direct and root blame for waits, by step and actor."""

from __future__ import annotations

import numpy as np

from analyzer.columns import Flags, Ints
from analyzer.history import History
from analyzer.root_blame import Floats, root_blame
from analyzer.wait_entries import Entries

SHARED_ARRIVAL_NS = 100_000
"""Arrivals this close to the last one share the blame (0.1 ms)."""


def blame(history: History, entries: Entries) -> tuple[Floats, Floats, Ints]:
    """(root blame [step, actor], direct blame [actor], root actor per entry or -1)."""
    rows, instances = history.rows, history.instances
    num_actors = len(rows.actors)
    count = int(entries.instance[-1]) + 1 if len(entries.instance) else 0
    begin = np.searchsorted(entries.instance, np.arange(count + 1)).astype(np.int64)
    at = instances.table.rows[entries.at]
    step_words, step = np.unique(rows.step[at], return_inverse=True)
    last = np.full(count, np.nan)
    known = ~np.isnan(entries.last)
    last[entries.instance[known]] = entries.last[known]
    backward = np.argsort(np.where(np.isnan(last), -np.inf, last), kind="stable")[::-1]
    place = np.empty(count, dtype=np.int64)
    place[backward] = np.arange(count)[::-1]
    previous, gap = _previous_exits(history, entries)
    root, direct, named = root_blame(
        begin,
        backward.astype(np.int64),
        place,
        np.where(entries.needed, entries.arrival, -np.inf),
        np.where(entries.absent >= 0, 0.0, entries.wait),
        last,
        previous,
        gap,
        _usual_gaps(
            begin,
            entries.instance,
            gap,
            last[entries.instance] - entries.arrival <= SHARED_ARRIVAL_NS,
        ),
        entries.instance,
        step.astype(np.int64)[begin[:-1]] if count else begin[:-1],
        entries.actor,
        num_actors,
        max(1, len(step_words)),
        float(SHARED_ARRIVAL_NS),
    )
    in_vain = np.flatnonzero((entries.absent >= 0) & (entries.wait > 0))
    for i in in_vain.tolist():
        blamed = int(entries.absent[i])
        root[step[i], blamed] += entries.wait[i]
        direct[blamed] += entries.wait[i]
        named[i] = blamed
    return root, direct, named


def _previous_exits(history: History, entries: Entries) -> tuple[Ints, Floats]:
    """Per entry: the actor's latest exit from a collective before it, and the time since."""
    instances = history.instances
    none = np.full(len(entries.at), -1, dtype=np.int64)
    gap = np.full(len(entries.at), np.nan)
    done = instances.done_row[entries.at]
    out = np.flatnonzero((done >= 0) & entries.completed)
    if not len(out):
        return none, gap
    out = out[np.lexsort((entries.leave[out], done[out]))]
    row = instances.table.rows[entries.at]
    at = np.searchsorted(done[out], row, side="right") - 1
    found = np.where(at >= 0, out[np.maximum(at, 0)], -1)
    same = (found >= 0) & (entries.actor[np.maximum(found, 0)] == entries.actor)
    previous = np.where(same, found, -1).astype(np.int64)
    gap[same] = np.maximum(entries.arrival[same] - entries.leave[previous[same]], 0.0)
    return previous, gap


def _usual_gaps(begin: Ints, instance: Ints, gap: Floats, is_last: Flags) -> Floats:
    """Per instance the median gap of those that did not arrive last; of all where all did.

    Leaving the last out matters in groups of two, where it would be half of the median.
    """
    without_last = _medians(begin, instance, np.where(is_last, np.nan, gap))
    everyone = _medians(begin, instance, gap)
    return np.where(np.isnan(without_last), np.nan_to_num(everyone), without_last)


def _medians(begin: Ints, instance: Ints, values: Floats) -> Floats:
    """Per instance the median of its known values; NaN where none is known."""
    num = len(begin) - 1
    if not len(values):
        return np.full(num, np.nan)
    known = np.zeros(num, dtype=np.int64)
    np.add.at(known, instance, (~np.isnan(values)).astype(np.int64))
    ordered = values[np.lexsort((values, instance))]  # NaN sorts last
    low = ordered[begin[:-1] + np.maximum(known - 1, 0) // 2]
    high = ordered[begin[:-1] + np.where(known > 0, known // 2, 0)]
    return np.where(known > 0, (low + high) / 2, np.nan)
