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


@story("Q3", "not_in_total")
def _() -> Told:
    s = Story(ranks=2)
    s.ranks[0].row("steps", phase="begin")
    s.now -= 5_000_000
    s.ranks[0].row("steps", phase="end")
    return s, []


@story("Q3", "almost")
def _() -> Told:
    # Equal times, and another actor's earlier ones.
    s = Story(ranks=2)
    s.step_ns = 0
    s.ranks[0].row("steps", phase="begin")
    s.ranks[0].row("steps", phase="end")
    s.ranks[1].skew_ns = 0
    return s, []


@story("Q4", "not_in_total")
def _() -> Told:
    s = Story(ranks=2)
    rows = s.all_reduce()
    rows[0]["complete_ns"] = rows[1]["enter_ns"] - 1
    return s, []


@story("Q4", "almost")
def _() -> Told:
    # As early as can be; a broadcast's root need not wait for anybody.
    s = Story(ranks=2)
    rows = s.all_reduce()
    rows[0]["complete_ns"] = rows[1]["enter_ns"]
    rows = s.all_reduce(op="broadcast", root=0)
    rows[0]["complete_ns"] = rows[1]["enter_ns"] - 1
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
