"""Traces that no sound run writes: a clear answer each."""

from __future__ import annotations

import random

import pytest

from analyzer import analyze
from analyzer.history import History
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from tests.analyzer.random_story import sound_story
from tests.story import MemorySource, Story

EDGES = (2**63 - 1, 2**62, 2**53 + 1, 2**31, -1, -(2**63) + 1)
INT32 = (2**31 - 1, -(2**31), -1)


def check(report, code):
    return next(c for c in report.checks if c.code == code)


@pytest.mark.parametrize("seed", range(30))
def test_numbers_at_their_limits_are_answered(seed):
    rng = random.Random(seed)
    story = sound_story(seed, ranks=3)
    columns = {
        t.name: [c for c in t.columns if c.type in ("int32", "int64") and c.name != "rank"]
        for t in EVENT_TABLES.values()
    }
    for table, row in story.rows:
        for column in columns[table]:
            if rng.random() < 0.05:
                limits = INT32 if column.type == "int32" else EDGES
                row[column.name] = rng.choice(limits)
    report = analyze(story.source()).report
    assert report.verdict in ("ok", "violated", "unknown")
    for violation in report.violations:
        assert violation.sentence.endswith(".")


def test_a_trace_without_rows_is_unknown_and_says_who_is_missing():
    report = analyze(Story(ranks=2, start=False).source()).report
    assert report.verdict == "unknown"
    assert {"rank 0: no events", "rank 1: no events"} <= set(report.not_supplied)
    assert report.violations == report.suspects == []


@pytest.mark.parametrize("table", EVENT_TABLES)
def test_any_table_may_be_empty(table):
    story = sound_story(3)
    story.rows = [(t, r) for t, r in story.rows if t != table]
    meta = story.source().meta
    report = analyze(MemorySource(meta, story.rows)).report
    assert report.verdict in ("ok", "violated", "unknown")


def test_a_clock_that_claims_what_nobody_issued_is_named():
    s = Story(ranks=2)
    a, b = s.ranks
    a.declare("params/0", "delta")
    a.issue()
    a.tell(b)
    row = b.read(frontier=[(0, 0, 9)])
    report = analyze(s.source()).report
    (found,) = report.violations
    assert (found.code, found.rank, found.seq) == ("A1", 1, row["seq"])
    assert "0:9" in found.sentence


def test_a_clock_that_claims_what_a_gap_may_hold_is_unknown():
    s = Story(ranks=2)
    a, b = s.ranks
    a.declare("params/0", "delta")
    a.gap(*a.lose(), tables=["updates"])
    b.read(frontier=[(0, 0, 9)])
    report = analyze(s.source()).report
    assert (report.verdict, check(report, "A1").verdict) == ("unknown", "unknown")
    assert "rank 0" in check(report, "A1").reason


@pytest.mark.parametrize("epoch", [1, None])
def test_what_a_closed_author_issued_and_its_mate_discarded_is_void(epoch):
    """Also where the discard's epoch was not recorded: then it counts as after the departure."""
    s = Story(ranks=3)
    a, b, c = s.ranks
    lost = a.issue("params/0")
    for one in (b, c):
        one.epoch = 1
        one.view([b, c], departed=[a])
    b.epoch = epoch
    b.discard(lost)
    b.epoch = 1
    history = History(s.source())
    assert [history.dots.name(key) for key in history.dots.void.tolist()] == ["0:1"]
