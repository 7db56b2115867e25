from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.tiles import spans as module
from dashboard.tiles.encode import pixel_bounds
from dashboard.tiles.spans import Row, Spans
from tests.dashboard.tiles import brute

SCALE = st.sampled_from([1, 50, 10_000, 40_000_000])


@st.composite
def batches(draw):
    """Spans in batches, in any order: overlapping, empty, equal, far apart, before 0."""
    scale = draw(SCALE)
    moment = st.integers(-50, 400).map(lambda t: t * scale)
    span = st.tuples(st.integers(0, 3), moment, st.integers(-1, 60).map(lambda d: d * scale))
    made = draw(st.lists(st.lists(span, max_size=40), max_size=6))
    return scale, [[(r, s, s + d) for r, s, d in batch] for batch in made]


@st.composite
def windows(draw, scale):
    a = draw(st.integers(-100, 450)) * scale + draw(st.integers(-3, 3))
    b = a + max(1, draw(st.integers(0, 500)) * scale + draw(st.integers(0, 7)))
    return a, b, draw(st.integers(1, 70))


@settings(max_examples=60, deadline=None)
@given(st.data(), batches(), st.booleans())
def test_any_window_is_exact(data, made, union):
    scale, every = made
    lane = brute.lane(every, union=union)
    known = brute.of_ranks(every)
    for _ in range(3):
        a, b, w = data.draw(windows(scale))
        ranks = [2, 0, 9, 1, 3]
        drawn = lane.draw(ranks, pixel_bounds(a, b, w))
        assert np.array_equal(drawn, brute.tile(known, ranks, a, b, w, union=union))
        sums = lane.sums(a, b)
        assert sums == {r: brute.inside(known[r], a, b, union=union) for r in sums}
        assert sorted(sums) == sorted(known)


@settings(max_examples=60, deadline=None)
@given(batches(), batches())
def test_uncovered_is_what_nothing_else_covers(before, fresh):
    lane = brute.lane(before[1], union=True)
    new = sorted((r, s, e) for batch in fresh[1] for r, s, e in batch if e > s)
    rank, start, end = np.array(new, np.int64).reshape(-1, 3).T
    counted = lane.uncovered(rank, start, end)
    known = brute.of_ranks(before[1])
    for (r, s, e), ns in zip(new, counted.tolist(), strict=True):
        seen = known.setdefault(r, [])
        assert ns == e - s - brute.inside(seen, s, e, union=True)
        seen.append((s, e))


@pytest.mark.parametrize("union", [True, False])
def test_very_many_edges_in_one_bucket(union):
    """A burst in a long quiet run: the kept sums of blocks are used."""
    rng = np.random.default_rng(1)
    start = rng.integers(0, 5_000, 3_000)
    burst = [
        (0, int(s), int(s) + int(d)) for s, d in zip(start, rng.integers(1, 9, 3_000), strict=True)
    ]
    far = [(0, 10**15, 10**15 + 7)]
    lane = brute.lane([far, burst[:2000], burst[2000:]], union=union)
    assert (lane.rows[0].end - lane.rows[0].begin) >> lane.rows[0].shift < 10_000
    known = brute.of_ranks([far, burst])
    for a, b, w in (
        (0, 5_010, 97),
        (-5, 10**15 + 10, 31),
        (2_000, 2_003, 10),
        (10**15, 10**15 + 8, 3),
    ):
        drawn = lane.draw([0], pixel_bounds(a, b, w))
        assert np.array_equal(drawn, brute.tile(known, [0], a, b, w, union=union))


def test_512_ranks_one_after_the_other():
    rank = np.arange(512)
    lane = Spans(union=True)
    lane.add(rank, rank * 1000, rank * 1000 + 700)
    drawn = lane.draw(range(512), pixel_bounds(0, 512_000, 512))
    assert (np.diag(drawn) == brute.code(700, 1000)).all()
    assert drawn.sum() == np.diag(drawn).sum(dtype=np.int64)


def test_a_growing_lane_coarsens_and_stays_small(monkeypatch):
    monkeypatch.setattr(module, "MAX_BUCKETS", 256)
    lane, every, shifts = Spans(union=True), [], set()
    for i in range(60):
        batch = [(0, i * 10**6 + k * 1000, i * 10**6 + k * 1000 + 300) for k in range(50)]
        lane.add(*(np.array(c) for c in zip(*batch, strict=True)))
        every.append(batch)
        shifts.add(lane.rows[0].shift)
        assert len(lane.rows[0].directory) <= 258
    assert len(shifts) > 3
    drawn = lane.draw([0], pixel_bounds(0, 60 * 10**6, 333))
    known = brute.of_ranks(every)
    assert np.array_equal(drawn, brute.tile(known, [0], 0, 60 * 10**6, 333, union=True))


def test_any_wait_can_be_seen_at_any_width():
    lane = brute.lane([[(0, 10**14, 10**14 + 1)]], union=True)
    drawn = lane.draw([0], pixel_bounds(0, 2 * 10**14, 2))
    assert drawn.tolist() == [[0, 1]]


def test_an_empty_row_is_zero():
    assert Row().begin == Row().end == 0
    assert Spans(union=True).draw([0], pixel_bounds(0, 10, 5)).tolist() == [[0] * 5]
    assert Spans(union=True).sums(0, 10) == {}


def test_a_pixel_that_several_fill_is_full_only_when_all_of_them_do():
    lane = brute.lane([[(0, 0, 100), (0, 0, 100), (0, 100, 200)]], union=False)
    drawn = lane.draw([0], pixel_bounds(0, 400, 4), 2)
    assert drawn.tolist() == [[255, brute.code(1, 2), 0, 0]]
