"""A rank that others wait for is named, and nothing else follows from it."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.detectors._steps import Place
from cascade_runtime.detectors.slow import PLUGIN, Slow
from cascade_runtime.vocabulary.policy import SlowLimits
from tests.detectors.steps import RANKS

LIMITS = SlowLimits()


def look(detector, phases, stills, decided=7):
    for actor, phase, still in zip(RANKS, phases, stills, strict=True):
        detector.feed_place(Place(actor, decided, phase, still))
    return detector.decide(0.0)


WAITED_FOR = ("waiting", "backward", "waiting", "waiting")


def test_an_interpreter_lock_held_for_a_second_is_named_and_never_a_fail_stop():
    detector, found = Slow(LIMITS), []
    for i in range(30):
        held_s = min(i * 0.05, 1.0)
        found += look(detector, WAITED_FOR, [held_s, held_s, held_s, held_s])
    found += look(detector, ["forward"] * 4, [0.01] * 4, decided=8)
    assert [(v.subject, v.fault, v.cleared) for v in found] == [
        (RANKS[1], None, False),
        (RANKS[1], None, True),
    ]
    assert "backward of step 8" in found[0].why
    assert PLUGIN.faults == frozenset()


@given(st.lists(st.sampled_from(["forward", "backward"]), min_size=4, max_size=4))
def test_silent_while_nobody_waits_however_long_it_takes(phases):
    """All of them evaluate, or write a checkpoint."""
    assert look(Slow(LIMITS), phases, [3600.0] * 4) == []


@given(st.lists(st.floats(0, LIMITS.min_s), min_size=4, max_size=4))
def test_silent_below_the_least_time(stills):
    assert look(Slow(LIMITS), WAITED_FOR, stills) == []


def test_a_word_that_usually_takes_long_may_take_long():
    detector, now = Slow(LIMITS), 0
    for now in range(1, 20):  # a phase takes 2 s
        for phase, still in product(("forward", "backward"), (0.5, 2.0)):
            assert look(detector, [phase] * 4, [still] * 4, now) == []
    assert look(detector, WAITED_FOR, [9.9] * 4, now) == []
    assert look(detector, WAITED_FOR, [10.1] * 4, now) != []


def test_all_that_are_missing_are_named():
    found = look(Slow(LIMITS), ("waiting", "forward", "backward", "waiting"), [2.0] * 4)
    assert [v.subject for v in found] == RANKS[1:3]


def test_forgotten_with_its_name():
    detector = Slow(LIMITS)
    look(detector, WAITED_FOR, [2.0] * 4)
    detector.forget(RANKS[1])
    assert detector.standing == [] and detector.decide(0.0) == []


def look_apart(detector, phases, stills, alone):
    for actor, phase, still in zip(RANKS[:3], phases, stills, strict=True):
        detector.feed_place(Place(actor, 9, phase, still))
    detector.feed_alone(Place(RANKS[3], 4, *alone))
    return detector.decide(0.0)


def test_a_straggler_that_hangs_by_itself_is_named_once_the_others_are_at_the_bound():
    detector = Slow(LIMITS)
    assert look_apart(detector, ["forward"] * 3, [0.1] * 3, ("backward", 30.0)) == []
    assert (
        look_apart(detector, ["waiting"] * 2 + ["forward"], [9.0] * 3, ("backward", 40.0))[
            0
        ].subject
        == RANKS[2]
    ), "they wait for one of their own"
    detector.forget(RANKS[2])
    (found,) = look_apart(detector, ["waiting"] * 3, [9.0] * 3, ("backward", 50.0))
    assert (found.subject, found.fault) == (RANKS[3], None)
    assert "backward of step 5 for 50.0 s, and others wait for it to fold" in found.why
    assert [
        v.cleared for v in look_apart(detector, ["waiting"] * 3, [9.1] * 3, ("forward", 0.1))
    ] == [True]


def test_two_that_step_by_themselves_wait_for_each_other():
    detector = Slow(LIMITS)
    detector.feed_alone(Place(RANKS[0], 20, "waiting", 2.0))
    detector.feed_alone(Place(RANKS[1], 4, "between steps", 3.0))
    assert [v.subject for v in detector.decide(0.0)] == [RANKS[1]]


def test_who_steps_with_the_others_again_is_not_looked_at_as_by_itself():
    detector = Slow(LIMITS)
    detector.feed_alone(Place(RANKS[3], 4, "forward", 9.0))
    assert look(detector, ["waiting"] * 3 + ["halted"], [9.0] * 4) == []
