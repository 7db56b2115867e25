"""Which actor held which regime when (result table ``regime_intervals``), and the shares."""

from __future__ import annotations

from typing import Any

import numpy as np

from analyzer.columns import NULL
from analyzer.history import History
from analyzer.rows import REGIMES
from cascade_runtime.vocabulary.report import RegimeShare


def regime_intervals(history: History) -> list[dict[str, Any]]:
    """Spans of equal (epoch, regime) per actor and group, from committed rows and row regimes.

    A span runs from its first row to the first row of the next span, or to the actor's last row.
    """
    rows = history.rows
    at = np.flatnonzero((rows.regime > 0) & (rows.epoch != NULL))
    order = np.lexsort((at, rows.group[at], rows.actor[at]))
    at = at[order]
    if not len(at):
        return []
    actor, group, epoch, regime = rows.actor[at], rows.group[at], rows.epoch[at], rows.regime[at]
    new_place = np.ones(len(at), dtype=np.bool_)
    new_place[1:] = (actor[1:] != actor[:-1]) | (group[1:] != group[:-1])
    begin = new_place.copy()
    begin[1:] |= (epoch[1:] != epoch[:-1]) | (regime[1:] != regime[:-1])
    starts = np.flatnonzero(begin)
    faults = {(s.actor, s.group, s.new_epoch): s.fault for s in history.walks.phase("committed")}
    found = []
    for i, start in enumerate(starts.tolist()):
        place = (int(actor[start]), int(group[start]), int(epoch[start]))
        follows = i + 1 < len(starts) and not new_place[starts[i + 1]]
        end_row = at[starts[i + 1]] if follows else rows.last_row(place[0])
        named = rows.actors[place[0]]
        found.append(
            {
                "rank": named.rank,
                "incarnation": named.incarnation,
                "group_id": history.group_name(place[1]),
                "epoch": place[2],
                "regime": REGIMES[int(regime[start])],
                "start_ns": int(rows.wall[at[start]]),
                "end_ns": int(rows.wall[end_row]),
                "fault": faults.get(place),
            }
        )
    return found


def regime_shares(history: History, intervals: list[dict[str, Any]]) -> list[RegimeShare]:
    """Share of the ranks' time (agents left out) in each regime, per group, in percent."""
    watchers = {
        (history.rows.actors[a].rank, history.rows.actors[a].incarnation) for a in history.agents
    }
    spent: dict[str, dict[str, int]] = {}
    for span in intervals:
        if (span["rank"], span["incarnation"]) in watchers:
            continue
        by_regime = spent.setdefault(span["group_id"], {})
        length = max(0, span["end_ns"] - span["start_ns"])
        by_regime[span["regime"]] = by_regime.get(span["regime"], 0) + length
    shares = []
    for group, by_regime in sorted(spent.items()):
        whole = sum(by_regime.values())
        for regime in reversed(list(REGIMES.values())):
            if regime in by_regime:
                pct = 100.0 * by_regime[regime] / whole if whole else 0.0
                shares.append(RegimeShare(group_id=group, regime=regime, share_pct=round(pct, 3)))
    return shares
