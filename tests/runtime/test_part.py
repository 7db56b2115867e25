"""A part that is launched again on another communicator: what ended late is not its end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cascade_runtime.rank.collectives import Collectives
from cascade_runtime.rank.open_step import OpenStep
from cascade_runtime.rank.part import Part


class Launches:
    """A recorder, a communicator and its operations, each of which ends when the test says so."""

    def __init__(self) -> None:
        self.futures: list[torch.futures.Future[Any]] = []
        self.seq = 0
        self.before_entered: list[Any] = []
        self.group: Any = SimpleNamespace(
            comm_id="c", size=2, num_pending=0, members=[], pg=self, next_cseq=lambda: self.seq
        )

    def entered(self, *_: object) -> int:
        for act in self.before_entered:
            act()
        self.seq += 1
        return self.seq

    def allreduce(self, tensors: list[torch.Tensor], options: object) -> Any:
        future: torch.futures.Future[Any] = torch.futures.Future()
        self.futures.append(future)
        return SimpleNamespace(get_future=lambda: future)


@pytest.fixture
def launches() -> Launches:
    return Launches()


def launch(launches: Launches, part: Part) -> None:
    none: Any = None
    collectives = Collectives(none, launches, none, OpenStep(none))  # type: ignore[arg-type]
    collectives._start(part, launches.group, None)


def part() -> Part:
    return Part("bucket/0", torch.zeros(2), torch.zeros(2), "all_reduce")


def fail(future: torch.futures.Future[Any]) -> None:
    future.set_exception(RuntimeError("the connection was closed"))


@pytest.mark.parametrize("late", ["before", "while", "after"])
@pytest.mark.parametrize("end", [fail, lambda f: f.set_result(None)], ids=["failed", "done"])
def test_the_end_of_an_abandoned_launch_is_not_that_of_the_next(launches, late, end):
    one = part()
    launch(launches, one)
    (old,) = launches.futures
    if late == "before":
        end(old)
    if late == "while":  # another thread, in the middle of the next launch
        launches.before_entered.append(lambda: end(old))
    launch(launches, one)
    launches.before_entered.clear()
    if late == "after":
        end(old)
    assert (one.done, one.failed, one.complete_ns) == (False, None, 0)
    launches.futures[1].set_result(None)
    assert one.done and one.failed is None


def test_a_failed_launch_is_told(launches):
    one = part()
    launch(launches, one)
    fail(launches.futures[0])
    assert not one.done and "closed" in str(one.failed)
