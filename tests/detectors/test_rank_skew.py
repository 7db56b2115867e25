"""The same rank comes last, step after step, or a bucket is pending for one rank."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.detectors._steps import Place
from cascade_runtime.detectors.rank_skew import RankSkew
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.policy import RankSkewLimits
from tests.detectors.steps import PERIOD_S, RANKS, patient, steps_in, told, whole

LIMITS = RankSkewLimits()
DWELL = steps_in(LIMITS.dwell_s)
LIMIT_S = LIMITS.share_of_step * PERIOD_S
ON_TIME = whole([0, 0, 0, 0])


def late(rank, by_s, **more):
    return whole([by_s if r == rank else 0.0 for r in range(4)], **more)


def brute(steps):
    """(step, rank, begins) by the definition, looking back over everything every time."""
    hits = []
    for step in steps:
        waits = sorted((w, a) for a, w in step.waits_s.items())
        by_s = waits[1][0] - waits[0][0]
        limit_s = max(LIMITS.share_of_step * step.period_s, LIMITS.min_ms / 1000)
        hits.append(waits[0][1] if by_s > limit_s else None)
    found, since = [], dict.fromkeys(RANKS)

    def many(rank, first, i):
        window = hits[max(first, i + 1 - LIMITS.of_steps) : i + 1]
        return window.count(rank) >= LIMITS.fires_in

    for i in range(LIMITS.of_steps - 1, len(hits)):
        for rank in RANKS:
            begun = since[rank]
            if begun is None or not begun[0]:
                first = max(LIMITS.of_steps - 1, 0 if begun is None else begun[1])
                row = range(i - DWELL, i + 1)
                if hits[i] == rank and row[0] >= first and all(many(rank, first, j) for j in row):
                    since[rank] = (True, i)
                    found.append((i, rank, True))
            elif i - begun[1] >= LIMITS.clears_after and rank not in hits[i - 19 : i + 1]:
                since[rank] = (False, i + 1)
                found.append((i, rank, False))
    return found


@patient
@given(st.lists(st.lists(st.floats(0, 0.0312), min_size=4, max_size=4), max_size=300))
def test_silent_on_jitter_below_the_share(steps):
    assert told(RankSkew(LIMITS), [whole(a) for a in steps]) == []


@patient
@given(st.permutations(range(4)), st.floats(0.03, 5.0))
def test_silent_when_the_ranks_take_turns(order, by_s):
    """Being last by far is nobody's fault when it is another's turn each time."""
    assert told(RankSkew(LIMITS), [late(rank, by_s) for rank in order] * 25) == []


@patient
@given(st.integers(0, 3), st.floats(LIMIT_S + 1e-6, 60.0), st.integers(7, 100))
def test_fires_a_second_after_the_fifth_late_step_and_clears_after_twenty_good_ones(
    rank, by_s, healthy
):
    found = told(RankSkew(LIMITS), [ON_TIME] * healthy + [late(rank, by_s)] * 500 + [ON_TIME] * 30)
    (fired_at, fired), (cleared_at, cleared) = found
    assert fired_at == healthy + LIMITS.fires_in - 1 + DWELL
    assert (fired.fault, fired.subject) == (FaultEvent.RANK_SKEW_HIGH, RANKS[rank])
    assert fired.value == pytest.approx(by_s * 1000)
    assert fired.threshold == pytest.approx(LIMIT_S * 1000)
    assert cleared_at == healthy + 500 + LIMITS.clears_after - 1
    assert cleared.cleared and cleared.key == fired.key


@patient
@given(
    st.lists(
        st.tuples(st.sampled_from([0] * 9 + [1]), st.sampled_from([0.03, 0.032, 0.3, 0.3, 0.3])),
        max_size=300,
    )
)
def test_the_windowed_form_is_the_definition(hits):
    steps = [late(rank, by_s) for rank, by_s in hits]
    found = [(i, v.subject, not v.cleared) for i, v in told(RankSkew(LIMITS), steps)]
    assert found == brute(steps)


@patient
@given(st.lists(st.booleans(), max_size=400))
def test_no_flapping_at_the_threshold(bad):
    found = told(RankSkew(LIMITS), [late(2, LIMIT_S + (1e-4 if b else -1e-4)) for b in bad])
    assert [v.cleared for _, v in found] == [bool(i % 2) for i in range(len(found))]
    for (begun, _), (ended, _) in zip(found[::2], found[1::2], strict=False):
        assert ended - begun >= LIMITS.clears_after


def test_one_early_rank_makes_nobody_late():
    assert told(RankSkew(LIMITS), [whole([0, 0.09, 0.09, 0.09])] * 100) == []


def test_short_steps_are_not_skewed_by_what_nobody_would_notice():
    steps = [late(1, 0.019, period_s=0.02)] * 100
    assert told(RankSkew(LIMITS), steps) == []


# ---- a stall about to happen ---------------------------------------------------------------------


def places(*phases, decided=100, still_s=0.0):
    return [Place(a, decided, p, still_s) for a, p in zip(RANKS, phases, strict=True)]


def stall(detector, told_places):
    for place in told_places:
        detector.feed_place(place)
    return detector.decide(0.0)


def taught(period_s=0.3):
    detector = RankSkew(LIMITS)
    assert told(detector, [whole([0] * 4, period_s=period_s)] * 20) == []
    return detector


def test_at_once_when_a_bucket_is_pending_three_steps_long_for_one_rank():
    detector = taught()
    pending = ("waiting", "waiting", "backward", "waiting")
    assert stall(detector, places(*pending, still_s=0.89)) == []
    (verdict,) = stall(detector, places(*pending, still_s=0.91))
    assert (verdict.signal, verdict.subject) == ("stall", RANKS[2])
    assert verdict.fault is FaultEvent.RANK_SKEW_HIGH
    assert verdict.threshold == pytest.approx(900)
    assert stall(detector, places(*pending, still_s=5.0)) == []  # told once
    stall(detector, places(*["forward"] * 4))
    found = told(detector, [ON_TIME] * 40)
    assert [(i, v.cleared) for i, v in found] == [(LIMITS.clears_after - 1, True)]


@pytest.mark.parametrize(
    "phases",
    [
        ("waiting",) * 4,  # all are there: that is the transfer
        ("forward",) * 4,  # nobody waits: all evaluate, or write a checkpoint
        ("waiting", "halted", "backward", "waiting"),  # a walk
        ("waiting", "waiting", "leaving", "waiting"),
        ("waiting", "waiting", "starting", "waiting"),
        ("waiting", "forward", "backward", "waiting"),  # two are missing: nobody's own skew
    ],
)
def test_no_stall_where_no_single_rank_is_waited_for(phases):
    assert stall(taught(), places(*phases, still_s=60.0)) == []


def test_whoever_has_gone_on_already_is_not_waited_for():
    ahead = places("waiting", "waiting", "waiting", "waiting", still_s=9.0)
    ahead[3] = Place(RANKS[3], 101, "forward", 9.0)
    assert stall(taught(), ahead) == []


def test_short_steps_need_longer_than_a_busy_machine_takes_to_schedule():
    pending = ("waiting", "waiting", "backward", "waiting")
    assert stall(taught(0.01), places(*pending, still_s=0.45)) == []
    assert stall(taught(0.01), places(*pending, still_s=0.55))


def test_before_there_is_a_usual_step_nothing_is_a_stall():
    pending = places("waiting", "waiting", "backward", "waiting", still_s=60.0)
    assert stall(RankSkew(LIMITS), pending) == []


def test_forgotten_with_all_that_stood():
    detector = taught()
    stall(detector, places("waiting", "waiting", "backward", "waiting", still_s=9.0))
    told(detector, [late(2, 0.09)] * 20)
    assert {v.signal for v in detector.standing} == {"late", "stall"}
    detector.forget(RANKS[2])
    assert detector.standing == []
    assert detector.decide(0.0) == []
