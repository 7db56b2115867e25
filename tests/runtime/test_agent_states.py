"""An agent's part in shared state: who is asked, and who is sent no more for a while."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from cascade_runtime.agent import states as module
from cascade_runtime.agent.protocol import (
    LENGTH,
    StateAsk,
    StateStand,
    StateUpdate,
    unpack_frame,
)
from cascade_runtime.agent.states import States
from cascade_runtime.state import replica
from cascade_runtime.state.replica import Replica
from cascade_runtime.vocabulary.identity import Actor
from tests.agent.facts import view
from tests.runtime.lone_agent import LoneAgent
from tests.state.test_session import Recorder

ME, NEIGHBOUR, FAR = Actor(0), Actor(1), Actor(2)
LIMIT = 1000


class Peer:
    """Another agent's end: it takes in what it is sent, unless it reads nothing."""

    def __init__(self) -> None:
        self.reads = True
        self.num_unsent = 0
        self.sent: list[Any] = []
        self.replica = Replica(causal=True)
        self.was_sent = asyncio.Event()

    def send(self, frame: bytes) -> bool:
        body = unpack_frame(frame[LENGTH.size :]).body
        self.sent.append(body)
        self.was_sent.set()
        if not self.reads:
            self.num_unsent += len(frame)
        if isinstance(body, StateUpdate):
            self.replica.receive(body.update)
        elif isinstance(body, StateStand):
            self.replica.take(body.stand)
        return True

    def read_all(self) -> None:
        self.reads, self.num_unsent = True, 0

    def of(self, kind: type) -> list[Any]:
        return [m for m in self.sent if isinstance(m, kind)]


class Agent:
    """Of ranks 0 and 1; ``peers`` are the others."""

    def __init__(self, peers: int = 2) -> None:
        self.peers = {1 + i: Peer() for i in range(peers)}
        self.told: list[tuple[Actor, Any]] = []
        self.host: Any = SimpleNamespace(
            config=SimpleNamespace(mode="enforce"), recorder=Recorder(Actor(9)), actor=Actor(9),
            on_departed=[], finished=asyncio.Event(),
            post=SimpleNamespace(
                peers=self.peers, connections={}, tell=lambda a, m: self.told.append((a, m))
            ),
        )  # fmt: skip
        self.states = States(self.host)
        self.author = Replica(causal=True)

    def put(self, size: int = 1) -> None:
        """By rank 0, which its agent passes on."""
        update = self.author.put(ME, "plan", "route", b"v" * size)
        self.states.on_rank(ME, StateUpdate(update))


def asks(peer: Peer) -> int:
    return len(peer.of(StateAsk))


def test_whoever_is_still_there_is_asked_when_somebody_is_gone() -> None:
    """Its last puts may have come to some and not to others."""
    agent = Agent()
    for call in agent.host.on_departed:
        call()
    assert [asks(p) for p in agent.peers.values()] == [0, 0], "no rank here takes part"
    agent.states.on_rank(ME, StateAsk([]))
    assert [asks(p) for p in agent.peers.values()] == [1, 1]
    agent.put()
    for call in agent.host.on_departed:
        call()
    assert [asks(p) for p in agent.peers.values()] == [2, 2]
    assert agent.peers[1].of(StateAsk)[-1] == StateAsk(agent.author.clock())


@pytest.mark.parametrize("kept", [True, False])
def test_an_agent_that_reads_nothing_is_sent_no_more_and_then_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    monkeypatch.setattr(module, "MOST_UNREAD", LIMIT)
    monkeypatch.setattr(module, "ASK_AGAIN_S", 0.001)
    if not kept:
        monkeypatch.setattr(replica, "TAIL", 3)

    async def main() -> None:
        agent = Agent()
        slow, quick = agent.peers.values()
        slow.reads = False
        for _ in range(50):
            agent.put(100)
        assert slow.num_unsent < LIMIT + 200
        assert len(quick.of(StateUpdate)) == 50
        before = len(slow.sent)
        for _ in range(5):
            agent.states._catch_up(1)
        assert len(slow.sent) == before, "it still reads nothing"
        agent.states.on_agent(1, StateAsk([]))
        assert len(slow.sent) == before, "though it asks"
        slow.read_all()
        async with asyncio.timeout(20):
            while slow.replica.clock() != agent.author.clock():
                slow.was_sent.clear()
                await slow.was_sent.wait()
        assert bool(slow.of(StateStand)) != kept
        agent.put()
        assert slow.replica.clock() == agent.author.clock(), "it is sent all again"
        agent.host.finished.set()

    asyncio.run(main())


def test_a_view_without_somebody_asks(tmp_path: Any) -> None:
    lone = LoneAgent(tmp_path)
    asked: list[int] = []
    lone.host.on_departed.append(lambda: asked.append(lone.host.walker.epoch))

    async def install(path: Any) -> None:
        del path
        lone.host.walker._install(view(0, 1, 2, epoch=1))
        lone.host.perform()
        lone.host.walker._install(view(0, 1, epoch=2, departed=[FAR], member_reason="failed"))
        lone.host.perform()

    lone.run(install)
    assert asked == [2]
