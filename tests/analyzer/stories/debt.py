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


def _relaxed(ranks: int = 2) -> Story:
    s = Story(ranks=ranks, regime="CAUSAL")
    s.ranks[0].declare(update_kind="delta")
    return s


@story("R1", "trips")
def _() -> Told:
    s = _relaxed()
    a, b = s.ranks
    dots = [a.issue(), b.issue()]
    rows = [one.open_debt(f"d{i}", in_flight=[dots[i]]) for i, one in enumerate(s.ranks)]
    a.settle("d0", frontier=dots[:1], resolved=[])
    a.settle("d1", frontier=dots[:1], resolved=[])
    return s, rows[1:]


@story("R1", "trips")
def issued_and_applied_in_between() -> Told:
    s = _relaxed()
    a, b = s.ranks
    row = a.open_debt("d1")
    a.tell(b)
    b.apply(b.issue())
    b.tell(a)
    a.settle("d1", frontier=[(0, 0, 7)], resolved=[])
    return s, [row]


@story("R1", "almost")
def _() -> Told:
    s = _relaxed(3)
    a, b, c = s.ranks
    flying, void = b.issue(), b.issue()
    b.discard(void)
    a.open_debt("d1", in_flight=[flying, void], object="params/0")
    a.tell(b, c)
    a.apply(c.issue("params/1"), "params/1")  # another object than the debt's
    named = b.issue()
    b.tell(a)
    a.apply(c.issue())  # nobody told that it was issued: but applying it is known
    a.settle("d1", frontier=[flying, (2, 0, 2)], resolved=[named])
    b.issue()  # after it
    return s, []


@story("R1", "almost")
def of_an_open_step() -> Told:
    s = _relaxed()
    a, b = s.ranks
    a.open_debt("d1")
    dot = a.issue()
    a.settle("d1", frontier=[], resolved=[])
    for one in (a, b):
        one.apply(dot)
    return s, []


@story("R1", "unknown")
def _() -> Told:
    s = _relaxed()
    a = s.ranks[0]
    a.open_debt("d1", in_flight=[a.issue()])
    a.settle("d1", resolution=None)
    return s, []


@story("R1", "unknown")
def who_knows_whether_it_was_voided() -> Told:
    s = _relaxed()
    a, b = s.ranks
    a.open_debt("d1", in_flight=[b.issue()])
    b.gap(*b.lose(), tables=["updates"])
    a.settle("d1", frontier=[], resolved=[])
    return s, []


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


@story("R2", "almost")
def what_it_loaded_names_no_rank() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    a.declare(update_kind="delta")
    a.checkpoint("saved", "k", [])
    a.checkpoint("loaded", "k", [(None, None, 100)])
    dot = b.issue()
    b.tell(a)
    a.apply(dot)
    return s, []


@story("R2", "unknown")
def _() -> Told:
    s = Story(ranks=2)
    s.ranks[1].gap(*s.ranks[1].lose(), tables=["updates"])
    return s, []
