"""Starts the rank processes of a host, adopts those of an earlier incarnation of the agent, stops all."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from cascade_runtime.agent.host_state import HostState
from cascade_runtime.agent.rank_process import RankProcess, Spawner
from cascade_runtime.agent.stopping import noted_stop
from cascade_runtime.vocabulary.identity import Actor

STOP_GRACE_S = 5.0
ASKED_STOP_GRACE_S = 30.0
"""When a person ends the job: a script may want to save something; a second Ctrl-C does not wait."""


class Spawning:
    """The processes of this host."""

    def __init__(self, host: HostState) -> None:
        self._host = host
        self._spawner = Spawner(host.config, host.index)
        self._on_exit: Callable[[RankProcess], None] | None = None

    def start_or_adopt(self, on_exit: Callable[[RankProcess], None]) -> None:
        """Start this host's ranks, or watch those that an earlier incarnation started."""
        self._on_exit = on_exit
        memory, spawner = self._host.journal.memory, self._spawner
        for rank in self._host.config.ranks_of(self._host.index):
            if rank in memory.spawned:
                process = spawner.adopt(*memory.spawned[rank])
            elif memory.views:
                continue  # the job runs without it
            else:
                process = spawner.spawn(Actor(rank))
                self._host.journal.append("spawned", (process.actor, process.pid))
            self._host.ranks[rank] = process
        for rank in memory.spawned.keys() - self._host.ranks.keys():  # added while the job ran
            self._host.ranks[rank] = spawner.adopt(*memory.spawned[rank])
            self._host.shipper.take_in(rank)
        exited = dict(memory.exited)
        for process in self._host.ranks.values():
            actor = process.actor
            if actor not in self._host.certified or (
                actor in self._host.fenced and actor not in exited
            ):
                process.watch(on_exit)
            else:
                process.status = exited.get(actor, -signal.SIGKILL)

    def start_newcomer(self, actor: Actor) -> RankProcess | None:
        """Start the script to join the job as it runs; None when the job is being ended."""
        if self._host.stopping or self._host.finished.is_set() or self._on_exit is None:
            return None
        process = self._spawner.spawn(actor)
        self._host.journal.append("spawned", (process.actor, process.pid))
        self._host.ranks[actor.rank] = process
        self._host.shipper.take_in(actor.rank)
        process.watch(self._on_exit)
        return process

    def stop(self) -> None:
        """End the job: SIGTERM to all, SIGKILL to those that linger."""
        self._stop(signal.SIGTERM, STOP_GRACE_S)

    def on_signal(self) -> None:
        """Somebody ends this host, or the whole job: then its ranks get the signal that it got."""
        number = self._host.stopped_by = noted_stop(self._host.config)
        if number:
            self._stop(number, ASKED_STOP_GRACE_S)
        else:
            self.stop()

    def _stop(self, number: int, grace_s: float) -> None:
        if self._host.stopping:
            return
        self._host.stopping = True
        for process in self._host.ranks.values():
            # Python that is still importing would answer SIGINT with a traceback.
            runs = self._host.config.running_path(process.actor).exists()
            process.signal(number if runs else signal.SIGTERM)
            process.signal(signal.SIGCONT)  # who is stopped hears nothing
        asyncio.get_running_loop().call_later(grace_s, self._kill)

    def _kill(self) -> None:
        for process in self._host.ranks.values():
            process.signal(signal.SIGKILL)
