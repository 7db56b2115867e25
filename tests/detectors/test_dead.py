"""An actor that is gone, by the kernel's word or by its silence."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.detectors.dead import Dead
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import DeadLimits
from tests.detectors.steps import patient

LIMITS = DeadLimits()
A = Actor(4)


def test_a_death_is_told_once_an_actor():
    detector = Dead(LIMITS)
    detector.feed_exit(A, -9, "SIGKILL")
    detector.feed_exit(A, -9, "SIGKILL")
    (verdict,) = detector.decide(0.0)
    assert (verdict.signal, verdict.fault) == ("dead", FaultEvent.GPU_FAIL_STOP)
    assert (verdict.value, verdict.why) == (-9.0, "rank 4 died (SIGKILL)")
    detector.feed_beat(A, 1.0)  # it was on its way already
    detector.forget(A)
    detector.feed_exit(A, -9, "SIGKILL")
    assert detector.decide(1e6) == [] and detector.standing == []


def test_nobody_knows_how_it_ended():
    detector = Dead(LIMITS)
    detector.feed_exit(A, None, "nobody knows how")
    assert math.isnan(detector.decide(0.0)[0].value)


@patient
@given(st.lists(st.floats(0.001, 10.0), max_size=200))
def test_silent_while_it_beats(gaps):
    detector, now = Dead(LIMITS), 0.0
    for gap in gaps:
        detector.feed_beat(A, now)
        now += gap
        assert detector.decide(now) == []


@patient
@given(st.lists(st.floats(0.001, 9.0), max_size=80))
def test_the_deadline_is_learnt_from_its_longest_gap(gaps):
    detector, now = Dead(LIMITS), 0.0
    detector.feed_beat(A, now)
    for gap in gaps:
        now += gap
        detector.feed_beat(A, now)
    longest = max(gaps[-64:], default=0.0)
    assert detector.deadline_s(A) == pytest.approx(max(10.0, 4 * longest), abs=1e-6)
    assert detector.decide(now + detector.deadline_s(A) - 0.01) == []
    (verdict,) = detector.decide(now + detector.deadline_s(A) + 0.01)
    assert (verdict.signal, verdict.subject) == ("silent", A)
    assert detector.decide(now + 1e4) == []


def test_a_suspicion_ends_with_a_beat_and_becomes_certain_by_a_death():
    detector = Dead(LIMITS)
    detector.feed_beat(A, 0.0)
    assert len(detector.decide(11.0)) == 1
    detector.feed_beat(A, 12.0)
    assert [v.cleared for v in detector.decide(12.0)] == [True]
    assert detector.deadline_s(A) == LIMITS.silent_s  # the silence taught it nothing
    detector.decide(30.0)
    detector.feed_exit(A, 1, "exit code 1")
    assert [(v.signal, v.cleared) for v in detector.decide(30.0)] == [("dead", False)]
