"""Counts and medians in bounded memory, against the same in unbounded memory."""

from __future__ import annotations

from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.detectors._window import FiresIn, RecentMedian
from tests.detectors.steps import patient

bads = st.lists(st.booleans(), max_size=300)


def brute(history, fires_in, of, dwell, clears_after):
    """Where it stands after each, looking back over the whole history every time; one a second."""
    stands, begun, found = False, 0, []

    def many(i):
        return sum(history[max(begun, i + 1 - of) : i + 1]) >= fires_in

    for i, bad in enumerate(history):
        if stands:
            if i + 1 >= clears_after and not any(history[i + 1 - clears_after : i + 1]):
                stands, begun = False, i + 1
        elif bad and i - dwell >= begun and all(many(j) for j in range(i - dwell, i + 1)):
            stands = True
        found.append(stands)
    return found


@patient
@given(bads, st.integers(1, 5), st.integers(0, 5), st.integers(0, 6), st.integers(1, 12))
def test_fires_in_is_the_windowed_form_of_looking_back(history, fires_in, more, dwell, clears):
    fires, found = FiresIn(fires_in, fires_in + more, dwell, clears), []
    for i, bad in enumerate(history):
        before = fires.stands
        assert fires.add(bad, i) == (before != fires.stands)
        found.append(fires.stands)
    assert found == brute(history, fires_in, fires_in + more, dwell, clears)


@patient
@given(bads)
def test_what_stands_ends_only_after_a_row_of_good_ones(history):
    """No flapping: whatever comes, it stands for at least as long as it takes to clear."""
    fires, begun = FiresIn(3, 5, 0.0, 20), None
    for i, bad in enumerate(history):
        if fires.add(bad, i):
            if fires.stands:
                begun = i
            else:
                assert i - begun >= 20


@patient
@given(st.lists(st.floats(0, 1), min_size=1, max_size=400), st.sampled_from([1, 5, 20]))
def test_the_median_is_that_of_the_window(values, least):
    """Samples at least a slot apart: none is left out, so the plain median is the answer."""
    recent, window, gap = RecentMedian(4.0, least, slots=16), 4.0, 0.25
    for i, value in enumerate(values):
        recent.add(value, i * gap)
        if i + 1 < least:
            assert recent.value is None
        else:
            inside = [v for j, v in enumerate(values[: i + 1]) if j * gap >= i * gap - window]
            enough = inside if len(inside) >= least else values[:least]
            assert recent.value == median(enough)


@patient
@given(st.integers(1, 5000))
def test_memory_is_bounded_however_many_come(num):
    recent = RecentMedian(60.0, 20, slots=64)
    for i in range(num):
        recent.add(1.0, i * 0.001)
    assert len(recent._samples) <= 65
    assert (recent.value is None) == (num < 20)


def test_without_newer_samples_the_last_median_stays():
    recent = RecentMedian(1.0, 1)
    recent.add(3.0, 0.0)
    assert recent.value == 3.0
    recent.add(5.0, 1000.0)
    assert recent.value == 5.0
