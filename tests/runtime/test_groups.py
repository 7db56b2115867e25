"""How long forming a communicator may take, where it fails again and again; gloo is played here."""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from typing import Any

import pytest
import torch.distributed as dist

from cascade_runtime.agent.protocol import Commit, Get, Halt, Value
from cascade_runtime.agent.rendezvous import GROUP
from cascade_runtime.rank.groups import (
    FORM_TIMEOUT_S,
    MAX_FORM_TIMEOUT_S,
    GlooFactory,
    NoAnswer,
    Superseded,
    ask,
)
from tests.agent.facts import actors, view


class Link:
    """An agent that answers what it was told to; nothing at all counts as time that went by."""

    def __init__(self) -> None:
        self.inbox: deque[Any] = deque()
        self.answers: deque[Any] = deque()
        self.patience: list[float | None] = []

    def send(self, message: Any) -> None:
        assert isinstance(message, Get)

    def receive(self, timeout_s: float | None = None) -> Any:
        self.patience.append(timeout_s)
        return self.answers.popleft() if self.answers else None


class Gloo:
    """Asks the store for one key, as the real one does, and connects or does not."""

    class _Options:
        _timeout = timedelta()

    connects = True
    given: list[timedelta]

    def __init__(self, store: Any, rank: int, size: int, options: Any) -> None:
        self.given.append(options._timeout)
        store.get("0/1")
        if not self.connects:
            raise RuntimeError("connection refused")

    @staticmethod
    def create_device(hostname: str) -> str:
        return hostname


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(dist, "ProcessGroupGloo", Gloo)
    monkeypatch.setattr(Gloo, "given", [], raising=False)
    return Link()


def forms(factory: GlooFactory, link: Any, *answers: Any) -> bool:
    link.answers.extend(answers)
    link.patience.clear()
    try:
        factory.form(actors(0, 1), actors(0)[0], 3)
    except Superseded:
        return False
    return True


KEY = f"{GROUP}0/1"
VALUE = Value(KEY, b"here")


def test_each_failure_gives_the_next_forming_twice_as_long(
    link: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    factory = GlooFactory(link, "127.0.0.1")
    monkeypatch.setattr(Gloo, "connects", False)
    assert not forms(factory, link, VALUE)
    for _ in range(4):
        assert not forms(factory, link), "nobody tells the key"
        assert link.patience == [Gloo.given[-1].total_seconds()]
    assert [t.total_seconds() for t in Gloo.given] == [3.0, 6.0, 12.0, 24.0, MAX_FORM_TIMEOUT_S]
    monkeypatch.setattr(Gloo, "connects", True)
    assert forms(factory, link, VALUE)
    assert forms(factory, link, VALUE)
    assert Gloo.given[-1].total_seconds() == FORM_TIMEOUT_S


@pytest.mark.parametrize("told", [Value(KEY, None), Halt(4, graceful=False)], ids=["over", "walk"])
def test_a_view_that_is_walked_away_from_was_no_failure(link: Any, told: Any) -> None:
    factory = GlooFactory(link, "127.0.0.1")
    for _ in range(3):
        assert not forms(factory, link, told)
    assert {t.total_seconds() for t in Gloo.given} == {FORM_TIMEOUT_S}


def test_a_group_is_formed_although_a_walk_has_begun_where_nobody_was_lost(link: Any) -> None:
    """Ranks that were done one after the other held the rest for 15 s: gloo waits for who has left."""
    halt = Halt(4, graceful=True)
    assert forms(GlooFactory(link, "127.0.0.1"), link, halt, VALUE)
    assert list(link.inbox) == [halt], "the walk is served after it"


def test_a_commit_that_was_told_twice_is_no_walk(link: Any) -> None:
    """An agent that was killed just after it had told: the member waited for ever for another one."""
    again = Commit(view(0, 1, epoch=3))
    assert forms(GlooFactory(link, "127.0.0.1"), link, again, VALUE)
    assert not link.inbox
    later = Commit(view(0, 1, epoch=4))
    assert not forms(GlooFactory(link, "127.0.0.1"), link, later, VALUE)
    assert list(link.inbox) == [later]


def test_another_key_is_not_waited_for_in_a_walk(link: Any) -> None:
    link.answers.append(Halt(4, graceful=True))
    with pytest.raises(Superseded):
        ask(link, 3, "layout/1/2")


def test_no_answer_is_told_from_an_epoch_that_is_over(link: Any) -> None:
    with pytest.raises(NoAnswer):
        ask(link, 3, "0/1")
    link.answers.append(Value("0/1", None))
    with pytest.raises(Superseded) as over:
        ask(link, 3, "0/1")
    assert not isinstance(over.value, NoAnswer)
