"""Who connects: hellos of ranks and agents, lifelines, and what a peer that is back must be told."""

from __future__ import annotations

import asyncio
import os
import socket
import struct

from cascade_runtime.agent.host_state import HostState
from cascade_runtime.agent.inbox import Inbox
from cascade_runtime.agent.links import BadFrame, read_frames
from cascade_runtime.agent.newcomers import Newcomers
from cascade_runtime.agent.protocol import (
    AddRank,
    AgentHello,
    Attached,
    Beat,
    Commit,
    DebtNote,
    Get,
    Hello,
    Lag,
    Leave,
    Lifeline,
    NotWanted,
    Put,
    RankAdded,
    Round,
    StateAsk,
    StateStand,
    StateUpdate,
    Waits,
    Welcome,
    pack_frame,
)
from cascade_runtime.agent.rank_process import runs_in
from cascade_runtime.vocabulary.identity import Actor

_CREDENTIALS = struct.Struct("3i")
_NO_WALK = (Round, Put, Get, Beat, Waits, StateUpdate, StateAsk, StateStand)
"""Messages by which nothing becomes due."""


class Connections:
    """Serves the agent's socket."""

    def __init__(self, host: HostState, newcomers: Newcomers, inbox: Inbox) -> None:
        self._host = host
        self._newcomers = newcomers
        self._inbox = inbox

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Listen to one connection until it ends."""
        who: Actor | None = None
        agent: int | None = None
        lifeline: Actor | None = None
        try:
            async for frame, size in read_frames(reader):
                body = frame.body
                if who is None:
                    if isinstance(body, Hello) and (why := self._unwanted(body, writer)):
                        writer.write(pack_frame(NotWanted(why, os.EX_TEMPFAIL)))
                        break
                    if isinstance(body, Hello):
                        who = body.actor
                        self._on_hello(body, writer)
                    elif isinstance(body, Lifeline):
                        lifeline = body.actor
                        self._host.hosts.lifeline(lifeline, is_open=True)
                        continue
                    elif isinstance(body, AddRank):
                        writer.write(pack_frame(RankAdded(self._newcomers.add(body.rank))))
                        break
                    elif isinstance(body, AgentHello) and body.index in self._host.post.peers:
                        who, agent = body.actor, body.index
                        self._on_agent_hello(body)
                    else:
                        self._host.say(f"dropping a connection that began with {body!r}"[:200])
                        break
                    continue
                if who in self._host.fenced:
                    break  # whatever it says belongs to an epoch that has moved on
                self._host.control.incoming(who, frame.channel_seq, size)
                if agent is None:
                    self._inbox.on_rank_message(who, body)
                else:
                    self._inbox.on_agent_message(agent, body)
                self._host.perform()
                if not isinstance(body, _NO_WALK):
                    self._host.tick()
        except BadFrame as error:  # the other end's; what fails here is ours, and ends the agent
            self._host.say(f"dropping a connection: {error}")
        except asyncio.CancelledError:
            return  # the job is over
        except Exception as error:  # at once, and not when the task is collected
            context = {"message": "a connection could not be served", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
        finally:
            writer.close()
            if lifeline is not None and not self._host.finished.is_set():
                self._host.hosts.lifeline(lifeline, is_open=False)
                self._host.tick()
            if who is not None and self._host.post.connections.get(who) is writer:
                del self._host.post.connections[who]

    def _unwanted(self, hello: Hello, writer: asyncio.StreamWriter) -> str | None:
        """Why this process is not listened to; None when it is a rank that this agent knows."""
        if hello.actor in self._host.fenced:
            return "was stopped and is fenced"
        process = self._host.ranks.get(hello.actor.rank)
        if (
            process is None
            or process.actor != hello.actor
            or not runs_in(_peer(writer), process.pid)
        ):
            # Started by a life of this agent that ended before it could write so down.
            return "is a process that its host agent knows nothing of"
        return None

    def _on_hello(self, hello: Hello, writer: asyncio.StreamWriter) -> None:
        actor = hello.actor
        self._host.post.connections[actor] = writer
        writer.write(self._host.hello())
        if actor not in self._host.attached:
            self._host.attached.add(actor)
            for peer in self._host.post.peers.values():
                peer.send(pack_frame(Attached([actor])))
        self._inbox.try_first_view()
        if not self._host.walker.log:
            return
        if hello.epoch < 0:
            self._host.post.tell(
                actor, Welcome(self._host.walker.view, self._host.actor, self._host.config.mode)
            )
            return
        for view in self._host.walker.log[hello.epoch + 1 :]:
            self._host.post.tell(actor, Commit(view))
        # A restarted agent finds its ranks where the old one left them: ask again.
        self._host.walker.on_hello(actor)
        self._host.perform()

    def _on_agent_hello(self, hello: AgentHello) -> None:
        self._host.post.peer_actors[hello.index] = hello.actor
        if self._host.walker.log:
            self._host.walker.on_message(hello.index, Lag(hello.epoch))
        self.greet(hello.index)

    def greet(self, index: int) -> None:
        """A peer can be reached (again): tell it what this host knows and it may have missed."""
        if self._host.post.peers[index].up:
            self._host.hosts.up(index, asyncio.get_running_loop().time())
        if index not in self._host.post.peer_actors or not self._host.post.peers[index].up:
            return
        self._host.post.peers[index].send(
            pack_frame(Attached(self._host.local(self._host.attached)))
        )
        for actor in self._host.local(self._host.judge.leaving):
            self._host.post.send(index, Leave(actor, 0))
        for trigger in self._host.judge.triggers:
            self._host.post.send(index, trigger)
        for report in self._host.reconciler.reports():
            if self._host.config.host_of(report.actor.rank) == self._host.index:
                self._host.post.send(index, report)
        opened, closed = (
            list(self._host.reconciler.open.values()),
            sorted(self._host.reconciler.closed),
        )
        if opened or closed:
            self._host.post.send(index, DebtNote(self._host.actor, opened=opened, closed=closed))
        self._newcomers.greet(index)
        self._inbox.states.greet(index)
        self._host.perform()

    def forget_peer(self, index: int) -> None:
        """Its connection ended; until it says hello again nobody knows which incarnation it is."""
        self._host.post.peer_actors.pop(index, None)
        self._host.hosts.down(index, asyncio.get_running_loop().time())
        if not self._host.finished.is_set():
            self._inbox.states.ask_others()
            self._host.tick()


def _peer(writer: asyncio.StreamWriter) -> int:
    """The process at the other end, as the kernel knows it."""
    told = writer.get_extra_info("socket").getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
    )
    pid, _, _ = _CREDENTIALS.unpack(told)
    return int(pid)
