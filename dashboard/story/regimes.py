"""Which rank held which regime when.

From the analysis where a trace has one. Else from the few rows at which a regime can change, and each
actor's last row: the same spans for runs whose walks are on record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dashboard.story.activity import Key
from dashboard.story.actors import Cast
from dashboard.story.facts import Facts
from dashboard.story.model import REGIME_CODES, Regimes, Silence
from dashboard.story.names import GroupNames
from dashboard.story.spans import spans_of

Ints = npt.NDArray[np.int64]


class _Spans(NamedTuple):
    rank: Ints
    incarnation: Ints
    group: list[str]
    epoch: Ints
    regime: list[str]
    start: Ints
    end: Ints


def regimes_of(
    facts: Facts, cast: Cast, names: GroupNames, silent: Sequence[Silence] = ()
) -> Regimes:
    """The spans of all ranks, agents left out, by (group, rank, start).

    In a run that goes on, the last span of an actor that is still there goes on too: its next row is only
    due. Silence is no regime: it is cut out.
    """
    judged = None if facts.judged is None else facts.judged.intervals
    spans = _from_points(facts.rows.points, cast.ends) if judged is None else _from_results(judged)
    if facts.state == "live":
        spans = _gone_on(spans, cast, facts.t1_ns)
    spans = _heard(spans, facts, silent)
    code = np.array([REGIME_CODES.get(regime, -1) for regime in spans.regime], dtype=np.int64)
    keep = code >= 0
    for rank, incarnation in cast.agents:
        keep &= (spans.rank != rank) | (spans.incarnation != incarnation)
    shown = {group: names(group) for group in dict.fromkeys(spans.group)}
    group = np.array([shown[g] for g in spans.group], dtype=object)
    at = np.flatnonzero(keep)
    place = {name: number for number, name in enumerate(sorted(shown.values()))}
    by_group = np.array([place[g] for g in group[at]], dtype=np.int64)
    at = at[np.lexsort((spans.start[at], spans.rank[at], by_group))]
    who = (spans.rank[at], spans.incarnation[at], spans.epoch[at], code[at])
    told = spans_of(
        group[at].tolist(), *who, spans.start[at] - facts.t0_ns, spans.end[at] - facts.t0_ns
    )
    found = Regimes(
        rank=told.rank.tolist(),
        incarnation=told.incarnation.tolist(),
        group=group[at].tolist(),
        epoch=told.epoch.tolist(),
        regime=told.regime.tolist(),
        start_ns=told.start.tolist(),
        end_ns=told.end.tolist(),
    )
    found.spans = told
    return found


def _gone_on(spans: _Spans, cast: Cast, now: int) -> _Spans:
    """With the open spans of the newest incarnations up to now."""
    newest = {a.rank: a for a in cast.actors if a.kind != "agent"}  # they are in order
    here = {(a.rank, a.incarnation) for a in newest.values() if a.end is None}
    end = spans.end.copy()
    for at, key in enumerate(zip(spans.rank.tolist(), spans.incarnation.tolist(), strict=True)):
        if key in here and end[at] >= cast.ends.get(key, now):
            end[at] = max(int(end[at]), now)
    return spans._replace(end=end)


def _heard(spans: _Spans, facts: Facts, silent: Sequence[Silence]) -> _Spans:
    """Without the times in which an actor was silent."""
    cuts: dict[Key, list[tuple[int, int]]] = {}
    for one in silent:
        to = int(np.iinfo(np.int64).max) if one.to_ns is None else facts.t0_ns + one.to_ns
        cuts.setdefault((one.rank, one.incarnation), []).append((facts.t0_ns + one.from_ns, to))
    if not cuts:
        return spans
    at: list[int] = []
    starts: list[int] = []
    ends: list[int] = []

    def keep(row: int, start: int, end: int) -> None:
        at.append(row)
        starts.append(start)
        ends.append(end)

    columns = (spans.rank, spans.incarnation, spans.start, spans.end)
    for row, (rank, again, start, end) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        begin, is_cut = start, False
        for low, high in cuts.get((rank, again), ()):  # in time, apart from each other
            if high > begin and low < end:
                is_cut = True
                if low > begin:
                    keep(row, begin, low)
                begin = max(begin, high)
        if begin < end or not is_cut:
            keep(row, begin, end)
    index = np.array(at, dtype=np.int64)
    return _Spans(
        spans.rank[index],
        spans.incarnation[index],
        [spans.group[row] for row in at],
        spans.epoch[index],
        [spans.regime[row] for row in at],
        np.array(starts, dtype=np.int64),
        np.array(ends, dtype=np.int64),
    )


def _from_results(table: pa.Table) -> _Spans:
    return _Spans(
        _ints(table, "rank"),
        _ints(table, "incarnation"),
        table["group_id"].to_pylist(),
        _ints(table, "epoch"),
        table["regime"].to_pylist(),
        _ints(table, "start_ns"),
        _ints(table, "end_ns"),
    )


def _from_points(points: pa.Table, ends: dict[Key, int]) -> _Spans:
    """A span runs to the next change of the same actor in the same group, or to its last row."""
    rank, incarnation = _ints(points, "rank"), _ints(points, "incarnation")
    group, start = points["group_id"].to_pylist(), _ints(points, "wall_ns")
    last = [
        max(ends.get(key, at), at)
        for key, at in zip(
            zip(rank.tolist(), incarnation.tolist(), strict=True), start.tolist(), strict=True
        )
    ]
    end = np.array(last, dtype=np.int64)
    if len(start) > 1:
        numbers = {name: number for number, name in enumerate(dict.fromkeys(group))}
        codes = np.array([numbers[name] for name in group], dtype=np.int64)
        follows = (np.diff(rank) == 0) & (np.diff(incarnation) == 0) & (np.diff(codes) == 0)
        end[:-1] = np.where(follows, start[1:], end[:-1])
    return _Spans(
        rank,
        incarnation,
        group,
        _ints(points, "epoch"),
        points["regime"].to_pylist(),
        start,
        end,
    )


def _ints(table: pa.Table, name: str) -> Ints:
    found: Ints = table[name].to_numpy().astype(np.int64)
    return found
