"""Who was ready when, until when it waited, and for whose arrival: one entry a member and collective.

Definitions: design contract 4.4 "Waits". A rank that waits in several collectives at once waits
once: an entry counts what no earlier one of that actor covers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from analyzer.columns import NULL, Flags, Ints
from analyzer.history import History
from analyzer.hosts import Clocks
from analyzer.root_blame import Floats


class Entries(NamedTuple):
    """One entry a member of a judged collective, sorted by instance."""

    at: Ints
    """Index in the collectives table."""
    instance: Ints
    actor: Ints
    arrival: Floats
    leave: Floats
    """Completion; for an operation that never completed the waiter's next commit or last event."""
    completed: Flags
    is_open: Flags
    wait: Floats
    last: Floats
    """The arrival it waited for; NaN where that is not one of the entries."""
    absent: Ints
    """Actor that never came or died inside it; -1 for none."""
    needed: Flags
    """Others wait for this member's arrival."""


def wait_entries(history: History, clocks: Clocks) -> Entries:
    """The entries of every collective whose kind is known and whose hosts hang together."""
    instances = history.instances
    judged = np.zeros(len(instances), dtype=np.bool_)
    judged[:] = instances.kind >= 0
    judged &= (instances.kind == 0) | (instances.roots >= 0)
    if len(clocks.hosts) > 1 and len(instances):
        part = clocks.part[clocks.host[instances.actor[instances.order]]]
        low = np.minimum.reduceat(part, instances.begin[:-1])
        judged &= low == np.maximum.reduceat(part, instances.begin[:-1])
    keep = judged[instances.of] if len(instances) else np.empty(0, dtype=np.bool_)
    index = instances.order[keep]
    instance = np.unique(instances.of[keep], return_inverse=True)[1].astype(np.int64)
    actor = instances.actor[index]
    arrival = clocks.since_start(actor, instances.arrival()[index])
    completed = instances.completed[index]
    leave = clocks.since_start(actor, _completions(history)[index])
    is_open = np.zeros(len(index), dtype=np.bool_)
    absent = np.full(len(index), -1, dtype=np.int64)
    _never_completed(history, clocks, index, completed, leave, is_open, absent)
    kind = instances.kind[instances.of[keep]]
    is_root = (
        _ranks(history)[actor] == instances.roots[instances.of[keep]] if len(index) else index != 0
    )
    last = _last_arrivals(instance, arrival, kind, is_root)
    target = np.where(completed, np.minimum(last, leave), leave)
    # Where the root's entry is not in the trace, what others waited for it is not known.
    wait = np.nan_to_num(np.maximum(target - arrival, 0.0))
    # 1-to-n: nobody waits for more than the root; n-to-1: nobody but the root waits.
    wait[((kind == 1) & is_root) | ((kind == 2) & ~is_root)] = 0.0
    last = np.where((absent >= 0) & ~completed, np.nan, last)
    wait = _once(actor, arrival, wait)
    needed = (kind == 0) | ((kind == 1) & is_root) | ((kind == 2) & ~is_root)
    return Entries(
        index, instance, actor, arrival, leave, completed, is_open, wait, last, absent, needed
    )


def _completions(history: History) -> Ints:
    """Per row of the collectives table: when its member was through."""
    rows, instances = history.rows, history.instances
    complete = instances.table.ints("complete_ns")
    done = instances.done_row
    next_row = rows.wall[np.maximum(done, 0)] if rows.n else done
    otherwise = np.where(done >= 0, next_row, instances.arrival())
    return np.where(complete == NULL, otherwise, complete)


def _ranks(history: History) -> Ints:
    rows = history.rows
    return np.array([a.rank for a in rows.actors[: rows.num_actors]], dtype=np.int64)


def _never_completed(
    history: History,
    clocks: Clocks,
    index: Ints,
    completed: Flags,
    leave: Floats,
    is_open: Flags,
    absent: Ints,
) -> None:
    """Fill in when a waiter gave up, whether it still waits, and whom it waited for in vain."""
    rows, instances, walks = history.rows, history.instances, history.walks
    position = {int(i): at for at, i in enumerate(index.tolist()) if not completed[at]}
    for unfinished in instances.unfinished:
        culprits = [a for a in unfinished.absent if walks.failed(a)] or [
            a for a in unfinished.waiting if walks.failed(a)
        ]
        culprit = next(iter(culprits or unfinished.absent), -1)
        for i in unfinished.entries:
            at = position.get(i)
            if at is None:
                continue
            row, actor = int(instances.table.rows[i]), int(instances.actor[i])
            commit = next((s.row for s in walks.commits_of(actor) if s.row > row), None)
            end = rows.last_row(actor) if commit is None else commit
            # Python's numbers: a trace of anybody may hold times that no 64 bits can hold apart.
            wall = int(rows.wall[end])
            drifted = float(clocks.drift[clocks.host[actor]]) * (wall - clocks.start_ns)
            leave[at] = float(wall + int(clocks.shift[actor]) - int(clocks.start_ns)) + drifted
            is_open[at] = commit is None and not unfinished.void
            absent[at] = culprit if culprit != actor else -1


def _last_arrivals(instance: Ints, arrival: Floats, kind: Ints, is_root: Flags) -> Floats:
    """Per entry the arrival it needs: everyone's, the root's, or the others'."""
    if not len(instance):
        return arrival
    count = int(instance[-1]) + 1
    last = np.full(count, -np.inf)
    needed = (kind == 0) | ((kind == 1) & is_root) | ((kind == 2) & ~is_root)
    np.maximum.at(last, instance[needed], arrival[needed])
    last[np.isinf(last)] = np.nan
    return last[instance]


def _once(actor: Ints, arrival: Floats, wait: Floats) -> Floats:
    """Waits without the part that an earlier wait of the same actor covers."""
    order = np.lexsort((arrival, actor))
    begin, end = arrival[order], (arrival + wait)[order]
    end = np.where(wait[order] > 0.0, end, -np.inf)
    # A running maximum inside each actor: its range of time lies above the one before.
    span = float(np.ptp(arrival) + wait.max() + 1.0) if len(order) else 1.0
    lift = actor[order] * span - (float(arrival.min()) if len(order) else 0.0)
    until = np.full(len(order), -np.inf)
    until[1:] = np.maximum.accumulate(end + lift)[:-1]
    covered = np.maximum(begin, until - lift)
    counted = np.zeros(len(order))
    counted[order] = np.where(np.isinf(end), 0.0, np.maximum(end - covered, 0.0))
    return counted
