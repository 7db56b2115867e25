"""The open step's memory, and messages of walks that are over."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cascade_runtime.agent.protocol import Ballot, Commit, Halt, Message, Proposed
from cascade_runtime.rank.open_step import OpenStep
from cascade_runtime.rank.part import Part
from cascade_runtime.rank.waiting import Waiting
from tests.agent.facts import view


class Training:
    """Steps of one bucket, as the hook makes them."""

    def __init__(self) -> None:
        self.member: Any = SimpleNamespace(decided=0)
        self.step = OpenStep(self.member)

    def begin(self) -> Part:
        self.step.begin_backward()
        local = torch.ones(4)
        self.step.parts = [
            Part("bucket/0", local, self.step.scratch("bucket/0", local), "all_reduce")
        ]
        return self.step.parts[0]

    def end(self) -> torch.Tensor:
        """Decided and handed over; where the result was."""
        self.member.decided += 1
        self.step.is_decided = True
        self.step.hand_over()
        self.step.is_decided = False
        return self.step.kept[0].scratch


def test_two_sets_of_scratch_are_used_in_turn() -> None:
    training = Training()
    used = []
    for _ in range(6):
        training.begin()
        used.append(training.end().data_ptr())
    assert used == [used[0], used[1]] * 3


@pytest.mark.parametrize("is_open", [True, False])
def test_nothing_is_reduced_where_a_broadcast_that_was_cut_short_may_still_write(
    is_open: bool,
) -> None:
    """Kept buckets are broadcast to who is behind; the walk may be cut short by another death."""
    training = Training()
    for _ in range(3):
        training.begin()
        kept = training.end()
    if is_open:
        training.begin()
    late = [kept]
    if is_open:
        late.append(training.step.parts[0].scratch)
    training.step.leave_group(num_pending=1)
    assert training.step.last_decided[0].scratch is kept, "it may be asked for again"
    if is_open:
        part = training.step.parts[0]
        assert part.scratch is not late[1]
        training.end()
    for _ in range(4):
        part = training.begin()
        assert all(part.scratch.data_ptr() != tensor.data_ptr() for tensor in late)
        training.end()


def test_a_group_without_anything_pending_leaves_the_memory_as_it_is() -> None:
    training = Training()
    first = training.begin().scratch
    training.step.leave_group(num_pending=0)
    assert training.step.parts[0].scratch is first


# ---- messages -------------------------------------------------------------------------------------


def hearing(*messages: Message) -> Waiting:
    link: Any = SimpleNamespace(pump=lambda: None, inbox=deque(messages))
    member: Any = SimpleNamespace(view=view(0, 1, epoch=3))
    unused: Any = None
    return Waiting(member, link, unused, -1)


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
    assert hearing(message).next_message() is None
    following = Halt(4, False)
    assert hearing(message, following, message).next_message() == following


@pytest.mark.parametrize(
    "message",
    [Halt(4, True), Proposed(view(0, epoch=4), Ballot(1, 0)), Commit(view(0, epoch=4))],
    ids=["halt", "proposed", "commit"],
)
def test_the_next_walk_is_heard(message: Message) -> None:
    assert hearing(message).next_message() == message
