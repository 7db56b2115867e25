"""Debt, and what is folded twice."""

from __future__ import annotations

from tests.analyzer.stories.kit import Told, commit_of, story
from tests.story import Story


@story("R3", "trips")
def _() -> Told:
    s = Story(ranks=2, agents=1)
    row = s.ranks[0].open_debt("d1", new_epoch=0)
    return s, [row]


@story("R3", "almost")
def _() -> Told:
    s = Story(ranks=2, agents=1)
    s.ranks[0].open_debt("d1", new_epoch=0)
    s.ranks[1].settle("d1", action="written_off", resolution="discarded")
    return s, []


@story("R3", "unknown")
def _() -> Told:
    s = Story(ranks=2, agents=1)
    s.ranks[0].open_debt("d1", new_epoch=0)
    return s.source(clean=False), []


@story("R4", "trips")
def _() -> Told:
    s = Story(ranks=2, agents=1)
    s.walk("CAUSAL", "RANK_SKEW_HIGH", debts=False)
    return s, [commit_of(s, 1, 2)]


@story("R4", "trips")
def only_one_of_two() -> Told:
    s = Story(ranks=2, agents=1)
    s.walk("EVENTUAL", "STATE_CORRUPTION", debts=False)
    s.ranks[0].open_debt("d1", "STRONG", new_epoch=1)
    s.ranks[0].settle("d1")
    return s, [commit_of(s, 1, 2)]


@story("R4", "almost")
def _() -> Told:
    s = Story(ranks=2, agents=1)
    s.walk("EVENTUAL", "STATE_CORRUPTION")
    s.settle_all()
    return s, []


@story("R4", "unknown")
def _() -> Told:
    s = Story(ranks=2, agents=1)
    s.walk("CAUSAL", "RANK_SKEW_HIGH", debts=False)
    s.ranks[0].gap(*s.ranks[0].lose(), tables=["debt"])
    return s, []


@story("R2", "trips")
def _() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    a.declare(update_kind="delta")
    dot = a.issue()
    b.apply(dot)
    twice = b.apply(dot)
    return s, [twice]


@story("R2", "trips")
def inside_the_load() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    a.declare(update_kind="delta")
    dot = a.issue()
    a.checkpoint("saved", "k", [dot])
    b.checkpoint("loaded", "k", [dot])
    return s, [b.apply(dot)]


@story("R2", "almost")
def _() -> Told:
    # Twice, but into another state; and an assigned object may be set twice.
    s = Story(ranks=2)
    a, b = s.ranks
    a.declare(update_kind="delta")
    dot = a.issue()
    a.checkpoint("saved", "k", [])
    b.apply(dot)
    b.checkpoint("loaded", "k", [])
    b.apply(dot)
    other = a.issue("buffers")
    b.apply(other, "buffers")
    b.apply(other, "buffers")
    return s, []


@story("R2", "unknown")
def _() -> Told:
    s = Story(ranks=2)
    s.ranks[1].gap(*s.ranks[1].lose(), tables=["updates"])
    return s, []
