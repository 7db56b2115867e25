"""Marks and spans, against plain sets."""

from __future__ import annotations

import threading
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from collector.hot.spans import Known, Spans

SEQS = st.integers(0, 40)
SPAN = st.tuples(SEQS, SEQS).map(lambda pair: (min(pair), max(pair)))
STEP = st.one_of(st.tuples(st.just("add"), SPAN), st.tuples(st.just("take"), st.lists(SEQS)))


def as_set(spans):
    return {seq for first, last in spans for seq in range(first, last + 1)}


def make(steps):
    """Spans and the set that they should be, after some steps."""
    spans, model = Spans(), set()
    for what, value in steps:
        if what == "add":
            spans.add(*value)
            model |= as_set([value])
            continue
        flags = spans.take(value)
        expected = []
        for seq in value:
            expected.append(seq not in model)
            model.add(seq)
        assert (flags or [True] * len(value)) == expected
        assert flags is None or not all(flags)
    return spans, model


@given(st.lists(STEP, max_size=30))
def test_spans_are_the_set_of_what_was_stored(steps):
    spans, model = make(steps)
    assert as_set(spans) == model
    assert len(spans) == len(model)
    assert spans.last == max(model, default=-1)
    assert [seq in spans for seq in range(45)] == [seq in model for seq in range(45)]
    listed = list(spans)
    assert all(a_last + 1 < b_first for (_, a_last), (b_first, _) in pairwise(listed))


@given(st.lists(STEP, max_size=20), SPAN)
def test_free_means_that_nothing_of_it_is_stored(steps, span):
    spans, model = make(steps)
    assert spans.is_free(*span) == model.isdisjoint(as_set([span]))


@given(st.lists(SPAN, max_size=20))
def test_spans_are_made_of_spans_in_any_order(listed):
    assert as_set(Spans(listed)) == as_set(listed)


@given(st.lists(SPAN), st.lists(SPAN), SEQS)
def test_marks_and_holes(stored, covered, below):
    known = Known(Spans(stored), Spans(covered))
    model = as_set(stored) | as_set(covered)
    assert known.last == max(model, default=-1)
    assert set(range(known.mark + 1)) <= model
    assert known.mark + 1 not in model
    assert as_set(known.holes(below)) == set(range(below)) - model


@given(st.lists(STEP, max_size=10), SPAN)
def test_a_copy_is_independent(steps, span):
    spans, model = make(steps)
    twin = spans.copy()
    twin.add(*span)
    assert as_set(spans) == model


def test_every_second_seq_is_taken_in_one_go():
    spans = Spans()
    assert spans.take(list(range(0, 200_000, 2))) is None
    assert spans.take(list(range(199_999, 0, -2))) is None
    assert list(spans) == [(0, 199_999)]


def test_a_reader_beside_the_writer_never_trips():
    spans = Spans()
    stop = threading.Event()
    wrong = []

    def read():
        while not stop.is_set():
            try:
                before = len(spans)
                if len(spans) < before:
                    wrong.append("it shrank")
            except Exception as error:
                wrong.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for seq in range(0, 4000, 2):
        spans.add(seq, seq)
    for seq in range(1, 4000, 2):
        spans.add(seq, seq)
    stop.set()
    reader.join()
    assert not wrong
