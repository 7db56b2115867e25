"""Samples are drawn over the time that they are of, and nowhere else."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser

SAMPLE_OF = """([a, b, median]) => {
  const layer = { rows: ["median"], cols: median.length, data: Uint8Array.from(median) };
  return [...Cascade.lanes.BusyLane.sampleOf({ a, b }, layer)];
}"""
NONE = 255


def test_a_sample_reaches_half_a_second_back_and_no_further(page):
    # Ten columns of 200 ms: the period, and a little, is three of them.
    median = [NONE, NONE, NONE, NONE, NONE, 20, NONE, NONE, 0, NONE]
    assert page.evaluate(SAMPLE_OF, [0, 2e9, median]) == [-1, -1, 5, 5, 5, 5, 8, 8, 8, -1]


def test_where_columns_are_longer_than_the_period_each_stands_for_itself(page):
    median = [10, NONE, 30, NONE]
    assert page.evaluate(SAMPLE_OF, [0, 40e9, median]) == [0, -1, 2, -1]
