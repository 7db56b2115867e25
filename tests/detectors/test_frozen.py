"""A process that the kernel keeps stopped."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.detectors.frozen import Frozen
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import FrozenLimits

LIMITS = FrozenLimits(dwell_s=0.2, samples=3)
LOOK_S = 1 / 16  # exact in binary
A, B = Actor(0), Actor(1)


def told(states, look_s=LOOK_S, limits=LIMITS, actor=A):
    """(time, verdict) of everything that these looks at one process give."""
    detector, found = Frozen(limits), []
    for i, state in enumerate(states):
        now = i * look_s
        detector.feed(actor, state, now)
        found += [(now, v) for v in detector.decide(now)]
    return found


@given(st.lists(st.sampled_from("RSDI"), max_size=400))
def test_silent_while_it_runs(states):
    assert told(states) == []


@given(st.lists(st.sampled_from("RSDI"), max_size=20), st.sampled_from("TtZX"))
def test_fires_once_within_the_dwell_time_and_clears_after_as_long(before, state):
    looks = math.ceil(LIMITS.dwell_s / LOOK_S) + 1
    found = told([*before, *state * 50, *"S" * 50])
    (fired_s, fired), (cleared_s, cleared) = found
    assert fired.fault is FaultEvent.GPU_FAIL_STOP and fired.subject == A
    assert fired_s == pytest.approx((len(before) + looks - 1) * LOOK_S)
    assert f"state {state}" in fired.why
    assert cleared.cleared and cleared.key == fired.key
    assert cleared_s == pytest.approx((len(before) + 50 + looks - 1) * LOOK_S)


@given(st.integers(1, 3), st.integers(1, 3))
def test_a_limiter_that_stops_and_goes_on_again_and_again_is_no_freeze(stopped, running):
    """Tools that limit a process's CPU do this, a tenth of a second at a time."""
    assert told((["T"] * stopped + ["S"] * running) * 40) == []


def test_no_flapping_once_it_stands():
    found = told(["T"] * 10 + ["S", "T"] * 50 + ["S"] * 10)
    assert [v.cleared for _, v in found] == [False, True]


def test_one_late_look_is_not_enough():
    """The agent itself was asleep: the first look after it says nothing about the time between."""
    detector = Frozen(LIMITS)
    detector.feed(A, "T", 0.0)
    detector.feed(A, "T", 60.0)
    assert detector.decide(60.0) == []
    detector.feed(A, "T", 60.05)
    assert [v.subject for v in detector.decide(60.05)] == [A]


def test_each_process_by_itself():
    detector = Frozen(LIMITS)
    for i in range(10):
        detector.feed(A, "T", i * LOOK_S)
        detector.feed(B, "S", i * LOOK_S)
    assert [v.subject for v in detector.decide(1.0)] == [A]
    assert [v.subject for v in detector.standing] == [A]
    detector.forget(A)
    assert detector.standing == []


@given(st.text("RSTtZD", max_size=80), st.floats(0, 1e6))
def test_only_differences_of_the_clock_matter(states, start):
    start = float(int(start))

    def run(offset):
        detector, found = Frozen(LIMITS), []
        for i, state in enumerate(states):
            now = offset + i / 16  # exact in binary
            detector.feed(A, state, now)
            found += [(i, v.cleared, v.value) for v in detector.decide(now)]
        return found

    assert run(0.0) == run(start)
