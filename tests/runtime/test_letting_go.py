"""Communicators that are left: nobody waits for their destructors."""

from __future__ import annotations

import gc
import threading

import pytest

from cascade_runtime.rank import letting_go
from cascade_runtime.rank.groups import Group
from cascade_runtime.vocabulary.identity import Actor


class Fragile:
    """Tells which thread its destructor ran in."""

    def __init__(self, told: list[int]) -> None:
        self._told = told

    def __del__(self) -> None:
        self._told.append(threading.get_ident())


def test_a_group_with_nothing_pending_is_taken_down_beside_the_training_thread() -> None:
    told: list[int] = []
    group = Group(Fragile(told), [Actor(0)], 0, Fragile(told))
    group.abandon()
    letting_go.wait_for_those_going()
    assert len(told) == 2 and threading.get_ident() not in told


def test_where_no_thread_is_to_be_had_it_is_taken_down_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    told: list[int] = []
    monkeypatch.setattr(threading.Thread, "start", refuse)
    Group(Fragile(told), [Actor(0)], 0).abandon()
    assert told == [threading.get_ident()]


def test_a_group_with_an_operation_under_way_is_never_taken_down() -> None:
    told: list[int] = []
    group = Group(Fragile(told), [Actor(0)], 0)
    group.num_pending = 1
    group.abandon()
    del group
    gc.collect()
    letting_go.wait_for_those_going()
    assert told == []
