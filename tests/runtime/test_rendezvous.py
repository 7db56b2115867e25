"""Keys of one epoch: given when they come, given up when the epoch is over."""

from __future__ import annotations

import pytest

from cascade_runtime.agent.protocol import Value
from cascade_runtime.agent.rendezvous import Rendezvous
from cascade_runtime.vocabulary.identity import Actor

A, B = Actor(0), Actor(1)


class Told(list[tuple[Actor, str, bytes | None]]):
    def __call__(self, actor: Actor, value: Value) -> None:
        self.append((actor, value.key, value.value))

    def take(self) -> list[tuple[Actor, str, bytes | None]]:
        found = list(self)
        self.clear()
        return found


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def keys(told: Told) -> Rendezvous:
    return Rendezvous(told)


def test_a_key_that_is_there_is_given_at_once(keys: Rendezvous, told: Told) -> None:
    keys.put(3, "k", b"v")
    assert told.take() == []
    keys.get(A, 3, "k", current=True)
    keys.get(B, 3, "k", current=True)
    assert told.take() == [(A, "k", b"v"), (B, "k", b"v")]


def test_whoever_asks_first_is_told_when_it_comes_and_once(keys: Rendezvous, told: Told) -> None:
    keys.get(A, 3, "k", current=True)
    keys.get(B, 3, "k", current=True)
    keys.get(A, 3, "other", current=True)
    assert told.take() == []
    keys.put(3, "k", b"v")
    assert told.take() == [(A, "k", b"v"), (B, "k", b"v")]
    keys.put(3, "k", b"v")
    assert told.take() == []
    keys.put(3, "other", b"w")
    assert told.take() == [(A, "other", b"w")]


def test_an_empty_value_is_a_value(keys: Rendezvous, told: Told) -> None:
    keys.put(3, "k", b"")
    keys.get(A, 3, "k", current=True)
    assert told.take() == [(A, "k", b"")]


def test_keys_of_one_epoch_are_not_another_s(keys: Rendezvous, told: Told) -> None:
    keys.put(3, "k", b"old")
    keys.get(A, 4, "k", current=True)
    assert told.take() == []
    keys.put(4, "k", b"new")
    assert told.take() == [(A, "k", b"new")]


def test_who_asks_in_an_epoch_that_is_over_is_told_none(keys: Rendezvous, told: Told) -> None:
    keys.get(A, 3, "k", current=False)
    assert told.take() == [(A, "k", None)]
    keys.put(3, "k", b"v")
    assert told.take() == []


def test_a_walk_that_begins_answers_all_that_wait(keys: Rendezvous, told: Told) -> None:
    keys.get(A, 3, "k", current=True)
    keys.get(B, 3, "k", current=True)
    keys.get(B, 3, "j", current=True)
    keys.give_up()
    assert sorted(told.take(), key=repr) == sorted(
        [(A, "k", None), (B, "k", None), (B, "j", None)], key=repr
    )
    keys.give_up()
    keys.put(3, "k", b"v")
    assert told.take() == []


def test_a_group_s_keys_are_waited_for_in_a_walk_in_which_nobody_was_lost(
    keys: Rendezvous, told: Told
) -> None:
    keys.get(A, 3, "group/0/1", current=True)
    keys.get(A, 3, "layout/7/1", current=True)
    keys.give_up(graceful=True)
    assert told.take() == [(A, "layout/7/1", None)]
    keys.get(B, 3, "group/0/1", current=True, walking=True)
    keys.get(B, 3, "layout/7/1", current=True, walking=True)
    assert told.take() == [(B, "layout/7/1", None)]
    keys.put(3, "group/0/1", b"v")
    assert told.take() == [(A, "group/0/1", b"v"), (B, "group/0/1", b"v")]
    keys.get(A, 3, "group/2/1", current=True, walking=True)
    keys.give_up()
    keys.give_up(graceful=True)
    assert told.take() == [(A, "group/2/1", None)]
    keys.get(B, 3, "group/2/1", current=True, walking=True)
    assert told.take() == [(B, "group/2/1", None)]
    keys.install(4)
    keys.get(B, 4, "group/2/1", current=True, walking=True)
    assert told.take() == []


def test_old_epochs_are_forgotten_and_keys_that_came_early_are_not(
    keys: Rendezvous, told: Told
) -> None:
    for epoch in (2, 3, 4):
        keys.put(epoch, "k", b"%d" % epoch)
    keys.install(3)
    for epoch in (2, 3, 4):
        keys.get(A, epoch, "k", current=False)
    assert told.take() == [(A, "k", None), (A, "k", b"3"), (A, "k", b"4")]


def test_keys_of_steps_that_are_over_are_forgotten(keys: Rendezvous, told: Told) -> None:
    """An epoch may last for a million steps, and any of them may be a slow one that keys are told in."""
    keys.put(3, "store/0", b"group")
    for step in range(1, 200):
        for rank in range(4):
            keys.put(3, f"layout/{step}/{rank}", b"cut")
        keys.get(A, 3, f"layout/{step}/differ", current=True)
    assert len(keys._values) == 1 + 2 * 4
    assert len(keys._waiting) <= 3
    keys.get(A, 3, "layout/198/0", current=True)  # one step behind
    keys.get(A, 3, "store/0", current=True)
    assert [value for _, _, value in told.take()] == [b"cut", b"group"]
