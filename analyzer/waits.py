"""Wasted barrier time: the result table ``waits`` and the report's summary.

Definitions: design contract 4.4 "Waits" (Scalasca's Wait at NxN, Late Broadcast, Early Reduce).
Point-to-point waits are not computed in this release.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from analyzer.arrow_types import arrow_schema
from analyzer.blame import SHARED_ARRIVAL_NS, blame
from analyzer.columns import NULL, Ints, whole_ns
from analyzer.exposed import exposed_waits
from analyzer.history import History
from analyzer.hosts import Clocks
from analyzer.joules import wait_joules
from analyzer.root_blame import Floats
from analyzer.wait_entries import Entries, wait_entries
from cascade_runtime.vocabulary.report import ChronicStraggler, RankWaits, WaitSummary


class Waits(NamedTuple):
    """The table and the report's summary."""

    table: Any
    summary: WaitSummary


def measure_waits(history: History, clocks: Clocks) -> Waits:
    """All waits of a trace."""
    entries = wait_entries(history, clocks)
    root_of_step, direct, named = blame(history, entries)
    cause = _causes(history, entries, named)
    exposed = exposed_waits(history, clocks, entries)
    table = _table(history, entries, named, cause, exposed)
    summary = _summary(history, clocks, entries, root_of_step, direct, exposed)
    return Waits(table, summary)


def _causes(history: History, entries: Entries, named: Ints) -> list[str | None]:
    """A label a row: what made it wait."""
    waited = entries.wait > 0
    causes = np.full(len(named), None, dtype=object)
    causes[waited & (named >= 0)] = "late rank"
    for i in np.flatnonzero(waited & (entries.absent >= 0)).tolist():
        absent = int(entries.absent[i])
        if history.walks.failed(absent):
            causes[i] = "stopped rank" if history.walks.stopped(absent) else "dead rank"
        else:
            causes[i] = "absent rank"
    found: list[str | None] = causes.tolist()
    return found


def _table(
    history: History,
    entries: Entries,
    named: Ints,
    cause: list[str | None],
    exposed: Floats,
) -> Any:
    rows, instances = history.rows, history.instances
    ranks = np.array([a.rank for a in rows.actors] + [-1], dtype=np.int64)
    again = np.array([a.incarnation for a in rows.actors], dtype=np.int64)
    at = instances.table.rows[entries.at]
    step = rows.step[at]
    last_actor = _last_actor(entries)
    transfer = entries.leave - np.maximum(entries.last, entries.arrival)
    no_transfer = ~entries.completed | np.isnan(transfer)
    words = instances.table.words("comm_id")
    columns = {
        "comm_id": [words[1][c] for c in words[0][entries.at].tolist()],
        "cseq": instances.cseq[entries.at],
        "rank": ranks[entries.actor] if len(at) else at,
        "incarnation": again[entries.actor] if len(at) else at,
        "step": pa.array(step, mask=step == NULL),
        "wait_ns": whole_ns(entries.wait),
        "exposed_ns": pa.array(whole_ns(exposed), mask=np.isnan(exposed)),
        "transfer_ns": pa.array(np.maximum(whole_ns(transfer), 0), mask=no_transfer),
        "last_rank": pa.array(ranks[last_actor], mask=last_actor < 0),
        "root_rank": pa.array(ranks[named], mask=named < 0),
        "cause": cause,
        "is_open": entries.is_open,
        "run_id": pa.nulls(len(at)),  # the analysis fills it in, in all tables alike
    }
    schema = arrow_schema("waits")
    arrays = [pa.array(columns[f.name]).cast(f.type) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _last_actor(entries: Entries) -> Ints:
    """Per entry the actor that arrived last in its instance; the absent one where it waited so."""
    if not len(entries.instance):
        return entries.actor
    order = np.lexsort((-entries.actor, entries.arrival, entries.instance))
    final = np.append(np.flatnonzero(np.diff(entries.instance[order])), len(order) - 1)
    last = entries.actor[order][final][entries.instance]
    return np.where(entries.absent >= 0, entries.absent, last)


def _summary(
    history: History,
    clocks: Clocks,
    entries: Entries,
    root_of_step: Floats,
    direct: Floats,
    exposed: Floats,
) -> WaitSummary:
    rows = history.rows
    total = float(entries.wait.sum())
    waited = np.zeros(len(rows.actors))
    np.add.at(waited, entries.actor, entries.wait)
    root = root_of_step.sum(axis=0)
    lifetime = sum(
        int(rows.wall[rows.last_row(a)] - rows.wall[rows.first_row(a)])
        for a in range(rows.num_actors)
        if a not in history.agents  # they are in no collective (docs/decisions/0026)
    )
    known = bool(len(exposed)) and not np.isnan(exposed).any()
    known = known and history.evidence.lost(("compute",)) is None
    return WaitSummary(
        kind="exposed" if known else "raw",
        total_rank_s=_seconds(total),
        exposed_rank_s=_seconds(float(exposed.sum())) if known else None,
        share_pct=round(100.0 * total / lifetime, 4) if lifetime > 0 else 0.0,
        joules=wait_joules(history, entries, exposed),
        refused=clocks.refused(),
        by_rank=_by_rank(history, waited, root, direct),
        chronic_straggler=_chronic(history, entries, root_of_step),
    )


def _seconds(ns: float) -> float:
    return round(ns / 1e9, 9)


def _by_rank(history: History, waited: Floats, root: Floats, direct: Floats) -> list[RankWaits]:
    by_rank: dict[int, list[float]] = {}
    for code, actor in enumerate(history.rows.actors):
        one = by_rank.setdefault(actor.rank, [0.0, 0.0, 0.0])
        for i, values in enumerate((waited, root, direct)):
            one[i] += float(values[code])
    return [
        RankWaits(rank=rank, waited_s=_seconds(w), caused_s=_seconds(c), last_s=_seconds(d))
        for rank, (w, c, d) in sorted(by_rank.items())
        if w or c or d
    ]


def _chronic(history: History, entries: Entries, root_of_step: Floats) -> ChronicStraggler | None:
    """The rank that leads in root blame in at least half of the steps that have waits."""
    at = history.instances.table.rows[entries.at]
    words, step = np.unique(history.rows.step[at], return_inverse=True)
    long = entries.wait > SHARED_ARRIVAL_NS
    with_waits = [s for s in np.unique(step[long]).tolist() if words[s] != NULL]
    led: dict[int, int] = {}
    for s in with_waits:
        by_rank: dict[int, float] = {}
        for code in np.flatnonzero(root_of_step[s]).tolist():
            rank = history.rows.actors[code].rank
            by_rank[rank] = by_rank.get(rank, 0.0) + float(root_of_step[s, code])
        top = sorted(by_rank.items(), key=lambda item: -item[1])[:2]
        if top and (len(top) == 1 or top[0][1] > top[1][1]):
            led[top[0][0]] = led.get(top[0][0], 0) + 1
    if not led:
        return None
    rank = max(sorted(led), key=lambda r: led[r])
    share = led[rank] / len(with_waits)
    if share < 0.5:
        return None
    return ChronicStraggler(rank=rank, share_of_steps=round(share, 4))
