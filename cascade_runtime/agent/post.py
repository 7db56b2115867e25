"""Messages out: to ranks of this host, to other agents, and to this agent itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.control_log import ControlLog
from cascade_runtime.agent.links import PeerLink
from cascade_runtime.agent.protocol import (
    Message,
)
from cascade_runtime.vocabulary.identity import Actor


class Post:
    """One agent's open connections, by whom they lead to.

    Args:
        config: the job.
        index: this agent's host.
        control: records what is sent.
    """

    def __init__(self, config: JobConfig, index: int, control: ControlLog) -> None:
        self.config = config
        self.index = index
        self.control = control
        self.connections: dict[Actor, asyncio.StreamWriter] = {}
        self.peers: dict[int, PeerLink] = {}
        self.peer_actors: dict[int, Actor] = {}
        """Which incarnation of each other agent is there; absent until it said hello."""
        self.deliver: Callable[[int, Message], None] = _unset
        """Takes what this agent sends to itself (inbox.py)."""

    def tell(self, actor: Actor, message: Message) -> None:
        """To a rank of this host; dropped when it is not connected."""
        writer = self.connections.get(actor)
        if writer is not None:
            writer.write(self.control.outgoing(actor, message))

    def send(self, index: int, message: Message) -> None:
        """To the agent of host ``index``; dropped when it is away (the walk says things again)."""
        if index == self.index:
            self.deliver(index, message)
            return
        peer = self.peers.get(index)
        if peer is not None and peer.up and index in self.peer_actors:
            peer.send(self.control.outgoing(self.peer_actors[index], message))

    def broadcast(self, message: Message) -> None:
        """To every agent, this one too."""
        for index in range(self.config.num_hosts):
            self.send(index, message)


def _unset(*_: object) -> None:
    raise RuntimeError("this part of the agent has not been put in yet")
