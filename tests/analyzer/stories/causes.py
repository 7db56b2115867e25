"""Cause and effect among updates, and among reads."""

from __future__ import annotations

from tests.analyzer.stories.kit import Told, story
from tests.story import Story


def apart(ranks: int = 3, update_kind: str = "delta", **columns: object) -> Story:
    """Ranks in CAUSAL, and one object."""
    s = Story(ranks=ranks, regime="CAUSAL")
    s.ranks[0].declare(update_kind=update_kind, **columns)
    return s


@story("S3", "trips")
def _() -> Told:
    s = apart(2)
    a, b = s.ranks
    one, two = a.issue(), a.issue()
    early = b.apply(two)
    b.apply(one)
    return s, [early]


@story("S3", "trips")
def never_applied_in_any_regime() -> Told:
    s = Story(ranks=2, regime="EVENTUAL")
    a, b = s.ranks
    a.issue("params/0")
    return s, [b.apply(a.issue("params/1"), "params/1")]


@story("S3", "trips")
def replaced_by_an_older_state() -> Told:
    s = apart(2)
    a, b = s.ranks
    one, two = a.issue(), a.issue()
    b.checkpoint("saved", "k", [], scope="self")
    b.apply(one)
    b.checkpoint("loaded", "k", [], scope="self")
    return s, [b.apply(two)]


@story("S3", "almost")
def _() -> Told:
    # Void, discarded here, loaded, or of an object that is not held: nothing to wait for.
    s = Story(ranks=3, regime="CAUSAL")
    a, b, c = s.ranks
    a.declare("params/0", holders=[0, 1])
    first = a.issue("params/0")
    second = a.issue("params/1")
    c.apply(second, "params/1")
    b.apply(first)
    b.discard(second, "params/1")
    void = a.issue("params/1")
    a.discard(void, "params/1")
    third = a.issue("params/1")
    b.apply(third, "params/1")
    c.checkpoint("received", "snapshot", [third])
    c.apply(a.issue("params/1"), "params/1")
    return s, []


@story("S3", "unknown")
def _() -> Told:
    s = apart(2)
    a, b = s.ranks
    a.issue()
    b.gap(*b.lose(), tables=["updates"])
    b.apply(a.issue())
    return s, []


@story("S3", "unknown")
def loaded_who_knows_what() -> Told:
    s = apart(2)
    a, b = s.ranks
    a.issue()
    b.checkpoint("loaded", "k", None)
    b.apply(a.issue())
    return s, []


@story("C1", "trips")
def _() -> Told:
    s = apart()
    a, b, c = s.ranks
    cause = a.issue()
    b.apply(cause)
    effect = b.issue(deps=[cause])
    early = c.apply(effect)
    c.apply(cause)
    return s, [early]


@story("C1", "trips")
def one_of_two_causes() -> Told:
    s = apart(4)
    a, b, c, d = s.ranks
    causes = [a.issue("params/1"), b.issue("params/1")]
    for cause in causes:
        c.apply(cause, "params/1")
    effect = c.issue(deps=causes)
    d.apply(causes[0], "params/1")
    return s, [d.apply(effect)]


@story("C1", "almost")
def _() -> Told:
    s = apart()
    a, b, c = s.ranks
    a.declare("params/1", holders=[0, 1])
    cause, void, elsewhere = a.issue(), a.issue(), a.issue("params/1")
    for dot, obj in ((cause, "params/0"), (elsewhere, "params/1")):
        b.apply(dot, obj)
    a.discard(void)
    c.apply(cause)
    c.apply(b.issue(deps=[cause, void, elsewhere]))
    return s, []


@story("C1", "almost")
def eventual_promises_no_causes() -> Told:
    s = Story(ranks=3, regime="EVENTUAL")
    a, b, c = s.ranks
    cause = a.issue()
    b.apply(cause)
    c.apply(b.issue(deps=[cause]))
    return s, []


@story("C1", "almost")
def the_cause_was_loaded() -> Told:
    s = apart()
    a, b, c = s.ranks
    cause = a.issue()
    b.apply(cause)
    b.checkpoint("saved", "k", [cause], durable=False)
    c.checkpoint("received", "k", [cause])
    c.apply(b.issue(deps=[cause]))
    return s, []


@story("C1", "unknown")
def _() -> Told:
    s = apart()
    a, b, c = s.ranks
    cause = a.issue()
    b.apply(cause)
    effect = b.issue(deps=[cause])
    c.gap(*c.lose(), tables=["updates"])
    c.apply(effect)
    return s, []


@story("C1", "unknown")
def the_author_of_the_cause_is_gone() -> Told:
    s = Story(ranks=3, agents=1)
    a, b, c = s.ranks
    s.walk("CAUSAL", "GPU_FAIL_STOP", members=[a, b], departed=[c])
    b.apply(a.issue(deps=[(2, 0, 4)]))
    s.settle_all()
    return s, []


@story("S4", "trips")
def _() -> Told:
    s = apart()
    a, b, c = s.ranks
    cause = a.issue()
    b.read(frontier=[cause])
    effect = b.issue()
    early = c.apply(effect)
    c.apply(cause)
    return s, [early]


@story("S4", "trips")
def read_by_name() -> Told:
    s = apart(update_kind="assign")
    a, b, c = s.ranks
    cause = a.issue()
    b.read(dot=cause)
    b.discard(b.issue("params/1"), "params/1")
    effect = b.issue("params/1")
    early = c.apply(effect, "params/1")
    c.apply(cause)
    return s, [early]


@story("S4", "almost")
def _() -> Told:
    s = apart()
    a, b, c = s.ranks
    cause = a.issue()
    first = b.issue()
    b.read(frontier=[cause, first])
    effect = b.issue()
    c.apply(first)  # issued before the read
    c.apply(cause)
    c.apply(effect)
    return s, []


@story("S4", "almost")
def it_follows_from_what_is_listed() -> Told:
    s = apart(4)
    a, b, c, d = s.ranks
    cause = a.issue()
    between = b.issue(deps=[cause])
    c.read(frontier=[cause, between])
    effect = c.issue(deps=[between])
    for dot in (cause, between, effect):
        d.apply(dot)
    return s, []


@story("S4", "unknown")
def _() -> Told:
    s = apart()
    a, b, c = s.ranks
    cause = a.issue()
    b.read(frontier=[cause])
    effect = b.issue()
    c.gap(*c.lose(), tables=["updates"])
    c.apply(effect)
    return s, []


@story("C2", "trips")
def _() -> Told:
    s = apart(2, "assign")
    a, b = s.ranks
    one = a.issue(version=1)
    a.issue(version=2)
    a.tell(b)
    return s, [b.read(version=1, dot=one)]


@story("C2", "trips")
def by_happens_before_alone() -> Told:
    s = apart(4, "assign")
    a, b, c, d = s.ranks
    one = a.issue()
    a.tell(b)
    b.issue()
    b.tell(c, d)
    return s, [c.read(dot=one), d.read()]


@story("C2", "trips")
def frontier_with_an_effect_and_without_its_cause() -> Told:
    s = apart()
    a, b, c = s.ranks
    cause = a.issue()
    other = a.issue("params/1")
    b.apply(cause)
    b.apply(other, "params/1")
    effect = b.issue(deps=[other])  # of another object, and cause goes before it
    a.tell(c)
    return s, [c.read(frontier=[effect])]


@story("C2", "almost")
def _() -> Told:
    # Concurrent, void, unknown to the reader, or arrived and not folded: nothing that it must show.
    s = apart(3, "assign")
    a, b, c = s.ranks
    a.declare("sums", update_kind="delta")
    one = a.issue(version=1)
    a.tell(b)
    b.read(version=1, dot=one)
    a.discard(a.issue(version=2))
    a.tell(b)
    b.read(version=1, dot=one)
    a.issue(version=3)
    b.read(version=1, dot=one)
    mine = a.issue("sums")
    a.tell(c)
    c.read("sums", frontier=[])
    c.read("sums", frontier=[mine])
    return s, []


@story("C2", "almost")
def eventual_promises_no_causal_read() -> Told:
    s = Story(ranks=2, regime="EVENTUAL")
    a, b = s.ranks
    one = a.issue(version=1)
    a.issue(version=2)
    a.tell(b)
    b.read(version=1, dot=one)
    return s, []


@story("C2", "almost")
def the_group_went_back() -> Told:
    s = apart(2, "assign")
    a, b = s.ranks
    one = a.issue(version=1)
    a.checkpoint("saved", "k", [one])
    a.issue(version=2)
    a.tell(b)
    for rank in s.ranks:
        rank.checkpoint("loaded", "k", [one])
    b.read(version=1, dot=one)
    return s, []


@story("C3", "trips")
def _() -> Told:
    s = apart(4, "assign")
    a, b, c, d = s.ranks
    one, two = a.issue(), b.issue()
    rows = []
    for reader, order in ((c, (one, two)), (d, (two, one))):
        rows += [reader.read(dot=dot) for dot in order]
    return s, [rows[1]]


@story("C3", "trips")
def one_that_goes_to_and_fro() -> Told:
    s = apart(3, "assign")
    a, b, c = s.ranks
    one, two = a.issue(), b.issue()
    rows = [c.read(dot=dot) for dot in (one, two, one)]
    return s, [rows[1]]


@story("C3", "almost")
def _() -> Told:
    # Both saw them in one order; a third saw only one.
    s = apart(5, "assign")
    a, b, c, d, e = s.ranks
    one, two = a.issue(), b.issue()
    for reader in (c, d):
        for dot in (one, two):
            reader.read(dot=dot)
    a.tell(e)
    e.read(dot=two)
    return s, []


@story("C3", "almost")
def eventual_promises_no_one_order() -> Told:
    s = Story(ranks=4, regime="EVENTUAL")
    a, b, c, d = s.ranks
    one, two = a.issue(), b.issue()
    for reader, order in ((c, (one, two)), (d, (two, one))):
        for dot in order:
            reader.read(dot=dot)
    return s, []
