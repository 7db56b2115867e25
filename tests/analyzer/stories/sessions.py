"""What one actor sees in order."""

from __future__ import annotations

from tests.analyzer.stories.kit import Told, story
from tests.story import Story


@story("S1", "trips")
def _() -> Told:
    s = Story(ranks=2)
    a = s.ranks[0]
    a.issue(version=1)
    a.issue(version=2)
    bad = a.read(version=1, dot=(0, 0, 1))
    return s, [bad]


@story("S1", "trips")
def by_frontier() -> Told:
    s = Story(ranks=2, regime="CAUSAL")
    a = s.ranks[0]
    a.declare(update_kind="delta")
    one = a.issue()
    a.issue()
    return s, [a.read(frontier=[one])]


@story("S1", "trips")
def by_dot() -> Told:
    s = Story(ranks=2, regime="CAUSAL")
    a = s.ranks[0]
    a.issue()
    return s, [a.read()]


@story("S1", "almost")
def _() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    a.issue(version=1)
    a.read(version=1, dot=(0, 0, 1))
    a.issue(version=2)
    a.discard((0, 0, 2))  # void: it never was
    a.read(version=1, dot=(0, 0, 1))
    b.step = 1
    b.read(version=0)  # another actor, which never wrote
    a.issue("buffers", version=3)
    a.checkpoint("saved", "k")
    a.checkpoint("loaded", "k")
    a.read("buffers", version=2)  # a load starts anew
    return s, []


@story("S1", "almost")
def eventual_promises_no_session() -> Told:
    s = Story(ranks=2, regime="EVENTUAL")
    a = s.ranks[0]
    a.issue(version=2)
    a.read(version=1)
    return s, []


@story("S2", "trips")
def _() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    dots = [a.issue(version=v) for v in (1, 2)]
    b.read(version=2, dot=dots[1])
    bad = []
    for step, (version, dot) in enumerate([(1, dots[0]), (0, None)], 1):
        b.step = step
        bad.append(b.read(version=version, dot=dot))
    return s, bad


@story("S2", "trips")
def by_frontier_of_others() -> Told:
    s = Story(ranks=2, regime="CAUSAL")
    a, b = s.ranks
    a.declare(update_kind="delta")
    one, two = a.issue(), a.issue()
    b.read(frontier=[two])
    return s, [b.read(frontier=[one])]


@story("S2", "trips")
def by_dot_of_others() -> Told:
    s = Story(ranks=2, regime="CAUSAL")
    a, b = s.ranks
    one, two = a.issue(), a.issue()
    b.read(dot=two)
    return s, [b.read(dot=one)]


@story("S2", "almost")
def _() -> Told:
    s = Story(ranks=3, regime="CAUSAL")
    a, b, c = s.ranks
    a.declare("deltas", update_kind="delta")
    mine, yours = a.issue(), c.issue()
    b.read(dot=mine)
    b.read(dot=yours)  # concurrent: not older
    one = a.issue("deltas")
    other = a.issue("params/1")  # raises a's counter, on another object
    b.read("deltas", frontier=[other])
    b.read("deltas", frontier=[one])
    return s, []
