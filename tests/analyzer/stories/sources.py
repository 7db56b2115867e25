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


@story("A4", "not_in_total")
def _() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    # Once: what it has seen, it has.
    dot = a.issue()
    row = b.read(dot=dot)
    b.read(dot=dot)
    return s, [row]


@story("A4", "not_in_total")
def told_before_it_was_issued() -> Told:
    s = Story(ranks=3)
    a, b, c = s.ranks
    a.tell(b)
    row = b.apply(a.issue())
    b.tell(c)
    c.read(dot=(0, 0, 1))
    return s, [row]


@story("A4", "almost")
def _() -> Told:
    # By a message through a third, by a collective completed just then, by what was seen before.
    s = Story(ranks=3)
    a, b, c = s.ranks
    dot = a.issue()
    a.tell(c)
    c.tell(b)
    b.apply(dot)
    again = a.issue()
    s.all_reduce()
    b.apply(again)
    c.read(dot=again)
    return s, []


@story("A4", "almost")
def loaded() -> Told:
    # The checkpoint was saved by a run before; the dot is inside it.
    s = Story(ranks=2)
    a, b = s.ranks
    dot = a.issue()
    b.checkpoint("loaded", "of yesterday", [dot], scope="self")
    b.read(dot=dot)
    return s, []


@story("A4", "almost")
def fold_of_a_climb() -> Told:
    s = Story(ranks=2, regime="CAUSAL")
    a, b = s.ranks
    s.walk("STRONG", "STABLE_SYNC", debts=False)
    dot = a.issue(version=1)
    b.apply(dot, version=1)
    b.read(dot=dot, version=1)
    return s, []


@story("A4", "almost")
def log_after_a_live_snapshot() -> Told:
    s = Story(ranks=3)
    a, b, c = s.ranks
    b.checkpoint("saved", "live", scope="self", durable=False)
    c.checkpoint("received", "live", scope="self", durable=False)
    dot = a.issue()
    a.tell(b)
    b.apply(dot)
    c.apply(dot)
    return s, []


@story("A4", "almost")
def under_eventual() -> Told:
    s = Story(ranks=2, regime="EVENTUAL")
    a, b = s.ranks
    b.read(dot=a.issue())
    return s, []


@story("A4", "unknown")
def gap_where_a_message_may_have_been() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    dot = a.issue()
    b.gap(*b.lose(), tables=["messages"])
    b.read(dot=dot)
    return s, []
