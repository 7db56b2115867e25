"""Members that come and go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.detectors.churn import Churn
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import NodeChurnLimits
from tests.detectors.steps import patient

LIMITS = NodeChurnLimits()
A, B = Actor(1), Actor(1, 1)


def told(changes, until_s, tick_s=1.0):
    """(s, begins) with changes at these times."""
    detector, found, now = Churn(LIMITS), [], 0.0
    left = sorted(changes)
    while now <= until_s:
        while left and left[0] <= now:
            detector.feed_lost(Actor(int(left[0])), left.pop(0))
        found += [(now, not v.cleared) for v in detector.decide(now)]
        now += tick_s
    return found


def brute(changes, until_s):
    """Looking back over everything at every second."""
    found, stands, answered = [], False, -1
    for now in range(until_s + 1):
        seen = [c for c in changes if answered < c <= now and c >= now - LIMITS.window_s]
        if not stands and len(seen) >= LIMITS.changes:
            stands = True
            found.append((now, True))
        if stands and now - max(c for c in changes if c <= now) >= LIMITS.quiet_s:
            stands, answered = False, now
            found.append((now, False))
    return found


@patient
@given(st.lists(st.integers(0, 400), max_size=12, unique=True))
def test_the_windowed_form_is_the_definition(changes):
    assert told(changes, 500) == brute(changes, 500)


@patient
@given(st.lists(st.integers(61, 200), max_size=10))
def test_silent_when_changes_are_far_apart(gaps):
    at, changes = 0, []
    for gap in gaps:
        at += gap
        changes.append(at)
    assert told(changes, at + 100) == []


def test_a_loss_and_its_successor_within_a_minute():
    detector = Churn(LIMITS)
    detector.feed_lost(A, 100.0)
    assert detector.decide(100.0) == []
    detector.feed_joined(B, 150.0)
    (verdict,) = detector.decide(150.0)
    assert verdict.fault is FaultEvent.NODE_CHURN_HIGH and verdict.value == 2
    assert verdict.why == "within 60 s: rank 1 was lost, rank 1.1 joined"
    assert detector.decide(179.9) == []
    (over,) = detector.decide(180.0)
    assert over.cleared and detector.standing == []
    assert detector.decide(181.0) == []  # answered: the same changes do not fire again


def test_the_ranks_of_a_host_that_is_lost_are_one_change():
    detector = Churn(LIMITS)
    for rank in range(8):
        detector.feed_lost(Actor(rank), 10.0)
    assert detector.decide(10.0) == []
    detector.feed_lost(Actor(8), 11.0)
    assert "rank 0 was lost, rank 1 was lost" in detector.decide(11.0)[0].why


def test_as_long_as_a_newcomer_is_not_level():
    detector = Churn(LIMITS)
    detector.feed_level(B, False, 10.0)
    (verdict,) = detector.decide(10.0)
    assert verdict.why.endswith("rank 1.1 is not level yet")
    assert verdict.value > verdict.threshold
    assert detector.decide(1000.0) == []
    detector.feed_level(B, True, 1000.0)
    assert detector.decide(1029.0) == []
    assert [v.cleared for v in detector.decide(1030.0)] == [True]


def test_a_newcomer_that_went_holds_nobody_up():
    detector = Churn(LIMITS)
    detector.feed_level(B, False, 0.0)
    detector.decide(0.0)
    detector.forget(B)
    assert [v.cleared for v in detector.decide(30.0)] == [True]
    detector.feed_level(B, True, 31.0)  # of whom nothing was known: no change
    assert detector.decide(31.0) == []
