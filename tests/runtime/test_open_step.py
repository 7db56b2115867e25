"""Where the open step is reduced, and what is never reduced in again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cascade_runtime.rank.open_step import OpenStep
from cascade_runtime.rank.part import Part


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
