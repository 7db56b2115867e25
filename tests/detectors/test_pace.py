"""A rank that was set apart keeps the others' pace again: named once, and not on and off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.detectors._steps import StepWait
from cascade_runtime.detectors.pace import PLUGIN, Pace
from cascade_runtime.vocabulary.policy import PaceLimits
from tests.detectors.steps import RANKS, patient

LIMITS = PaceLimits()
SLOW = RANKS[3]
APART = [RANKS[:3], [SLOW]]
OWN_S = 0.2  # the others' own time; a step of theirs takes longer, because they wait
LIMIT_S = 0.25


class Job:
    """Ranks that tell their steps; time goes by as the one in question steps."""

    def __init__(self, cohorts=APART, others_s=OWN_S, wait_s=0.05):
        self.detector, self.now, self.epoch, self.step = Pace(LIMITS), 0.0, 0, 0
        self.others_s, self.wait_s = others_s, wait_s
        self.install(cohorts)

    def install(self, cohorts, after_s=0.0):
        self.now += after_s
        self.epoch += 1
        self.cohorts = cohorts
        self.detector.feed_cohorts(self.epoch, cohorts, self.now)

    def tell(self, actor, own_s, wait_s=0.0):
        told = StepWait(actor, self.epoch, self.step, wait_s, own_s + wait_s)
        self.detector.feed_wait(told, self.now)

    def steps(self, *own, who=SLOW):
        """(index of the step, verdict) of everything that these own times give."""
        found = []
        for i, own_s in enumerate(own):
            self.step += 1
            self.now += own_s
            for actor in RANKS:
                if actor != who and any(actor in c for c in self.cohorts):
                    self.tell(actor, self.others_s, self.wait_s)
            self.tell(who, own_s)
            found += [(i, v) for v in self.detector.decide(self.now)]
        return found


def test_named_after_twenty_steps_in_a_row_and_told_once():
    found = Job().steps(*[1.2] * 50, *[0.24] * 60)
    ((at, verdict),) = found
    assert at == 50 + LIMITS.steps - 1
    assert (verdict.subject, verdict.fault, verdict.cleared) == (SLOW, None, False)
    assert verdict.value == pytest.approx(240) and verdict.threshold == pytest.approx(250)
    assert "20 steps" in verdict.why and PLUGIN.faults == frozenset()


@patient
@given(st.lists(st.floats(LIMIT_S + 1e-6, 60.0), max_size=100))
def test_silent_while_it_is_slow(own):
    assert Job().steps(*own) == []


@patient
@given(st.lists(st.integers(0, LIMITS.steps - 1), max_size=12))
def test_a_single_slow_step_breaks_the_row(rows):
    own = [s for good in rows for s in [0.2] * good + [0.3]]
    assert Job().steps(*own) == []


@patient
@given(st.lists(st.booleans(), max_size=300))
def test_the_streaming_form_is_the_definition(bad):
    found = Job().steps(*[0.26 if b else 0.24 for b in bad])
    expected, stands = [], False
    for i in range(len(bad)):
        if not stands and i >= LIMITS.steps - 1 and not any(bad[i - LIMITS.steps + 1 : i + 1]):
            stands = True
            expected.append((i, False))
        elif stands and sum(bad[max(0, i - LIMITS.of_steps + 1) : i + 1]) >= LIMITS.ends_in:
            stands = False
            expected.append((i, True))
    assert [(i, v.cleared) for i, v in found] == expected


def test_waits_of_the_others_are_none_of_their_own_time():
    """They wait at the staleness bound for it: that makes them no slower."""
    assert Job(wait_s=5.0).steps(*[1.2] * 100) == []


def test_short_steps_need_a_second_besides():
    job = Job(others_s=0.004, wait_s=0.0)
    ((at, _),) = job.steps(*[0.005] * 400)
    assert at == 200  # 1 s of steps of 5 ms
    assert Job(others_s=0.004).steps(*[0.025] * 400) == [], "20 ms that everybody notices"


def test_it_is_over_when_it_is_slow_again_but_not_for_a_step():
    job = Job()
    ((_, begun),) = job.steps(*[0.2] * 20)
    assert job.steps(0.5, 0.5, 0.5, 0.5, *[0.2] * 20) == []
    ((at, ended),) = job.steps(*[0.5] * 8)
    assert at == LIMITS.ends_in - 1
    assert ended.cleared and ended.key == begun.key and job.detector.standing == []


def test_whoever_is_set_apart_again_must_keep_the_pace_twice_as_long():
    job, took = Job(), []
    for _ in range(7):
        ((at, _),) = job.steps(*[0.2] * 1000)
        took.append(at + 1)
        job.install([RANKS])
        assert job.detector.standing == [] and job.detector.decide(job.now) == []
        assert job.steps(*[0.2] * 30) == []
        job.install(APART, after_s=10.0)
    assert took == [20, 40, 80, 160, 320, 320, 320]
    job.install([RANKS])
    job.install(APART, after_s=LIMITS.forgets_s + 1)
    assert job.steps(*[0.2] * 20)


def test_another_view_with_the_same_cohorts_counts_from_new_steps_and_not_as_set_apart_again():
    job = Job()
    assert job.steps(*[0.2] * 19) == []
    job.install(APART)
    ((at, _),) = job.steps(*[0.2] * 100)
    assert at == 19


def test_steps_of_another_epoch_say_nothing():
    job = Job()
    for _ in range(100):
        job.detector.feed_wait(StepWait(SLOW, 0, 1, 0.0, 0.2), 0.0)
        job.detector.feed_wait(StepWait(RANKS[0], 0, 1, 0.0, 0.2), 0.0)
    assert job.detector.decide(0.0) == []


def test_nobody_is_judged_by_the_words_of_few():
    job = Job()
    for _ in range(100):
        job.now += 0.2
        job.tell(RANKS[0], 0.2)
        job.tell(SLOW, 0.2)
    assert job.detector.decide(job.now) == []


def test_of_two_ranks_that_step_alone_neither_is_the_measure():
    """The fast one is no slower than the slow one: that alone would join them at once."""
    job = Job([[RANKS[0]], [RANKS[1]]], others_s=1.2)
    assert job.steps(*[0.2] * 100, who=RANKS[0]) == []
    job.others_s = 0.22
    found = job.steps(*[0.2] * 40, who=RANKS[0])
    assert {v.subject for _, v in found} == set(RANKS[:2])


def test_two_stragglers_are_judged_each_by_itself():
    job = Job([RANKS[:2], [RANKS[2]], [SLOW]])
    assert {v.subject for _, v in job.steps(*[1.2] * 40)} == {RANKS[2]}
    assert {v.subject for _, v in job.steps(*[0.2] * 20)} == {SLOW}
    assert len(job.detector.standing) == 2


def test_a_rank_that_became_faster_than_the_others_keeps_their_pace():
    assert Job().steps(*[0.1] * 20)


def test_forgotten_with_all_that_stood():
    job = Job()
    job.steps(*[0.2] * 20)
    assert len(job.detector.standing) == len(job.detector.readings) == 1
    job.detector.forget(SLOW)
    assert job.detector.standing == job.detector.readings == job.detector.decide(job.now) == []
