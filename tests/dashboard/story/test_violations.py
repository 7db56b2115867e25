"""Stories that break a promise: the line on top, the steps, the incidents."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from analyzer import analyze
from analyzer.codes import NEVER_VIOLATED
from collector.trace.samples import sample_traces
from dashboard.story.violations import _places
from tests.analyzer.stories.every import STORIES
from tests.dashboard.story.kit import story_of, trace_of
from tests.story import Story

TRIPS = [(code, tell) for code, kind, tell in STORIES if kind == "trips"]


@pytest.mark.parametrize(
    ("code", "tell"), [pytest.param(c, t, id=f"{c}-{n}") for n, (c, t) in enumerate(TRIPS)]
)
def test_every_rule_that_trips_is_told(code, tell, tmp_path):
    told, rows = tell()
    report = analyze(told.source() if isinstance(told, Story) else told).report
    story = story_of(trace_of(told, tmp_path / "t", judged=code > "G"))
    assert story.verdict.state == report.verdict
    ids = {v.id for v in story.violations}
    for row in rows:
        assert f"{code}:{row['rank']}:{row['incarnation']}:{row['seq']}" in ids
    (top, *_) = story.incidents
    if code not in NEVER_VIOLATED:
        assert top.kind == "violation" and top.severity == "error"
        assert "broken" in story.verdict.sentence
        first = min(report.violations, key=lambda v: v.wall_ns)
        assert first.sentence.rstrip(".")[:200] in story.verdict.sentence
    for violation in story.violations:
        assert violation.steps and violation.steps[0].edge is None
        assert all(s.at_ns is not None and s.text for s in violation.steps)


def many(number):
    s = Story(ranks=2)
    for debt in range(number):
        s.ranks[0].open_debt(f"d{debt}")
    return s


def test_many_of_one_code_are_one_incident_and_capped(tmp_path):
    told = many(620)
    number = len(analyze(told.source()).report.violations)
    assert number > 500
    story = story_of(trace_of(told, tmp_path / "t"))
    assert len(story.violations) == 500
    assert story.verdict.num_violations == number
    violations = [i for i in story.incidents if i.kind == "violation"]
    assert len(violations) == 1
    assert f"{number:,} times" in violations[0].title
    assert f"One promise was broken {number:,} times, first at" in story.verdict.sentence


def test_the_headline_says_from_which_step_on_replicas_differ():
    story = story_of(sample_traces()["silent-restore"])
    assert "8 times, first at" in story.verdict.sentence
    assert (
        ": rank 2 differs from 3 other replicas in params/0 from step 25 on (equal in step 23)"
        in (story.verdict.sentence)
    )


def test_one_is_one(tmp_path):
    story = story_of(trace_of(many(1), tmp_path / "t"))
    assert story.verdict.sentence.startswith("One promise was broken, at 0.0 s: ")


@pytest.mark.parametrize("reported", range(9))
def test_the_reported_row_is_always_a_step(reported):
    witness = [{"rank": 0, "incarnation": 0, "seq": seq} for seq in range(9)]
    violation = Mock(rank=0, incarnation=0, seq=reported, witness=witness)
    places = _places(violation)
    assert reported in places and {0, 8} <= set(places)
    assert len(places) == len(set(places)) == 5 and places == sorted(places)
