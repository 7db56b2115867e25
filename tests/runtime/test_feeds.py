"""A member that serves newcomers: whatever its state holds, it trains on, and the newcomer hears why not."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cascade_runtime.agent.protocol import Serve
from cascade_runtime.rank import feed as feed_file
from cascade_runtime.rank.feed import READY, Feeds
from cascade_runtime.rank.heard_queue import Heard
from cascade_runtime.rank.objects import ModelObjects
from cascade_runtime.rank.receiver import Receiver
from cascade_runtime.rank.snapshot import TrainingState
from cascade_runtime.rank.state_codec import read_message
from cascade_runtime.vocabulary.identity import Actor, Clock
from tests.agent.facts import view

NEWCOMER, SOURCE = Actor(2, 1), Actor(1)
DEADLINE_S = 10.0


class Scheduler:
    """One of the script's own; its state is what a test says."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def state_dict(self) -> dict[str, Any]:
        if isinstance(self.state, Exception):
            raise self.state
        return {"state": self.state}


class Source:
    """A member's feeds, with a model of its own."""

    def __init__(self, path: Path) -> None:
        self.model = nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.schedulers: list[Scheduler] = []
        objects = ModelObjects(self.model, self.optimizer)
        state = TrainingState(self.model, self.optimizer, lambda: self.schedulers, objects)
        member: Any = SimpleNamespace(
            actor=SOURCE, view=view(0, 1), decided=3, version=3, strong=True, frontier=Clock(),
            last_dots=[None] * len(objects.names), on_applied=None,
        )  # fmt: skip
        recorder: Any = SimpleNamespace(row=lambda *args, **fields: None, step=4)
        self.feeds = Feeds(member, state, recorder)
        self.feeds.layout = [["weight", "bias"]]
        self.feeds.request(Serve(NEWCOMER, SOURCE, str(path)))
        self.optimizer.register_step_pre_hook(self.feeds.before_optimizer)

    def step(self) -> None:
        """One of the script's, to the next one's beginning."""
        self.model(torch.ones(1, 3)).sum().backward()
        self.optimizer.step()
        self.feeds.boundary()


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    made = Receiver(tmp_path / "join.sock", 1 << 20)
    yield made
    made.close()


def heard(receiver: Receiver, kind: str) -> Heard:
    """The next message, which is of this kind."""
    end = time.monotonic() + DEADLINE_S
    while (told := receiver.take()) is None:
        assert time.monotonic() < end, f"never: {kind}"
        time.sleep(0.001)
    assert told.kind == kind, told
    return told


def served(receiver: Receiver) -> Source:
    source = Source(receiver._path)
    heard(receiver, "hello")
    return source


def test_a_learning_rate_of_numpy_is_told(receiver: Receiver) -> None:
    source = served(receiver)
    for group in source.optimizer.param_groups:
        group["lr"] = np.linspace(0.1, 0.2, 3)[1]
    source.feeds.boundary()
    source.step()
    told = heard(receiver, "snapshot").body["groups"][0]["lr"]
    assert (told, type(told)) == (float(np.linspace(0.1, 0.2, 3)[1]), float)
    assert heard(receiver, "entry").body["calls"][0]["groups"][0]["lr"] == told


@pytest.mark.parametrize(
    "state", [lambda: 0, "\ud800", KeyError("x"), MemoryError(), NotImplementedError("\ud800")],
    ids=["function", "surrogate", "key error", "no memory", "odd words"],
)  # fmt: skip
@pytest.mark.parametrize("from_step", [0, 1])
def test_what_cannot_be_told_costs_the_newcomer_and_nobody_else(
    receiver: Receiver, state: Any, from_step: int
) -> None:
    source = served(receiver)
    for step in range(3):
        if step == from_step:
            source.schedulers = [Scheduler(state)]
        source.step()
    if from_step:
        heard(receiver, "snapshot")
    why = heard(receiver, "refused").body["why"]
    assert "could not tell" in why or "cannot be sent" in why
    assert not source.feeds.any


def test_gradients_that_cannot_be_copied_are_refused_too(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = served(receiver)
    source.step()
    heard(receiver, "snapshot")

    def no_memory(state: TrainingState) -> None:
        raise RuntimeError("not enough memory")

    monkeypatch.setattr(TrainingState, "tell_gradients", no_memory)
    source.step()
    assert "not enough memory" in heard(receiver, "refused").body["why"]


def test_who_is_not_connected_yet_hears_a_refusal_of_all(tmp_path: Path) -> None:
    """Else it would listen for ever to a member that says nothing."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.settimeout(DEADLINE_S)
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        source = Source(tmp_path / "s")
        source.feeds._end_all("nobody is served")
        connection, _ = listener.accept()
    with connection, connection.makefile("rb") as file:
        connection.settimeout(DEADLINE_S)
        connection.sendall(READY)

        def read_into(into: memoryview) -> None:
            if file.readinto(into) < into.nbytes:
                raise EOFError

        assert read_message(read_into, 1 << 20)[0] == "hello"
        assert read_message(read_into, 1 << 20) == ("refused", {"why": "nobody is served"})
        with pytest.raises(EOFError):
            read_message(read_into, 1 << 20)


def test_no_thread_to_be_had_is_no_fault_of_the_member(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*ignored: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(feed_file, "Feed", none)
    source = Source(receiver._path)
    assert not source.feeds.any
    source.step()
