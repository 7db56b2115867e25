"""Copies are dropped, contradictions are kept."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_runtime.vocabulary.events import Debt
from cascade_runtime.vocabulary.identity import Dot
from collector.duplicates import distinct, has_repeats
from collector.schema.rows import events_to_table
from collector.trace.trace_writer import write_tables
from tests.collector.traces import (
    done,
    entered,
    leading,
    notes_of,
    rows_of,
    segment,
    step,
    write_spool,
)


def test_a_segment_in_the_spool_and_in_a_file_is_read_once(trace):
    write_spool(trace, "0-0", segment([step(0), step(1)]))
    write_tables(trace, {"steps": [step(0), step(1)]})
    assert rows_of(trace)["steps"] == [step(0), step(1)]
    assert notes_of(trace) == ["events/steps: 2 rows are there twice; one copy each is read"]


def test_different_rows_under_one_number_are_both_kept(trace):
    write_tables(trace, {"steps": [step(0), step(0, phase="end"), step(0)]})
    assert len(rows_of(trace)["steps"]) == 2


def test_a_projection_does_not_mistake_a_contradiction_for_a_copy(trace):
    from collector.trace.trace_folder import open_trace

    write_tables(trace, {"steps": [step(0), step(0, phase="end")]})
    with open_trace(trace) as opened:
        assert opened.table("steps", ["seq"]).num_rows == 2


def test_an_entered_row_gives_way_to_its_union(trace):
    write_tables(trace, {"collectives": [entered(0, completed=False), entered(1, completed=False)]})
    write_spool(trace, "0-0", segment([entered(0), done(0)]))
    first, second = rows_of(trace)["collectives"]
    assert (first.completed, second.completed) == (True, False)


def test_an_entered_row_of_another_collective_does_not(trace):
    write_tables(trace, {"collectives": [entered(0, completed=False, op="barrier")]})
    write_spool(trace, "0-0", segment([entered(0), done(0)]))
    assert len(rows_of(trace)["collectives"]) == 2


def test_nan_and_null_are_equal_to_themselves_only():
    rows = [step(0, loss=loss) for loss in (math.nan, None, math.nan, None, 0.0)]
    assert list(distinct(events_to_table("steps", rows))) == [0, 1, 4]


def test_lists_are_compared_by_value():
    dots = [[Dot(0, 0, 1)], [Dot(0, 0, 2)], [Dot(0, 0, 1)], [], None]
    rows = [Debt(**leading(0), action="opened", clock=clock) for clock in dots]
    assert list(distinct(events_to_table("debt", rows))) == [0, 1, 3, 4]


KEYS = st.tuples(
    st.sampled_from([0, 1, 2**31 - 1]), st.sampled_from([0, 5]), st.sampled_from([0, 1, 2**63 - 1])
)


@given(rows=st.lists(st.tuples(KEYS, st.sampled_from(["begin", "end"])), max_size=12))
@settings(deadline=None)
def test_distinct_is_what_a_set_would_leave(rows):
    events = [
        step(seq, rank, incarnation=incarnation, phase=phase, step=0, wall_ns=0, mono_ns=0)
        for (rank, incarnation, seq), phase in rows
    ]
    table = events_to_table("steps", events)
    seen: set = set()
    first = [i for i, row in enumerate(rows) if not (row in seen or seen.add(row))]
    assert list(distinct(table)) == first
    assert has_repeats(table) is (len({key for key, _ in rows}) < len(rows))


def test_rows_in_order_are_not_sorted_again():
    table = pa.table({name: np.arange(10) for name in ("rank", "incarnation", "seq")})
    assert not has_repeats(table)
