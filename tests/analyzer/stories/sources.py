"""Where what is seen came from."""

from __future__ import annotations

from tests.analyzer.stories.kit import Told, story
from tests.story import Story


@story("A1", "trips")
def _() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    a.issue()
    return s, [b.read(dot=(0, 0, 9))]


@story("A1", "trips")
def applied_and_folded() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    a.declare(update_kind="delta")
    b.apply(a.issue())
    rows = [b.apply((0, 0, 2)), b.read(frontier=[(0, 0, 3), (1, 0, 7)])]
    return s, rows


@story("A1", "trips")
def author_left_in_order() -> Told:
    # Its rows run up to its own leaving, so an update that is not among them was never issued.
    s = Story(ranks=3, agents=1)
    a, b, c = s.ranks
    row = a.apply((2, 0, 1))
    s.walk("STRONG", None, members=[a, b], departed=[c])
    c.view([a, b], departed=[c], reason="finished")
    return s, [row]


@story("A1", "unknown")
def author_finished_and_its_last_rows_are_not_there() -> Told:
    s = Story(ranks=3, agents=1)
    a, b, c = s.ranks
    a.apply((2, 0, 1))
    s.walk("STRONG", None, members=[a, b], departed=[c])
    return s, []


@story("A1", "almost")
def _() -> Told:
    # Not issued in this run, but inside the checkpoint that was loaded.
    s = Story(ranks=2)
    for one in s.ranks:
        one.checkpoint("loaded", "k", [(0, 0, 9)])
    s.ranks[1].read(dot=(0, 0, 9))
    return s, []


@story("A1", "unknown")
def gap_at_the_author() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    a.gap(*a.lose())
    b.read(dot=(0, 0, 1))
    return s, []


@story("A1", "unknown")
def author_departed() -> Told:
    s = Story(ranks=3, agents=1)
    a, b, c = s.ranks
    a.apply((2, 0, 1))
    s.walk("CAUSAL", "GPU_FAIL_STOP", members=[a, b], departed=[c])
    s.settle_all()
    return s, []


@story("A3", "trips")
def _() -> Told:
    # Each read what the other wrote only afterwards.
    s = Story(ranks=2)
    a, b = s.ranks
    first = a.read("params/1", dot=(1, 0, 1))
    a.issue("params/0")
    b.read("params/0", dot=(0, 0, 1))
    b.issue("params/1")
    return s, [first]


@story("A3", "trips")
def read_before_own_write() -> Told:
    s = Story(ranks=2)
    a = s.ranks[0]
    early = a.read(dot=(0, 0, 1))
    a.issue()
    return s, [early]


@story("A3", "almost")
def _() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    dot = a.issue("params/0")
    b.read("params/0", dot=dot)
    back = b.issue("params/1")
    a.read("params/1", dot=back)
    return s, []


@story("A5", "trips")
def _() -> Told:
    s = Story(ranks=2)
    a = s.ranks[0]
    dot = a.issue()
    a.issue(dot=dot)
    return s, [s.rows[-1][1]]


@story("A5", "trips")
def different_content() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    dot = a.issue(digest="aa")
    a.apply(dot, digest="aa")
    return s, [b.apply(dot, digest="ab")]


@story("A5", "almost")
def _() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    dot = a.issue()
    a.apply(dot, digest="aa")
    b.apply(dot, digest="aa")
    return s, []
