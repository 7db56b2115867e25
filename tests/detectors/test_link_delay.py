"""A transfer that takes many times what it did, and lateness that is no transfer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.detectors.link_delay import LinkDelay
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import LinkDelayLimits
from tests.detectors.steps import patient, steps_in, told, whole

LIMITS = LinkDelayLimits()
arrivals = st.lists(st.floats(0, 2.0), min_size=4, max_size=4)
healthy_s = st.floats(0.006, 0.0239)  # below four times their own least: no median calls them bad
DWELL = steps_in(LIMITS.dwell_s)
WARM = [whole([0, 0, 0, 0], 0.01)] * 40


@patient
@given(st.lists(st.tuples(arrivals, healthy_s), max_size=300))
def test_silent_on_jitter_and_on_late_ranks_however_late(steps):
    """Two seconds late is the rank's doing: the last one waits for the transfer alone."""
    assert told(LinkDelay(LIMITS), [whole(*step) for step in steps]) == []


@patient
@given(st.lists(st.floats(0.0, 0.0199), max_size=300))
def test_silent_below_the_least_that_counts(transfers):
    assert told(LinkDelay(LIMITS), [whole([0, 0], t) for t in transfers]) == []


@patient
@given(st.floats(0.05, 5.0), arrivals)
def test_fires_a_second_after_the_third_bad_step_and_clears_after_twenty_good_ones(slow_s, late):
    good, bad = whole(late, 0.01), whole(late, slow_s)
    found = told(LinkDelay(LIMITS), [*WARM, *[bad] * 1000, *[good] * 30])
    (fired_at, fired), (cleared_at, cleared) = found
    assert fired_at == len(WARM) + LIMITS.fires_in - 1 + DWELL
    assert fired.fault is FaultEvent.LINK_DELAY_HIGH and fired.subject is None
    assert fired.value > fired.threshold > 0 and fired.unit == "ms"
    assert cleared_at == len(WARM) + 1000 + LIMITS.clears_after - 1
    assert cleared.cleared and cleared.key == fired.key


@patient
@given(st.lists(st.booleans(), max_size=400))
def test_no_flapping_at_the_threshold(bad):
    steps = [*WARM, *(whole([0, 0], 0.041 if b else 0.039) for b in bad)]
    found = told(LinkDelay(LIMITS), steps)
    assert [v.cleared for _, v in found] == [bool(i % 2) for i in range(len(found))]
    for (begun, _), (ended, _) in zip(found[::2], found[1::2], strict=False):
        assert ended - begun >= LIMITS.clears_after


def test_a_machine_that_is_busy_for_less_than_a_second_is_no_slow_link():
    bad, good = whole([0, 0], 0.5), whole([0, 0], 0.01)
    burst = [bad] * (LIMITS.fires_in + DWELL - 1)
    assert told(LinkDelay(LIMITS), [*WARM, *[*burst, *[good] * 5] * 20]) == []


def test_two_of_five_are_not_enough():
    bad, good = whole([0, 0], 0.5), whole([0, 0], 0.01)
    assert told(LinkDelay(LIMITS), [*WARM, *[bad, good, good, bad, good] * 50]) == []


@patient
@given(st.integers(-(2**20), 2**20), st.lists(st.floats(0, 0.1), max_size=100))
def test_only_differences_of_the_clock_matter(offset, transfers):
    steps = [*WARM, *(whole([0, 0], t) for t in transfers)]

    def run(start_s):
        found = told(LinkDelay(LIMITS), steps, period_s=1 / 16, start_s=start_s)
        return [(i, v.cleared) for i, v in found]

    assert run(0.0) == run(float(offset))


def test_the_way_to_each_agent_by_itself():
    detector, near, far = LinkDelay(LIMITS), Actor(8), Actor(9)
    for i in range(100):
        detector.feed_round_trip(near, 0.001, i * 0.1)
        detector.feed_round_trip(far, 0.001 if i < 50 else 0.2, i * 0.1)
    assert [(v.subject, v.signal) for v in detector.decide(10.0)] == [(far, "round_trip")]
    detector.forget(far)
    assert detector.standing == []


def test_a_member_that_steps_alone_has_no_transfer():
    assert told(LinkDelay(LIMITS), [whole([0], t) for t in [0.001] * 40 + [9.0] * 40]) == []
