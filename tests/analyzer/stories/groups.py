"""What a group does together."""

from __future__ import annotations

from tests.analyzer.stories.kit import Told, story
from tests.story import Story


@story("G1", "trips")
def _() -> Told:
    s = Story(ranks=3)
    s.ranks[0].digest("aa", version=3)
    s.ranks[1].digest("aa", version=3)
    bad = s.ranks[2].digest("ab", version=3)
    return s, [bad]


@story("G1", "trips")
def tie() -> Told:
    s = Story(ranks=2, regime="EVENTUAL")
    rows = [
        s.ranks[0].digest("aa", frontier=[(0, 0, 1)]),
        s.ranks[1].digest("ab", frontier=[(0, 0, 1)]),
    ]
    s.ranks[0].issue()
    return s, rows


@story("G1", "trips")
def reads_of_one_step() -> Told:
    s = Story(ranks=3)
    a, b, c = s.ranks
    dots = [a.issue(version=v) for v in (1, 2)]
    bad = b.read(version=1, dot=dots[0])
    a.read(version=2, dot=dots[1])
    c.read(version=2, dot=dots[1])
    return s, [bad]


@story("G1", "almost")
def _() -> Told:
    # Other versions, other frontiers, and versions outside STRONG: nothing says that these agree.
    s = Story(ranks=2)
    a, b = s.ranks
    a.digest("aa", version=3)
    b.digest("ab", version=4)
    a.regime = b.regime = "CAUSAL"
    a.digest("aa", "buffers", version=3)
    b.digest("ab", "buffers", version=3)
    a.digest("aa", "optim", frontier=[])
    a.issue("optim")
    b.digest("ab", "optim", frontier=[(0, 0, 1)])
    a.regime = b.regime = "STRONG"
    return s.source(recorded=["digests", "updates"]), []


@story("G1", "almost")
def what_another_cohort_did_not_take_over_is_not_void() -> Told:
    # It folded the author's step and left out its optimizer, long before the author was done.
    s = Story(ranks=2, agents=1, regime="CAUSAL")
    a, b = s.ranks
    a.digest("aa", "optim", frontier=[])
    dot = a.issue("optim")
    a.apply(dot, "optim")
    b.discard(dot, "optim")
    a.digest("ab", "optim", frontier=[dot])
    s.walk("CAUSAL", None, members=[b], departed=[a], leaving=[a], reason="finished")
    return s, []


@story("G2", "trips")
def _() -> Told:
    s = Story(ranks=3)
    rows = [
        s.ranks[0].enter(op="all_reduce"),
        s.ranks[1].enter(op="all_gather"),
        s.ranks[2].enter(op="all_reduce"),
    ]
    for one, row in zip(s.ranks, rows, strict=True):
        one.done(row)
    return s, [rows[1]]


@story("G2", "trips")
def size_on_a_tie() -> Told:
    s = Story(ranks=2)
    rows = [s.ranks[0].enter(num_bytes=4), s.ranks[1].enter(num_bytes=8)]
    for one, row in zip(s.ranks, rows, strict=True):
        one.done(row)
    return s, rows


@story("G2", "almost")
def _() -> Told:
    s = Story(ranks=2)
    rows = [
        s.ranks[0].enter(op="all_to_all", num_bytes=4),
        s.ranks[1].enter(op="all_to_all", num_bytes=8, dtype=None),
    ]
    for one, row in zip(s.ranks, rows, strict=True):
        one.done(row)
    return s, []


def _hang(s: Story) -> None:
    s.all_reduce()
    for one in s.ranks[:-1]:
        one.enter("c0", 1)


@story("G3", "trips")
def _() -> Told:
    s = Story(ranks=3)
    for one in s.ranks:
        one.join("c0", s.ranks)
    _hang(s)
    last = s.ranks[2].row("steps", phase="end")
    return s, [last]


@story("G3", "almost")
def given_up_by_a_later_commit() -> Told:
    s = Story(ranks=3, agents=1)
    a, b, c = s.ranks
    for one in s.ranks:
        one.join("c0", s.ranks)
    _hang(s)
    s.walk("CAUSAL", "GPU_FAIL_STOP", members=[a, b], departed=[c])
    s.settle_all()
    return s, []


@story("G3", "unknown")
def nothing_later() -> Told:
    s = Story(ranks=3)
    for one in s.ranks:
        one.join("c0", s.ranks)
    _hang(s)
    return s.source(clean=False), []


@story("G4", "trips")
def _() -> Told:
    s = Story(ranks=3)
    s.all_reduce()
    rows = [one.enter("c0", 1) for one in s.ranks]
    s.ranks[0].done(rows[0])
    s.ranks[1].done(rows[1])
    s.ranks[2].row("health", signal="alive")
    return s, [rows[2]]


@story("G4", "almost")
def _() -> Told:
    # Its done record is missing, but it completed the next one.
    s = Story(ranks=2)
    rows = [one.enter("c0", 0) for one in s.ranks]
    s.ranks[0].done(rows[0])
    s.cseq["c0"] = 1
    s.all_reduce()
    return s, []


@story("G4", "unknown")
def halted_before_the_end() -> Told:
    # Told of a walk after its entry; the commit that would have voided it was cut off.
    s = Story(ranks=3)
    rows = [one.enter("c0", 0) for one in s.ranks]
    s.ranks[0].done(rows[0])
    for one in s.ranks[1:]:
        one.recv(s.ranks[0].send(one))
        one.send(s.ranks[0])
        one.row("digests", object="params/0", digest="d")
    return s.source(clean=False), []


@story("G4", "unknown")
def _() -> Told:
    s = Story(ranks=3)
    rows = [one.enter("c0", 0) for one in s.ranks]
    s.ranks[0].done(rows[0])
    s.ranks[1].done(rows[1])
    return s.source(clean=False), []
