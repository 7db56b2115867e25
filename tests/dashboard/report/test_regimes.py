"""What a file keeps of regimes: all of them where they are few, their time and every excursion where not."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard.report.columns import Columns, read_column
from dashboard.report.regimes import Interval, columns_of, kept_of, merged, rounded
from dashboard.story.model import Regimes

patient = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NUMBERS = st.lists(st.integers(-(1 << 50), 1 << 50), max_size=50)


@patient
@given(columns=st.lists(st.tuples(NUMBERS, st.booleans()), max_size=4))
def test_columns_come_back(columns):
    kept = Columns()
    for number, (values, delta) in enumerate(columns):
        kept.add(str(number), np.array(values, dtype=np.int64), delta=delta)
    for head, (values, _) in zip(kept.head, columns, strict=True):
        assert read_column(head, kept.body).tolist() == values


@st.composite
def histories(draw):
    rows = []
    for rank in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, 50))
        for epoch in range(draw(st.integers(0, 9))):
            at += draw(st.sampled_from([0, 0, 0, 5, 2000]))
            length = draw(st.sampled_from([1, 7, 30, 900, 40_000]))
            rows.append(Interval("world", rank, 0, epoch, draw(st.integers(0, 2)), at, at + length))
            at += length
    return rows


def time_by_regime(rows):
    spent = Counter()
    for row in rows:
        spent[row.rank, row.regime] += row.end - row.start
    return spent


@patient
@given(rows=histories(), length=st.sampled_from([10, 100, 5000]))
def test_merging_moves_no_time_out_of_its_stretch(rows, length):
    found = merged(rows, length)
    assert time_by_regime(found) == time_by_regime(rows)
    assert len(found) <= len(rows)
    assert [(*r[:2], r.start) for r in found] == sorted((*r[:2], r.start) for r in found)
    where = {(r.rank, r.regime, t // length) for r in rows for t in (r.start, r.end - 1)}
    assert {(r.rank, r.regime, t // length) for r in found for t in (r.start, r.end - 1)} <= where
    for before, after in itertools.pairwise(found):
        assert before.rank != after.rank or before.end <= after.start


@patient
@given(rows=histories(), unit=st.sampled_from([1, 10, 1000]))
def test_rounding_loses_no_interval_and_opens_no_gap(rows, unit):
    found = rounded(rows, unit)
    assert len(found) == len(rows)
    for new, old in zip(found, rows, strict=True):
        assert new[:5] == old[:5] and new.end > new.start
        assert new.start % unit == new.end % unit == 0
        assert abs(new.start - old.start) <= unit * (len(rows) + 1)
    pairs = zip(itertools.pairwise(found), itertools.pairwise(rows), strict=True)
    for (new, after), (old, then) in pairs:
        if new.rank == after.rank:
            assert after.start >= new.end
            assert old.end != then.start or new.end == after.start


def told(rows):
    columns = [list(column) for column in zip(*rows, strict=True)]
    return Regimes(**dict(zip(Interval._fields[:5], columns, strict=False)),
                   start_ns=columns[5], end_ns=columns[6])  # fmt: skip


def flapping(ranks, turns, each=1_000_000):
    return [
        Interval("world", rank, 0, turn, turn % 3, turn * each, (turn + 1) * each)
        for rank in range(ranks)
        for turn in range(turns)
    ]


def test_few_are_kept_as_they_are():
    rows = flapping(2, 300)
    kept = kept_of(told(rows), 300_000_000)
    assert (kept.rows, kept.unit_ns, kept.merged_ns) == (rows, 1, 0)
    names, columns = columns_of(kept)
    assert names == ["world"]
    by_name = {head["name"]: read_column(head, columns.body) for head in columns.head}
    ends = np.cumsum(by_name["gap"] + by_name["length"])
    assert ends.tolist() == [row.end for row in rows]
    assert (ends - by_name["length"]).tolist() == [row.start for row in rows]


def test_beyond_the_bound_they_are_merged_and_every_regime_stays():
    rows = flapping(4, 20_000)
    kept = kept_of(told(rows), 20_000 * 1_000_000, most=5_000)
    assert len(kept.rows) <= 5_000 and kept.merged_ns > 0
    assert time_by_regime(kept.rows) == time_by_regime(rows)
    for rank in range(4):
        mine = [row for row in kept.rows if row.rank == rank]
        eventual = np.array([row.start for row in mine if row.regime == 2])
        assert (np.diff(eventual) <= 3 * kept.merged_ns).all()
