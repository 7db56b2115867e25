"""Digests of a decided version that differ."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.detectors.checksum import Checksum
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from tests.detectors.steps import RANKS, told, whole


def step(*digests, number=1):
    given = {Actor(r): d for r, d in enumerate(digests) if d}
    return whole([0.0] * len(digests), step=number, digests=given)


@given(st.lists(st.integers(1, 2**63 - 1), max_size=100), st.integers(1, 8))
def test_silent_while_all_agree_whatever_it_is(digests, ranks):
    assert told(Checksum(), [step(*[d] * ranks) for d in digests]) == []


@given(st.integers(0, 3), st.integers(1, 9), st.integers(10, 19))
def test_fires_at_once_on_the_one_that_differs(rank, right, wrong):
    digests = [wrong if r == rank else right for r in range(4)]
    steps = [step(*[right] * 4), step(*digests, number=2)] + [step(*digests)] * 50
    ((at, verdict),) = told(Checksum(), steps)
    assert (at, verdict.subject) == (1, RANKS[rank])
    assert verdict.fault is FaultEvent.STATE_CORRUPTION
    assert verdict.why == f"after step 2 rank {rank} holds other bytes than 3 others"


@given(st.lists(st.integers(1, 3), min_size=1, max_size=9))
def test_accused_are_those_outside_a_majority_and_nobody_without_one(digests):
    subjects = {v.subject for _, v in told(Checksum(), [step(*digests)])}
    counts = {d: digests.count(d) for d in digests}
    majority = [d for d, n in counts.items() if 2 * n > len(digests)]
    if len(counts) == 1:
        assert subjects == set()
    elif majority:
        assert subjects == {Actor(r) for r, d in enumerate(digests) if d != majority[0]}
    else:
        assert subjects == {None}


def test_members_that_told_no_digest_accuse_nobody():
    assert told(Checksum(), [step(5, 0, 5, 0)]) == []


def test_it_stands_until_it_was_resynchronised():
    detector = Checksum()
    told(detector, [step(5, 5, 6, 5), step(5, 5, 5, 5)])
    assert [v.subject for v in detector.standing] == [RANKS[2]]
    detector.feed_resynchronised(RANKS[2])
    (over,) = detector.decide(0.0)
    assert over.cleared and detector.standing == []
    assert [v.subject for _, v in told(detector, [step(5, 5, 6, 5)])] == [RANKS[2]]


def test_not_a_number_is_corrupt_even_where_all_agree():
    detector = Checksum()
    detector.feed_nan(RANKS[1], 12)
    (verdict,) = detector.decide(0.0)
    assert verdict.why == "after step 12 rank 1 has NaN in its parameters"
    detector.forget(RANKS[1])
    assert detector.standing == []
