"""A story's regimes as columns: exact where they are few, rounded where many, merged beyond a bound."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

import numpy as np

from dashboard.report.columns import Columns
from dashboard.story.model import Regimes

MOST = 400_000
"""Intervals that a file holds."""

UNITS = ((20_000, 1), (100_000, 1_000), (MOST, 10_000))
"""Up to so many intervals, times are kept in so many ns."""

_FINEST = 65_536
_COARSEST = 256
"""Stretches inside which the order may be lost: from so many of a run to so many."""


class Interval(NamedTuple):
    """One row of model.Regimes."""

    group: str
    rank: int
    incarnation: int
    epoch: int
    regime: int
    start: int
    end: int


class Kept(NamedTuple):
    """What a file keeps of regimes.

    Attributes:
        rows: by (group, rank, start).
        unit_ns: what their times were rounded to.
        merged_ns: inside stretches of this length the order was given up; 0 for nowhere.
    """

    rows: list[Interval]
    unit_ns: int
    merged_ns: int


def kept_of(regimes: Regimes, t1_ns: int, most: int = MOST) -> Kept:
    """The intervals that fit.

    Args:
        regimes: the story's.
        t1_ns: how long the run is.
        most: intervals, about: see ``merged``.
    """
    columns = (regimes.group, regimes.rank, regimes.incarnation, regimes.epoch, regimes.regime)
    rows = [Interval(*row) for row in zip(*columns, regimes.start_ns, regimes.end_ns, strict=True)]
    length, merged_ns = max(1, t1_ns // _FINEST), 0
    while len(rows) > most and length <= max(1, t1_ns // _COARSEST):
        rows, merged_ns = merged(rows, length), length
        length *= 2
    unit_ns = next((unit for limit, unit in UNITS if len(rows) <= limit), UNITS[-1][1])
    return Kept(rounded(rows, unit_ns), unit_ns, merged_ns)


def merged(rows: list[Interval], length: int) -> list[Interval]:
    """Fewer intervals with the same time in each regime.

    What lies wholly inside one stretch of ``length`` ns becomes one interval for each regime, in the order in
    which they first came: no excursion is lost, no time is moved out of its stretch.
    """
    found: list[Interval] = []
    part: list[Interval] = []

    def close() -> None:
        by_regime: dict[int, list[Interval]] = {}
        for row in part:
            by_regime.setdefault(row.regime, []).append(row)
        if len(by_regime) == len(part):
            found.extend(part)
        else:
            at = part[0].start
            for of_one in by_regime.values():
                end = at + sum(row.end - row.start for row in of_one)
                found.append(of_one[-1]._replace(start=at, end=end))
                at = end
        part.clear()

    for row in rows:
        before = part[-1] if part else None
        goes_on = (
            before is not None
            and (row.group, row.rank, row.incarnation) == before[:3]
            and row.start == before.end
            and row.start // length == part[0].start // length
            and row.end <= (row.start // length + 1) * length
        )
        if part and not goes_on:
            close()
        part.append(row)
    if part:
        close()
    return found


def rounded(rows: list[Interval], unit: int) -> list[Interval]:
    """Times in whole units, so that none vanishes and neighbours still touch.

    An interval shorter than a unit becomes one unit long and pushes what comes after.
    """
    if unit == 1:
        return rows
    found: list[Interval] = []
    for _, chain in groupby(rows, key=lambda row: row[:3]):
        was, now = None, 0
        for row in chain:
            start = now if row.start == was else max(row.start // unit, now)
            end = max(row.end // unit, start + (row.end > row.start))
            found.append(row._replace(start=start * unit, end=end * unit))
            was, now = row.end, end
    return found


def columns_of(kept: Kept) -> tuple[list[str], Columns]:
    """The groups' names, and the columns: where an interval begins counts from the last one's end."""
    rows = kept.rows
    names = list(dict.fromkeys(row.group for row in rows))
    place = {name: number for number, name in enumerate(names)}
    start = np.array([row.start for row in rows], dtype=np.int64) // kept.unit_ns
    end = np.array([row.end for row in rows], dtype=np.int64) // kept.unit_ns
    columns = Columns()
    columns.add("group", _ints([place[row.group] for row in rows]), delta=True)
    columns.add("rank", _ints([row.rank for row in rows]), delta=True)
    columns.add("incarnation", _ints([row.incarnation for row in rows]), delta=True)
    columns.add("epoch", _ints([row.epoch for row in rows]), delta=True)
    columns.add("regime", _ints([row.regime for row in rows]), delta=False)
    columns.add("gap", start - np.concatenate(([0], end[:-1]))[: len(rows)], delta=False)
    columns.add("length", end - start, delta=False)
    return names, columns


def _ints(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)
