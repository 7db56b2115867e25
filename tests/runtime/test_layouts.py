"""Ranks compare how they cut their buckets; the agents' store between them is a dictionary here."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
import torch

from cascade_runtime.agent.protocol import Get, Put, Value, View
from cascade_runtime.rank.layouts import LOOKS, Layouts
from cascade_runtime.rank.part import Part
from cascade_runtime.vocabulary.errors import NotSupported
from cascade_runtime.vocabulary.identity import Actor
from tests.agent.facts import actors, view

NEWCOMER = Actor(2, 1)


class Link:
    """Answers what is there; a key that is not yet there counts as late at once."""

    def __init__(self, store: dict[tuple[int, str], bytes]) -> None:
        self.store = store
        self.inbox: deque[Any] = deque()
        self.fd = -1
        self.num_asked = 0

    def send(self, message: Any) -> None:
        if isinstance(message, Put):
            self.store[message.epoch, message.key] = message.value
        elif isinstance(message, Get):
            self.num_asked += 1
            if (message.epoch, message.key) in self.store:
                value = self.store[message.epoch, message.key]
                self.inbox.append(Value(message.key, value))

    def receive(self, timeout_s: float | None = None) -> Any:
        return self.inbox.popleft() if self.inbox else None


class Member:
    def __init__(self, actor: Actor, now: View) -> None:
        self.actor = actor
        self.view = now
        self.decided = 0

    @property
    def cohort(self) -> list[Actor]:
        return self.view.cohorts[0]


class Rank:
    """One rank, which cuts its four parameters as it is told."""

    def __init__(self, actor: Actor, now: View, store: dict[tuple[int, str], bytes]) -> None:
        self.member, self.link = Member(actor, now), Link(store)
        self.parameters = [torch.zeros(4) for _ in range(4)]
        self.layouts = Layouts(self.member, self.link, self.parameters)  # type: ignore[arg-type]
        self.cut = [[3, 2], [1, 0]]

    def parts(self) -> list[Part]:
        return [
            Part(f"bucket/{i}", flat, flat, "all_reduce", lambda b=b: [self.parameters[n] for n in b])
            for i, b in enumerate(self.cut)
            for flat in [torch.zeros(4 * len(b))]
        ]  # fmt: skip

    def expects(self) -> bool:
        return all(self.layouts.expects(i, part) for i, part in enumerate(self.parts()))

    def agree(self) -> bool:
        return self.layouts.agree(self.parts())

    def decide(self) -> None:
        self.layouts.decide(self.parts())
        self.member.decided += 1

    def enter(self, now: View) -> None:
        self.member.view = now
        self.layouts.admit(now)


def made(*who: Actor, now: View) -> list[Rank]:
    store: dict[tuple[int, str], bytes] = {}
    return [Rank(actor, now, store) for actor in who]


def agree(ranks: list[Rank]) -> bool:
    """Who asks first finds nobody there; after that all know."""
    for rank in ranks:
        rank.agree()
    return all(rank.agree() for rank in ranks)


def step(ranks: list[Rank]) -> None:
    assert agree(ranks)
    for rank in ranks:
        rank.decide()


def joined() -> list[Rank]:
    """Two members that have made six steps, and a newcomer of whom nothing is known yet."""
    ranks = made(Actor(0), Actor(1), now=view(0, 1))
    for _ in range(6):
        step(ranks)
    newcomer = Rank(NEWCOMER, view(0, 1), ranks[0].link.store)
    newcomer.member.decided = 6
    who = [Actor(0), Actor(1), NEWCOMER]
    now = View(**{
        f: getattr(view(0, 1, epoch=1), f) for f in View.__struct_fields__
    } | {"members": who, "cohorts": [who], "joined": [NEWCOMER], "cut_step": 6})  # fmt: skip
    for rank in (*ranks, newcomer):
        rank.enter(now)
    return [*ranks, newcomer]


def test_a_new_cut_is_asked_about_and_a_known_one_is_not() -> None:
    ranks = made(*actors(0, 1), now=view(0, 1))
    assert not ranks[0].expects()
    step(ranks)
    asked = [rank.link.num_asked for rank in ranks]
    for _ in range(LOOKS + 3):  # also when the parameters are compared no longer
        assert all(rank.expects() for rank in ranks)
        step(ranks)
    assert [rank.link.num_asked for rank in ranks] == asked


def test_buckets_of_one_size_with_other_parameters_are_refused_by_all() -> None:
    ranks = made(*actors(0, 1), now=view(0, 1))
    ranks[1].cut = [[2, 3], [1, 0]]
    assert not ranks[0].agree()
    for rank in (ranks[1], ranks[0]):
        with pytest.raises(NotSupported, match="gradient buckets differ"):
            rank.agree()


def test_all_compare_anew_when_somebody_joins_wherever_they_stand() -> None:
    first, second, newcomer = ranks = joined()
    assert not first.expects()
    step(ranks)
    late = joined()
    # One member is told of the step's decision after it has been let in; the words stay the same.
    late[0].decide()
    late[0].enter(late[0].member.view)
    for rank in late[1:]:
        rank.layouts.decide(rank.parts())
        rank.member.decided += 1
        rank.enter(rank.member.view)
    assert agree(late)
    assert second.expects() and newcomer.expects()


def test_a_newcomer_with_another_cut_ends_and_the_others_wait_for_that() -> None:
    first, second, newcomer = joined()
    newcomer.cut = [[2, 3], [1, 0]]
    assert not first.agree()
    assert not second.agree()
    with pytest.raises(NotSupported, match="come back with other gradient buckets"):
        newcomer.agree()
    assert not first.agree()
    assert not second.agree()
    for rank in (first, second):
        rank.enter(view(0, 1, epoch=2))
    step([first, second])


def test_a_newcomer_is_one_of_all_after_its_first_step() -> None:
    ranks = joined()
    step(ranks)
    for rank in ranks[:2]:
        rank.layouts.tell(rank.parts())  # as one does that has waited for long
    ranks[2].cut = [[3, 2, 1], [0]]
    with pytest.raises(NotSupported, match="gradient buckets differ"):
        ranks[2].agree()
