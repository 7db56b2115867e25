"""A member that could not form its view's group says so, unless a walk is under way."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from cascade_runtime.agent.protocol import Commit, Halt, Settle, Value
from cascade_runtime.rank.entering import Entering
from cascade_runtime.rank.groups import NoAnswer
from tests.agent.facts import view


@pytest.mark.parametrize(
    ("inbox", "stuck"),
    [
        ([], True),
        ([Value("k", b"v"), Settle([], equal=True)], True),
        ([Commit(view(0, 1, epoch=3))], True),
        ([Value("k", b"v"), Halt(4, graceful=False)], False),
    ],
    ids=["nothing", "of no walk", "told twice", "walk"],
)
def test_who_failed_says_so_unless_a_walk_has_begun(inbox: list[Any], stuck: bool) -> None:
    def fail(*ignored: object) -> None:
        raise NoAnswer("no answer for group/0")

    said: list[str] = []
    member: Any = SimpleNamespace(view=view(0, 1, epoch=3))
    link: Any = SimpleNamespace(pump=lambda: None, inbox=deque(inbox))
    collectives: Any = SimpleNamespace(form_side=fail)
    waiting: Any = SimpleNamespace(say_stuck=said.append)
    none: Any = None
    entering = Entering(member, link, none, collectives, none, waiting, none, none)
    assert not entering._form_side(member.view.members, "")
    assert said == ["no answer for group/0"] * stuck
