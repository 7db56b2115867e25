"""What stops a member that waits, and what it says again to an agent that was away."""

from __future__ import annotations

import os
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from cascade_runtime.agent.protocol import Ballot, Commit, Halt, Message, Proposed, Stuck
from cascade_runtime.rank.wait_rows import WaitRows
from cascade_runtime.rank.waiting import Waiting
from cascade_runtime.vocabulary.identity import Actor
from tests.agent.facts import view
from tests.runtime.test_wait_rows import Clock, Recorder


class Link:
    """To an agent that is there, or away."""

    def __init__(self, *messages: Message) -> None:
        self.inbox = deque(messages)
        self.is_up = True
        self.said: list[Message] = []

    def pump(self) -> None:
        """Nothing more comes."""

    def send(self, message: Message) -> None:
        if self.is_up:
            self.said.append(message)


def waiting(link: Any, epoch: int = 3) -> Waiting:
    member: Any = SimpleNamespace(view=view(0, 1, epoch=epoch), actor=Actor(1))
    unused: Any = None
    return Waiting(member, link, unused, -1, unused)


# ---- walks that are over --------------------------------------------------------------------------

OVER = [
    Halt(3, False),
    Halt(1, True),
    Proposed(view(0, epoch=3), Ballot(1, 0)),
    Commit(view(0, epoch=3)),
    Commit(view(0, epoch=2)),
]
"""Of walks to this member's epoch 3 and before."""


@pytest.mark.parametrize(
    "message", OVER, ids=["halt", "old halt", "proposed", "commit", "old commit"]
)
def test_what_is_told_again_of_a_walk_that_is_over_stops_nobody(message: Message) -> None:
    """A member that served it would wait for ever for a walk to go on that nobody walks."""
    assert waiting(Link(message)).next_message() is None
    following = Halt(4, False)
    assert waiting(Link(message, following, message)).next_message() == following


@pytest.mark.parametrize(
    "message",
    [Halt(4, True), Proposed(view(0, epoch=4), Ballot(1, 0)), Commit(view(0, epoch=4))],
    ids=["halt", "proposed", "commit"],
)
def test_the_next_walk_is_heard(message: Message) -> None:
    assert waiting(Link(message)).next_message() == message


# ---- being stuck ----------------------------------------------------------------------------------


def test_who_is_stuck_says_so_again_to_an_agent_that_was_away() -> None:
    """It was killed just after a commit, and its ranks cannot form their group without it."""
    link = Link()
    one = waiting(link)
    link.is_up = False
    one.say_stuck("no answer for store/0\nand more")
    assert link.said == []
    link.is_up = True
    one.tell_again()
    assert link.said == [Stuck(Actor(1), 3, "no answer for store/0")]


def test_who_goes_on_in_another_epoch_is_stuck_no_more() -> None:
    link = Link()
    one = waiting(link)
    one.tell_again()
    one.say_stuck("broken")
    link.said.clear()
    one._member.view = view(0, 1, epoch=4)
    one.tell_again()
    assert link.said == []


# ---- at the staleness bound -----------------------------------------------------------------------


class Channel:
    """Other cohorts have folded enough after so many looks."""

    fds = (-1,)

    def __init__(self, clock: Clock, looks: int) -> None:
        self._clock, self._looks = clock, looks

    @property
    def must_wait(self) -> bool:
        self._clock.now_s += 0.5
        self._looks -= 1
        return self._looks > 0

    def pump(self) -> None:
        """Nothing comes."""

    def fold_more(self) -> None:
        """Nothing has come."""


def test_a_wait_for_other_cohorts_is_on_record_and_costs_no_processor_time() -> None:
    clock, recorder = Clock(), Recorder()
    link: Any = Link()
    link.fd = -1
    member: Any = SimpleNamespace(view=view(0, 1), actor=Actor(1))
    wakeup = os.eventfd(1, os.EFD_NONBLOCK | os.EFD_CLOEXEC)  # the last collective's, told too late
    unused: Any = None
    channel: Any = Channel(clock, looks=12)
    try:
        waits = Waiting(member, link, unused, wakeup, WaitRows(Actor(1), recorder, clock))  # type: ignore[arg-type]
        waits.channel = channel
        assert waits.for_room(channel) is None
        assert [r["signal"] for r in recorder.rows] == ["room"] * len(recorder.rows)
        assert recorder.rows[-1]["value"] >= 3.0
        with pytest.raises(BlockingIOError):
            os.eventfd_read(wakeup)
        num = len(recorder.rows)
        clock.now_s += 60.0
        waits.rows.look()
        assert len(recorder.rows) == num
    finally:
        os.close(wakeup)
