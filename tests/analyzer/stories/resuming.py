"""Loads: what they take back, and whether they go back further than they need."""

from __future__ import annotations

from tests.analyzer.stories.kit import Told, story
from tests.story import Dot, Story, Teller


def _restarted(scope: str = "group") -> tuple[Story, Teller, list[Dot]]:
    """Rank 0 saves its first update, issues another, and comes back from the save."""
    s = Story(ranks=3, agents=1)
    a, b, _ = s.ranks
    one = a.issue()
    a.checkpoint("saved", "k", [one], scope)
    b.apply(one)
    two = a.issue()
    again = Teller(s, 0, incarnation=1)
    again.start(started_from="k")
    again.checkpoint("loaded", "k", [one], scope)
    return s, again, [one, two]


@story("A2", "trips")
def _() -> Told:
    s, again, (_, two) = _restarted()
    b = s.ranks[1]
    again.tell(b)
    return s, [b.read(dot=two), b.apply(two)]


@story("A2", "trips")
def folded_and_of_its_own_state() -> Told:
    s, again, (_, two) = _restarted("self")
    b = s.ranks[1]
    b.declare(update_kind="delta")
    again.tell(b)
    return s, [b.apply(two), b.read(frontier=[two])]


@story("A2", "trips")
def what_the_loader_itself_had_issued() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    a.checkpoint("saved", "k", [])
    dot = a.issue()
    for rank in s.ranks:
        rank.checkpoint("loaded", "k", [])
    return s, [b.read(dot=dot)]


@story("A2", "almost")
def _() -> Told:
    # Before the load, or ordered neither way; and what the checkpoint holds.
    s, again, (one, two) = _restarted()
    s.ranks[1].apply(two)
    again.tell(s.ranks[1])
    s.ranks[1].read(dot=one)
    return s, []


@story("A2", "almost")
def of_its_own_state_others_had_it() -> Told:
    s, again, (_, two) = _restarted("self")
    _, b, c = s.ranks
    b.apply(two)
    again.tell(c)
    c.apply((0, 0, 1))
    c.apply(two)
    return s, []


@story("A2", "unknown")
def _() -> Told:
    s, again, (_, two) = _restarted("self")
    _, b, c = s.ranks
    c.gap(*c.lose(), tables=["updates"])
    again.tell(b)
    b.apply(two)
    return s, []


def _saved(s: Story, name: str, dots: list[Dot], scope: str = "group", **columns: bool) -> None:
    a = s.ranks[0]
    a.checkpoint("saved", name, dots, scope, **columns)
    a.tell(s.ranks[1])


def _comes_back(s: Story, **columns: object) -> Teller:
    """Rank 2 is lost; rank 1 says that its successor is admitted."""
    again = Teller(s, 2, incarnation=1)
    again.start()
    s.ranks[1].view([*s.ranks[:2], again], joined=[again], reason="joined")
    return again


@story("M1", "trips")
def _() -> Told:
    s = Story(ranks=3)
    one, two = s.ranks[0].issue(), s.ranks[0].issue()
    _saved(s, "step-80", [one])
    _saved(s, "step-100", [two])
    return s, [_comes_back(s).checkpoint("loaded", "step-80", [one])]


@story("M1", "trips")
def nobody_admitted_the_loader() -> Told:
    s = Story(ranks=2, start=False)
    a, b = s.ranks
    one, two = b.issue(), b.issue()
    b.checkpoint("saved", "old", [one], "self")
    b.checkpoint("saved", "new", [two], "self")
    a.row("steps", phase="end")
    return s, [b.checkpoint("loaded", "old", [one], "self")]


@story("M1", "almost")
def _() -> Told:
    # The newer ones are not durable, another rank's own, not older but other, or saved too late.
    s = Story(ranks=3)
    a = s.ranks[0]
    one, two = a.issue(), a.issue()
    other = s.ranks[1].issue()
    _saved(s, "old", [one, other])
    _saved(s, "snapshot", [two, other], durable=False)
    _saved(s, "own", [two, other], "self")
    _saved(s, "branch", [two])
    again = _comes_back(s)
    _saved(s, "late", [two, other])
    again.checkpoint("loaded", "old", [one, other])
    return s, []


@story("M1", "almost")
def it_received_a_snapshot_before_it_acted() -> Told:
    s = Story(ranks=3)
    a = s.ranks[0]
    one, two = a.issue(), a.issue()
    _saved(s, "old", [one])
    _saved(s, "new", [two])
    a.checkpoint("saved", "live", [two], durable=False)
    again = _comes_back(s)
    again.checkpoint("loaded", "old", [one])
    again.checkpoint("received", "live", [two])
    again.read(dot=two)
    return s, []


@story("M1", "unknown")
def _() -> Told:
    s = Story(ranks=3)
    again = _comes_back(s)
    again.gap(*again.lose(), tables=["checkpoints"])
    return s, []
