"""The same story under the regime below: what a regime does not promise is not broken there."""

from __future__ import annotations

import pytest

from analyzer import analyze
from tests.analyzer.stories.every import STORIES
from tests.story import Story

CAUSAL_ONLY = ("S1", "S2", "S4", "C1", "C2", "C3", "T1")
"""Broken under CAUSAL, promised by nobody under EVENTUAL."""

EVERYWHERE = ("A1", "A5", "S3", "R2")
"""Promised in every regime."""


def pairs(codes):
    found = [(c, tell) for c, kind, tell in STORIES if kind == "trips" and c in codes]
    return [
        pytest.param(c, t, id=f"{c}-{t.__name__.strip('_') or i}") for i, (c, t) in enumerate(found)
    ]


def verdict(story, code, regime):
    """The rule's verdict when everything is done under that regime."""
    for table, row in story.rows:
        if table in ("updates", "reads", "digests"):
            row["regime"] = regime
    report = analyze(story.source()).report
    return next(c.verdict for c in report.checks if c.code == code)


@pytest.mark.parametrize(("code", "tell"), pairs(CAUSAL_ONLY))
def test_broken_under_causal_and_fine_under_eventual(code, tell):
    story, _ = tell()
    assert isinstance(story, Story)
    assert verdict(story, code, "CAUSAL") == "violated"
    assert verdict(story, code, "EVENTUAL") == "ok"


@pytest.mark.parametrize(("code", "tell"), pairs(EVERYWHERE))
def test_broken_in_every_regime(code, tell):
    story, _ = tell()
    for regime in ("STRONG", "CAUSAL", "EVENTUAL"):
        assert verdict(story, code, regime) == "violated"


def two_replicas():
    s = Story(ranks=2)
    a, b = s.ranks
    a.digest("aa", version=3)
    b.digest("ab", version=3)
    return s


def two_versions_in_a_step():
    s = Story(ranks=2)
    a, b = s.ranks
    dot = a.issue(version=1)
    a.tell(b)
    b.apply(dot, version=1)
    later = a.issue(version=2)
    a.read(version=2, dot=later)
    b.read(version=1, dot=dot)
    return s


@pytest.mark.parametrize("tell", [two_replicas, two_versions_in_a_step])
def test_broken_under_strong_and_fine_below(tell):
    assert verdict(tell(), "G1", "STRONG") == "violated"
    assert verdict(tell(), "G1", "CAUSAL") == "ok"
    assert verdict(tell(), "G1", "EVENTUAL") == "ok"
    story = two_versions_in_a_step()
    for table, row in story.rows:
        if table in ("updates", "reads"):
            row["regime"] = "CAUSAL"
    report = analyze(story.source()).report
    assert [v.code for v in report.violations] == []
