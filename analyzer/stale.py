"""Reads that are older than a write which happens-before them, of objects whose value is assigned.

Of two versions the smaller number is older; where one has none, the write that happens-before the
other. Concurrent writes are not ordered (design contract 4.4).
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from analyzer.clock_pass import Table
from analyzer.columns import NULL, Flags, Ints
from analyzer.history import History
from analyzer.told import Told

_INITIAL = -2
_UNKNOWN = -1


class Stale(NamedTuple):
    """Per read of ``reads`` that was asked about."""

    newer: Ints
    """Row of a newer write that happens-before the read; -1 where there is none."""
    seen: Ints
    """The version that was read, NULL where it has none."""
    now: Ints
    """The greatest version that happens-before the read, NULL where there is none."""
    now_row: Ints
    """Row of that write, or -1."""


class Writes(NamedTuple):
    """Issued rows that are not void, one span for each (object, writer), in row order."""

    row: Ints
    version: Ints
    best: Ints
    """Index of the greatest version of the span up to here; -1: none has one."""
    plain: Ints
    """Index of the span's last write without a version up to here; -1: none."""
    actor: Ints
    """Per span its writer."""
    begin: Ints
    """Per span where it begins, and the end."""
    of_object: Ints
    """Per object where its spans begin, and the end."""


def plain_reads(history: History) -> Flags:
    """Reads of assigned objects, compared by dot or version."""
    dots = history.dots
    delta = np.isin(dots.read_object, list(dots.delta_objects))
    folded = dots.read_frontier.given & (dots.read_key < 0) & (dots.reads.ints("version") == NULL)
    found: Flags = ~delta & ~folded & (dots.read_object >= 0)
    return found


def plan_acts(history: History) -> Flags:
    """Reads that acted on a plan."""
    objects, dots = history.rows["objects"], history.dots
    codes = history.rows.codes("object", objects, "object")
    plans = codes[objects.mask("kind", "plan")]
    found: Flags = np.isin(dots.read_object, plans) & dots.reads.mask("use", "act")
    return found


def look(history: History, reads: Ints) -> Stale:
    """What was newer when each of these reads (indices, ascending) was made.

    Writes that a load of the group's took back are left out after that load.
    """
    at = history.dots.reads.rows[reads]
    found = _look_without(history, reads, np.empty(0, dtype=np.int64))
    rollbacks = history.rollbacks
    past = [rollbacks.after(n, at, history.hb) for n in range(len(rollbacks.of_group))]
    after: dict[tuple[int, ...], list[int]] = {}
    for i in np.flatnonzero(np.any(past, axis=0)).tolist() if past else ():
        after.setdefault(tuple(n for n, is_past in enumerate(past) if is_past[i]), []).append(i)
    for past_loads, places in after.items():
        gone = np.concatenate([rollbacks.of_group[n][1] for n in past_loads])
        part = np.array(places, dtype=np.int64)
        for whole, some in zip(found, _look_without(history, reads[part], gone), strict=True):
            whole[part] = some
    return found


def stale_reads(history: History, reads: Ints) -> list[Told]:
    """One entry for each of these reads (indices) that is older than a write before it."""
    dots, rows = history.dots, history.rows
    stale = look(history, reads)
    acts = dots.reads.mask("use", "act")
    found = []
    for i in np.flatnonzero(stale.newer >= 0).tolist():
        row, newer = int(dots.reads.rows[reads[i]]), int(stale.newer[i])
        verb = "acted on" if acts[reads[i]] else "read"
        key = int(dots.read_key[reads[i]])
        seen = (
            f"update {dots.name(key)}" if key >= 0
            else "the initial value" if stale.seen[i] == NULL
            else f"version {stale.seen[i]}"
        )  # fmt: skip
        update = rows.content(newer)
        version = "" if update["version"] is None else f" (version {update['version']})"
        source = dots.issued_row(key) if key >= 0 else None
        name = dots.name(int(dots.update_key[rows.index_in_table[newer]]))
        found.append(
            Told(
                row=row,
                sentence=(
                    f"{history.who_did(row)} {verb} {update['object']} at {seen}, although the newer "
                    f"update {name}{version} happened before."
                ),
                witness=((source,) if source is not None else ()) + (newer, row),
            )
        )
    return found


def _look_without(history: History, reads: Ints, gone: Ints) -> Stale:
    """``look``, the nodes in ``gone`` left out."""
    dots, rows = history.dots, history.rows
    of = writes(history, gone)
    key, seen = dots.read_key[reads], dots.reads.ints("version")[reads]
    source = np.where((key < 0) & (seen == NULL), _INITIAL, _UNKNOWN)
    issued = dots.issued_index(key)
    is_issued = issued >= 0
    source[is_issued] = dots.updates.rows[issued[is_issued]]
    told = dots.updates.ints("version")[issued[is_issued]]
    seen = seen.copy()
    seen[is_issued] = np.where(seen[is_issued] != NULL, seen[is_issued], told)
    at = dots.reads.rows[reads]
    newer, now, now_row = _look(
        at, rows.actor[at], dots.read_object[reads], seen, source, rows.actor, *history.hb.clocks,
        *of,
    )  # fmt: skip
    return Stale(newer, seen, now, now_row)


def writes(history: History, gone: Ints) -> Writes:
    """All issued rows of all objects, without void ones and those of the nodes in ``gone``."""
    dots, known, rows = history.dots, history.known, history.rows
    taken_back = np.zeros(len(known), dtype=np.bool_)
    taken_back[gone] = True
    index = np.flatnonzero(dots.issued)
    node = known.of_update[index]
    index = index[~(known.void[node] | taken_back[node])] if len(known) else index
    row = dots.updates.rows[index]
    obj, actor = dots.update_object[index], rows.actor[row]
    order = np.lexsort((row, actor, obj))
    index, row, obj, actor = index[order], row[order], obj[order], actor[order]
    version = dots.updates.ints("version")[index]
    new = np.ones(len(index), dtype=np.bool_)
    new[1:] = (obj[1:] != obj[:-1]) | (actor[1:] != actor[:-1])
    first = np.flatnonzero(new)
    span = np.cumsum(new) - 1
    place = np.arange(len(index))
    # The place of the running greatest: rank of (version, place) makes a maximum name a place.
    rank = np.empty(len(index), dtype=np.int64)
    by_version = np.lexsort((-place, version))
    rank[by_version] = place
    base = span * (len(index) + 1)
    best = np.maximum.accumulate(np.where(version != NULL, rank, -1) + base) - base
    plain = np.maximum.accumulate(np.where(version == NULL, place, -1) + base) - base
    best = np.where(best >= 0, by_version[np.maximum(best, 0)], -1) if len(best) else best
    num = int(max(obj.max(initial=-1), dots.read_object.max(initial=-1))) + 1
    return Writes(
        row, version, best.astype(np.int64), plain.astype(np.int64), actor[first],
        np.append(first, len(index)).astype(np.int64),
        np.searchsorted(obj[first], np.arange(num + 1)).astype(np.int64),
    )  # fmt: skip


@numba.njit(cache=True)
def _look(
    at: Ints,
    at_actor: Ints,
    obj: Ints,
    seen: Ints,
    source: Ints,
    actor: Ints,
    clock: Ints,
    table: Table,
    row: Ints,
    version: Ints,
    best: Ints,
    plain: Ints,
    span_actor: Ints,
    span_begin: Ints,
    of_object: Ints,
) -> tuple[Ints, Ints, Ints]:
    n = len(at)
    newer = np.full(n, -1, dtype=np.int64)
    now = np.full(n, NULL, dtype=np.int64)
    now_row = np.full(n, -1, dtype=np.int64)
    for i in range(n):
        o = obj[i]
        for span in range(of_object[o], of_object[o + 1]):
            writer = span_actor[span]
            upto = at[i] - 1 if writer == at_actor[i] else table[clock[at[i]], writer]
            begin, end = span_begin[span], span_begin[span + 1]
            last = begin + np.searchsorted(row[begin:end], upto, side="right") - 1
            if last < begin:
                continue
            most = best[last]
            if most >= 0 and version[most] > now[i]:
                now[i] = version[most]
                now_row[i] = row[most]
            if source[i] == _INITIAL:
                newer[i] = row[last]
                continue
            if seen[i] != NULL:
                if most >= 0 and version[most] > seen[i]:
                    newer[i] = row[most]
                last = plain[last]
            if last < 0 or source[i] < 0 or newer[i] >= 0:
                continue
            w, v = source[i], row[last]
            if w == v:
                continue
            if actor[w] == actor[v]:
                if w < v:
                    newer[i] = v
            elif table[clock[v], actor[w]] >= w:
                newer[i] = v
    return newer, now, now_row
