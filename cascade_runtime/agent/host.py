"""The host agent's loop: wires its parts, wakes them when time or a message wants it, ends with the job.

The protocol itself is in walk.py (pure) and plan.py (pure); reconcile.py keeps what members report.
What the parts share is in host_state.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from functools import partial
from typing import Any

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.connections import Connections
from cascade_runtime.agent.cpu_busy import PERIOD_S as CPU_PERIOD_S
from cascade_runtime.agent.cpu_busy import CpuBusy
from cascade_runtime.agent.deaths import Deaths
from cascade_runtime.agent.effects import Effects
from cascade_runtime.agent.host_state import HostState
from cascade_runtime.agent.hosts import BEAT_S
from cascade_runtime.agent.inbox import Inbox
from cascade_runtime.agent.journal import JournalLost
from cascade_runtime.agent.leading import Leading
from cascade_runtime.agent.links import PeerLink
from cascade_runtime.agent.newcomers import Newcomers
from cascade_runtime.agent.protocol import (
    Beat,
    pack_frame,
)
from cascade_runtime.agent.spawning import Spawning
from cascade_runtime.agent.stopped_ranks import StoppedRanks
from cascade_runtime.vocabulary.identity import Actor

TICK_S = 0.02
IDLE_TICK_S = 0.25
"""With nothing under way, time alone changes little: messages and deaths wake the agent by themselves."""

_BEAT = pack_frame(Beat())
_FAULT = 70
"""EX_SOFTWARE of sysexits.h."""


class HostAgent:
    """One virtual or real host of a job."""

    def __init__(self, config: JobConfig, index: int) -> None:
        host = self._host = HostState(config, index)
        self._spawning = Spawning(host)
        newcomers = self._newcomers = Newcomers(host, self._spawning.start_newcomer)
        self._stopped = StoppedRanks(host, newcomers)
        self._deaths = Deaths(host, self._stopped, newcomers, self._spawning.stop)
        self._inbox = Inbox(host, newcomers, self._spawning.stop)
        self._connections = Connections(host, newcomers, self._inbox)
        self._leading = Leading(host, newcomers)
        self._effects = Effects(host, newcomers)
        self._cpu_busy = CpuBusy()
        self._next_tick: asyncio.TimerHandle | None = None
        host.post.deliver = self._inbox.on_agent_message
        host.perform, host.tick = self._effects.perform, self._tick

    async def run(self) -> int:
        """Serve until the job is over; the exit code is the agent's, not the script's."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_end_at_once)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._spawning.on_signal)
        if self._host.walker.log:
            self._host.recorder.set_view(self._host.walker.epoch, self._host.walker.view.regime)
        self._host.rows.introduce(self._host.config, self._host.index)
        self._tell_own_stop()
        path = self._host.config.socket_path(self._host.index)
        path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._connections.serve, str(path), limit=1 << 20)
        for other in range(self._host.config.num_hosts):
            if other != self._host.index:
                self._host.post.peers[other] = PeerLink(
                    self._host.config.socket_path(other),
                    self._host.hello(),
                    partial(self._connections.greet, other),
                    partial(self._connections.forget_peer, other),
                )
                if self._host.walker.log:  # it was there before this agent's own end
                    self._host.hosts.down(other, loop.time())
        self._spawning.start_or_adopt(self._deaths.on_exit)
        if self._host.walker.log:
            self._host.watch.install(self._host.walker.view, loop.time())
            self._host.judge.install(self._host.walker.view, self._host.walker.log, loop.time())
            self._host.shipper.start()
        self._deaths.remember()
        self._newcomers.remember()
        self._tick()
        self._sample_cpu()
        self._stopped.look()
        self._beat(loop.time())
        self._host.gpus.start()
        self._look()
        await self._host.finished.wait()
        await self._leave(server)
        return 0

    def _tell_own_stop(self) -> None:
        note = self._host.config.stopped_path(self._host.index)
        with contextlib.suppress(OSError, ValueError):
            stopped_s = float(note.read_text())
            note.unlink()
            before = Actor(self._host.actor.rank, max(0, self._host.actor.incarnation - 1))
            self._host.rows.agent_stopped(before, stopped_s)

    def _beat(self, last: float) -> None:
        now = asyncio.get_running_loop().time()
        if now - last > 3 * BEAT_S:
            self._host.hosts.slept()
        for peer in self._host.post.peers.values():
            peer.send(_BEAT)
        asyncio.get_running_loop().call_later(BEAT_S, self._beat, now)

    def _sample_cpu(self) -> None:
        if self._host.finished.is_set():
            return  # the recorder may be closed already
        loop = asyncio.get_running_loop()
        running = [(p.actor, p.pid) for p in self._host.ranks.values() if p.status is None]
        for actor, percent in self._cpu_busy.sample(loop.time(), running):
            self._host.rows.cpu_busy(actor, percent)
        loop.call_later(CPU_PERIOD_S, self._sample_cpu)

    def _look(self) -> None:
        """Tell and hear how the ranks are doing, and what the detectors make of it."""
        if self._host.finished.is_set():
            return
        loop = asyncio.get_running_loop()
        if self._host.walker.log and not self._host.stopping:
            waits = self._host.watch.waits(loop.time(), self._newcomers.not_level())
            self._host.post.broadcast(waits)
            observe = self._host.config.mode == "observe"
            pids = {p.pid: p.actor for p in self._host.ranks.values()}
            self._host.watch.on_gpus(self._host.gpus.take(), pids, loop.time())
            triggers = self._host.watch.decide(loop.time(), self._leading.is_leader(), observe)
            for trigger in triggers:
                self._host.post.broadcast(trigger)
            if triggers:
                self._tick()
        loop.call_later(self._host.watch.look_s, self._look)

    def _tick(self) -> None:
        """Look at what wants doing now, and again when time may have changed it."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._next_tick is not None:
            self._next_tick.cancel()
        if self._host.walker.log and self._host.walker.view.members and not self._host.stopping:
            self._leading.watch_agents(now)
            if self._host.post.peers and not any(
                peer.up for peer in self._host.post.peers.values()
            ):
                self._effects.read_history()
            self._host.perform()
            if self._leading.is_leader() or self._leading.leader_sleeps(now):
                self._leading.lead(now)
            self._leading.tell_wait(now)
        self._host.perform()
        self._try_finish()
        self._next_tick = loop.call_later(
            TICK_S if self._leading.is_busy() else IDLE_TICK_S, self._tick
        )

    def _try_finish(self) -> None:
        if self._host.walker.log and not self._host.walker.view.members and not self._host.stopping:
            self._stopped.end_all(asyncio.get_running_loop().time())
        if any(p.status is None or p.is_going for p in self._host.ranks.values()):
            return
        if self._host.stopping or not self._host.walker.log:
            self._host.finished.set()
            return
        lost = self._host.config.mode == "observe" and not self._host.judge.alive()
        if lost or not self._host.walker.view.members:
            self._host.finished.set()

    async def _leave(self, server: asyncio.Server) -> None:
        self._host.refusals.tell()
        self._host.gpus.stop()
        server.close()
        for writer in list(self._host.post.connections.values()):
            writer.close()
        for peer in self._host.post.peers.values():
            await peer.close()
        self._host.recorder.close()
        self._host.journal.close()
        self._effects.note_early_end()
        self._host.shipper.finish()  # last: nobody needs the loop any more


def _end_at_once(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A fault of ours (a full disk under the journal, a bug): half an agent would hold up the job.

    The launcher starts it again from its journal.
    """
    error = context.get("exception")
    if not isinstance(error, JournalLost):
        loop.default_exception_handler(context)
        sys.stderr.flush()
        os._exit(_FAULT)
    os._exit(say_why(error))


def say_why(error: JournalLost) -> int:
    """One line on stderr; the exit code of an agent that ends by a fault."""
    sys.stderr.write(f"cascade: an agent ends, because {error}\n")
    sys.stderr.flush()
    return _FAULT
