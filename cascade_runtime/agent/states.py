"""An agent's part in shared state: it passes puts on, and knows what a process that lost some lacks.

Puts of a local rank go to the other local ranks and to every other agent; those of other agents to the
local ranks. Whoever was away tells its clock and is sent what it lacks, in both directions, so nothing
of it need be in an agent's journal: an agent that was started again has it from its ranks.
"""

from __future__ import annotations

import asyncio

from cascade_runtime.agent.host_state import HostState
from cascade_runtime.agent.protocol import StateAsk, StateStand, StateUpdate, pack_frame
from cascade_runtime.state.replica import Replica, Stand
from cascade_runtime.state.rows import StateRows
from cascade_runtime.vocabulary.identity import Actor, Clock, Dot

MOST_UNREAD = 64 << 20
"""Bytes that somebody may leave unread.

Beyond them a rank's connection is ended: it dials again and asks. Another agent's is not, as all else
goes over it too: it is sent no more, and what it lacks once it has read that.
"""

ASK_AGAIN_S = 0.2

StateMessage = StateUpdate | StateAsk | StateStand


class States:
    """The keys, as this agent knows them."""

    def __init__(self, host: HostState) -> None:
        self._host = host
        self._replica = Replica(causal=host.config.mode == "enforce")
        self._rows = StateRows(host.recorder)
        self._open: set[Actor] = set()
        """Local ranks that take part."""
        self._asked: dict[Actor | int, float] = {}
        self._num_stands = 0
        self._behind: dict[int, list[Dot]] = {}
        """Agents that read too slowly: what they had been sent when they were sent no more."""
        host.on_departed.append(self.ask_others)

    def on_rank(self, actor: Actor, body: StateMessage) -> None:
        """A rank of this host."""
        match body:
            case StateAsk(clock=clock):
                if actor not in self._open:
                    self._open.add(actor)
                    for index in self._host.post.peers:
                        self.greet(index)
                self._answer(actor, clock)
                self._tell(actor, StateAsk(self._replica.clock()))
            case StateUpdate():
                self._pass_on(body)
                self._receive(actor, body)
            case StateStand():
                self._pass_on(body)
                self._take(body.stand)

    def on_agent(self, index: int, body: StateMessage) -> None:
        """Another agent."""
        match body:
            case StateAsk(clock=clock):
                self._answer(index, clock)
            case StateUpdate():
                self._receive(index, body)
            case StateStand():
                self._take(body.stand)

    def greet(self, index: int) -> None:
        """A peer can be reached (again): it may have what was put meanwhile, if it is for a rank here."""
        if self._open:
            self._tell(index, StateAsk(self._replica.clock()))

    def ask_others(self) -> None:
        """Somebody is gone, who may have sent an update to some of them and not to this one."""
        for index in self._host.post.peers:
            self.greet(index)

    def _pass_on(self, body: StateUpdate | StateStand) -> None:
        """To the other agents, before it is taken in here."""
        for index in self._host.post.peers:
            if index not in self._behind and self._takes_more(index, self._replica.clock()):
                self._tell(index, body)

    def _receive(self, sender: Actor | int, body: StateUpdate) -> None:
        for update in self._replica.receive(body.update):
            for actor in self._open:
                if actor != update.author:
                    self._tell(actor, StateUpdate(update))
        if self._replica.has_waiting:
            self._ask(sender)

    def _ask(self, other: Actor | int) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._asked.get(other, -ASK_AGAIN_S) >= ASK_AGAIN_S:
            self._asked[other] = now
            self._tell(other, StateAsk(self._replica.clock()))

    def _answer(self, other: Actor | int, clock: list[Dot]) -> None:
        if not isinstance(other, Actor) and not self._takes_more(other, clock):
            return
        lacking = self._replica.since(clock)
        if lacking is None:
            self._num_stands += 1
            stand = self._replica.stand(f"stand/{self._host.actor}/{self._num_stands}")
            self._rows.stand("saved", stand, stand.clock)
            self._tell(other, StateStand(stand))
            return
        for update in lacking:
            self._tell(other, StateUpdate(update))

    def _take(self, stand: Stand) -> None:
        frontier = Clock([*self._replica.clock(), *stand.clock])
        if self._replica.take(stand) is not None:
            self._rows.stand("received", stand, frontier.dots())
            for actor in self._open:
                self._tell(actor, StateStand(stand))

    def _tell(self, other: Actor | int, message: StateMessage) -> None:
        if not isinstance(other, Actor):
            if (peer := self._host.post.peers.get(other)) is not None:
                peer.send(pack_frame(message))
            return
        writer = self._host.post.connections.get(other)
        if writer is not None and writer.transport.get_write_buffer_size() > MOST_UNREAD:
            writer.close()
            return
        self._host.post.tell(other, message)

    def _takes_more(self, index: int, has: list[Dot]) -> bool:
        """Whether another agent is to be sent something; else later what is beyond ``has``."""
        peer = self._host.post.peers.get(index)
        if peer is None or peer.num_unsent <= MOST_UNREAD:
            return True
        if index not in self._behind:
            self._look_again(index)
        self._behind[index] = has
        return False

    def _look_again(self, index: int) -> None:
        asyncio.get_running_loop().call_later(ASK_AGAIN_S, self._catch_up, index)

    def _catch_up(self, index: int) -> None:
        """An agent that was sent no more: has it read what it had been sent?"""
        if self._host.finished.is_set():
            return
        if self._host.post.peers[index].num_unsent > MOST_UNREAD // 2:
            self._look_again(index)
            return
        self._answer(index, self._behind.pop(index))
        for update, _ in self._replica.waiting():  # what is not applied here is in no answer
            self._tell(index, StateUpdate(update))
