"""Putting the members' accounts of a step together, in any order and with holes."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.detectors._steps import StepBook, StepWait
from cascade_runtime.vocabulary.identity import Actor
from tests.detectors.steps import RANKS, patient


def account(rank, step, epoch=1, wait_s=0.1, period_s=0.2):
    return StepWait(Actor(rank), epoch, step, wait_s + rank, period_s)


def book():
    made = StepBook()
    made.install(1, RANKS)
    return made


@patient
@given(st.integers(1, 60), st.integers(0, 2**32))
def test_whole_once_however_the_hosts_batches_mix(num_steps, seed):
    """Of each host in order; between hosts in any order."""
    queues = {r: [account(r, s) for s in range(1, num_steps + 1)] for r in range(4)}
    order, steps, chance = book(), [], random.Random(seed)
    while any(queues.values()):
        order.feed(queues[chance.choice([r for r in queues if queues[r]])].pop(0))
        steps += [whole.step for whole in order.take()]
    assert steps == list(range(1, num_steps + 1))


def test_a_step_that_somebody_never_tells_is_given_up():
    told = book()
    for step in range(1, 1000):
        for rank in range(4):
            if not (rank == 2 and step % 3 == 0):
                told.feed(account(rank, step))
    assert [w.step for w in told.take()] == [s for s in range(1, 1000) if s % 3][-256:]
    assert len(told._open) == 1  # the last one may still become whole


def test_memory_is_bounded_when_one_never_tells():
    told = book()
    for step in range(10_000):
        for rank in range(3):
            told.feed(account(rank, step))
    assert told.take() == [] and len(told._open) <= 257


def test_accounts_of_another_epoch_or_of_strangers_say_nothing():
    told = book()
    for rank in range(3):
        told.feed(account(rank, 5))
    told.feed(account(3, 5, epoch=0))
    told.feed(account(9, 5))
    assert told.take() == []
    told.install(2, RANKS[:3])
    told.feed(account(2, 5, epoch=1))
    assert told.take() == []


def test_who_came_last_and_by_how_much():
    told = book()
    for rank, wait_s in enumerate((0.05, 0.002, 0.04, 0.06)):
        told.feed(StepWait(Actor(rank), 1, 3, wait_s, 0.1 + rank))
    (whole,) = told.take()
    assert whole.last() == (Actor(1), 0.04 - 0.002)
    assert whole.transfer_s == 0.002
    assert whole.period_s == 1.6
