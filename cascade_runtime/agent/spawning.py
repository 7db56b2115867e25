"""Starts the rank processes of a host, adopts those of an earlier incarnation of the agent, stops all."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from cascade_runtime.agent.host_state import HostState
from cascade_runtime.agent.rank_process import RankProcess, Spawner
from cascade_runtime.vocabulary.identity import Actor

STOP_GRACE_S = 5.0


class Spawning:
    """The processes of this host."""

    def __init__(self, host: HostState) -> None:
        self._host = host

    def start_or_adopt(self, on_exit: Callable[[RankProcess], None]) -> None:
        """Start this host's ranks, or watch those that an earlier incarnation started."""
        memory, spawner = self._host.journal.memory, Spawner(self._host.config, self._host.index)
        for rank in self._host.config.ranks_of(self._host.index):
            if rank in memory.spawned:
                process = spawner.adopt(*memory.spawned[rank])
            elif memory.views:
                continue  # the job runs without it
            else:
                process = spawner.spawn(Actor(rank))
                self._host.journal.append("spawned", (process.actor, process.pid))
            self._host.ranks[rank] = process
        exited = dict(memory.exited)
        for process in self._host.ranks.values():
            actor = process.actor
            if actor not in self._host.certified or (
                actor in self._host.fenced and actor not in exited
            ):
                process.watch(on_exit)
            else:
                process.status = exited.get(actor, -signal.SIGKILL)

    def stop(self) -> None:
        """End the job: SIGTERM to all, SIGKILL to those that linger."""
        if self._host.stopping:
            return
        self._host.stopping = True
        for process in self._host.ranks.values():
            process.signal(signal.SIGTERM)
        asyncio.get_running_loop().call_later(STOP_GRACE_S, self._kill)

    def _kill(self) -> None:
        for process in self._host.ranks.values():
            process.signal(signal.SIGKILL)
