"""The trace itself."""

from __future__ import annotations

from tests.analyzer.stories.kit import Told, story
from tests.story import Story


@story("Q1", "unknown")
def _() -> Told:
    s = Story(ranks=2)
    s.ranks[0].lose()
    s.ranks[0].row("steps", phase="end")
    return s, []


@story("Q1", "almost")
def _() -> Told:
    # The hole is accounted for, and only health is lost.
    s = Story(ranks=2)
    s.ranks[0].gap(*s.ranks[0].lose(), tables=["health"])
    return s, []


@story("Q2", "unknown")
def _() -> Told:
    s = Story(ranks=2)
    row = s.ranks[0].read(version=1)
    s.rows.append(("reads", {**row, "version": 2}))
    return s, []


@story("Q2", "almost")
def _() -> Told:
    s = Story(ranks=2)
    row = s.ranks[0].read(version=1)
    s.rows.append(("reads", dict(row)))
    s.rows.append(("reads", dict(row)))
    return s, []


@story("Q5", "unknown")
def _() -> Told:
    s = Story(ranks=2, start=False)
    s.ranks[0].lose(4)
    for one in s.ranks:
        one.row("steps", phase="end")
    return s, []


@story("Q5", "almost")
def _() -> Told:
    s = Story(ranks=2, start=False)
    one = s.ranks[0]
    one.gap(*one.lose(4), tables=["gpu", "health"], reason="ring_wrapped")
    for teller in s.ranks:
        teller.row("steps", phase="end")
    return s, []
