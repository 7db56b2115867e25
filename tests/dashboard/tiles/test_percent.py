from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.tiles.encode import pixel_bounds
from dashboard.tiles.percent import Samples, draw_busy
from dashboard.tiles.percent_native import BLOCK
from tests.dashboard.tiles import brute


def whole(value):
    return math.floor(min(max(value, 0.0), 100.0) + 0.5)


def expected(samples, a, b, w):
    rows = [
        brute.spread([whole(v) for t, v in samples if x <= t < y]) for x, y in brute.pixels(a, b, w)
    ]
    return np.array(rows, np.uint8).T


SAMPLE = st.tuples(st.integers(-20, 120), st.floats(-10, 130))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(SAMPLE, max_size=50), max_size=5),
    st.integers(-30, 100),
    st.integers(1, 150),
    st.integers(1, 40),
)
def test_any_window_is_exact(batches, a, width, w):
    samples = Samples()
    for batch in batches:
        samples.add(
            np.array([t for t, _ in batch], np.int64), np.array([v for _, v in batch], float)
        )
    every = [one for batch in batches for one in batch]
    drawn = samples.draw(pixel_bounds(a, a + width, w))
    assert np.array_equal(drawn, expected(every, a, a + width, w))


def test_many_samples_with_late_ones_are_exact_over_the_kept_histograms():
    rng = np.random.default_rng(3)
    samples, every = Samples(), []
    for size in (BLOCK, 5 * BLOCK, 1, BLOCK - 1, 3 * BLOCK + 7, 0, 9000):
        times, values = rng.integers(0, 10**6, size), rng.uniform(0, 100, size)
        samples.add(times, values)
        every += zip(times.tolist(), values.tolist(), strict=True)
    for a, b, w in ((0, 10**6, 3), (0, 10**6, 50), (-7, 2 * 10**6, 1), (333_333, 333_999, 11)):
        assert np.array_equal(samples.draw(pixel_bounds(a, b, w)), expected(every, a, b, w))


def test_what_is_no_number_is_no_sample():
    samples = Samples()
    samples.add(np.array([1, 2, 3]), np.array([np.nan, 40.0, np.inf]))
    assert samples.draw(pixel_bounds(0, 4, 1)).ravel().tolist() == [40, 40, 40, 40, 40, 1]
    assert Samples().draw(pixel_bounds(0, 4, 1)).ravel().tolist() == [255] * 5 + [0]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 200), st.integers(1, 40)), max_size=40),
    st.integers(-20, 200),
    st.integers(1, 250),
    st.integers(1, 30),
)
def test_busy_share_counts_a_rank_from_its_first_to_its_last_span(spans, a, width, w):
    batch = [(r, s, s + d) for r, s, d in spans]
    busy = brute.lane([batch], union=True)
    known = brute.of_ranks([batch])
    rows = []
    for x, y in brute.pixels(a, a + width, w):
        values = []
        for mine in known.values():
            low, high = max(x, min(s for s, _ in mine)), min(y, max(e for _, e in mine))
            if low < high:
                share = brute.inside(mine, low, high, union=True) / (high - low)
                values.append(math.floor(100.0 * share + 0.5))
        rows.append(brute.spread(values))
    drawn = draw_busy(busy, pixel_bounds(a, a + width, w))
    assert np.array_equal(drawn, np.array(rows, np.uint8).T)
