"""How far behind one may be; plans that were replaced, leases that were taken back."""

from __future__ import annotations

from tests.analyzer.stories.causes import apart
from tests.analyzer.stories.kit import Told, story
from tests.story import Dot, Story, Teller


def _written(bound: int, versions: int) -> tuple[Story, list[Dot]]:
    s = Story(ranks=2, regime="EVENTUAL")
    s.ranks[0].declare(staleness_bound=bound)
    return s, [s.ranks[0].issue(version=v) for v in range(1, versions + 1)]


@story("B1", "trips")
def _() -> Told:
    s, dots = _written(4, 10)
    s.all_reduce()
    return s, [s.ranks[1].read(version=5, dot=dots[4]), s.ranks[1].read()]


@story("B1", "almost")
def _() -> Told:
    s, dots = _written(4, 10)
    s.ranks[1].read(version=1, dot=dots[0])  # nothing newer is known to it
    s.all_reduce()
    s.ranks[1].read(version=6, dot=dots[5])
    return s, []


def _ahead(author: Teller, other: Teller, steps: int, folded: int) -> list[dict]:
    """The author's updates; the other one folds the first few, and says so; the last issued row."""
    for step in range(steps):
        dot = author.issue()
        last = author.story.rows[-1][1]
        author.apply(dot)
        if step < folded:
            other.apply(dot)
            other.tell(author)
    return [last]


@story("B1", "trips")
def an_author_too_far_ahead() -> Told:
    s = apart(2, staleness_bound=2)
    return s, _ahead(*s.ranks, steps=4, folded=1)


@story("B1", "trips")
def folds_that_were_not_told() -> Told:
    s = apart(2, staleness_bound=2)
    a, b = s.ranks
    dots = [a.issue(), a.issue()]
    for dot in dots:
        b.apply(dot)
    a.issue()
    return s, [s.rows[-1][1]]


@story("B1", "almost")
def as_far_as_it_may() -> Told:
    s = apart(2, staleness_bound=2)
    _ahead(*s.ranks, steps=4, folded=2)
    return s, []


@story("B1", "almost")
def folded_by_a_load_or_void() -> Told:
    s = apart(2, staleness_bound=2)
    a, b = s.ranks
    one, two, three = a.issue(), a.issue(), (0, 0, 3)
    a.checkpoint("saved", "k", [one], durable=False)
    b.checkpoint("received", "k", [one])
    a.discard(two)
    b.tell(a)
    a.issue(dot=three)
    a.issue(dot=(0, 0, 4))
    return s, []


@story("B1", "unknown")
def _() -> Told:
    s = apart(2, staleness_bound=2)
    a, b = s.ranks
    b.gap(*b.lose(), tables=["updates"])
    for _ in range(3):
        a.issue()
    return s, []


def _planned() -> tuple[Story, list[Dot]]:
    s = Story(ranks=3, regime="CAUSAL")
    s.ranks[0].declare("plan", kind="plan")
    return s, [s.ranks[0].issue("plan", version=v) for v in (1, 2)]


@story("T1", "trips")
def _() -> Told:
    s, (one, _) = _planned()
    s.ranks[0].tell(s.ranks[1])
    return s, [s.ranks[1].read("plan", version=1, dot=one, use="act")]


@story("T1", "almost")
def _() -> Told:
    # One acts on the newest plan, another has not heard of it.
    s, (one, two) = _planned()
    s.ranks[0].tell(s.ranks[1])
    s.ranks[1].read("plan", version=2, dot=two, use="act")
    s.ranks[2].read("plan", version=1, dot=one, use="act")
    return s, []


@story("T2", "trips")
def _() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    lease(b, "granted")
    lease(b, "used")
    lease(a, "revoked")
    a.tell(b)
    return s, [lease(b, "used"), lease(b, "used")]


@story("T2", "trips")
def granted_anew_and_revoked_again() -> Told:
    s = Story(ranks=3)
    a, b, c = s.ranks
    lease(a, "revoked")
    a.tell(c)
    lease(c, "granted")
    lease(b, "revoked")
    c.tell(b)
    b.tell(a)
    return s, [lease(a, "used")]


@story("T2", "almost")
def _() -> Told:
    # Not heard of, another lease, or granted anew.
    s = Story(ranks=2)
    a, b = s.ranks
    lease(a, "revoked")
    lease(b, "used")
    a.tell(b)
    lease(b, "used", "kv/1")
    lease(b, "granted")
    lease(b, "used")
    return s, []


@story("T2", "unknown")
def _() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    lease(a, "revoked")
    a.gap(*a.lose(), tables=["leases"])
    a.tell(b)
    lease(b, "used")
    return s, []


def lease(one: Teller, action: str, lease_id: str = "L") -> dict:
    return one.row("leases", action=action, lease_id=lease_id, object="kv/0", holder=one.me)
