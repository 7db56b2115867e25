"""One host agent of two, in this process: its parts on a socket of its own, and no peer that answers."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.connections import Connections
from cascade_runtime.agent.deaths import Deaths
from cascade_runtime.agent.effects import Effects
from cascade_runtime.agent.host_state import HostState
from cascade_runtime.agent.inbox import Inbox
from cascade_runtime.agent.newcomers import Newcomers
from cascade_runtime.agent.rank_process import RankProcess
from cascade_runtime.agent.stopped_ranks import StoppedRanks
from cascade_runtime.agent.walk_effects import Persist
from cascade_runtime.vocabulary.identity import Actor
from tests.agent.facts import view

ME = Actor(0)
DEADLINE_S = 20.0


class LoneAgent:
    """Agent 0 of a job of ranks 0, 1, 2 on two hosts; its rank 0 is this process.

    Args:
        folder: of the job. A second agent in the same one is the first one's next life.
        has_begun: the first view is committed.
        start: starts a newcomer.
    """

    def __init__(
        self,
        folder: Path,
        *,
        has_begun: bool = True,
        start: Callable[[Actor], RankProcess | None] = lambda actor: None,
        respawn: int = 2,
    ) -> None:
        for name in ("trace", "run"):
            (folder / name).mkdir(exist_ok=True)
        self.config = JobConfig(
            run_id="run", name="job", num_ranks=3, num_hosts=2, mode="enforce", policy="default",
            trace_dir=str(folder / "trace"), run_dir=str(folder / "run"), host="here",
            command=["script.py"], master_port=1, respawn=respawn, respawn_delay_s=0.0,
        )  # fmt: skip
        self.host = host = HostState(self.config, 0)
        self.newcomers = newcomers = Newcomers(host, start)
        self.deaths = Deaths(host, StoppedRanks(host, newcomers), newcomers, lambda: None)
        inbox = Inbox(host, newcomers, lambda: None)
        self.serve = Connections(host, newcomers, inbox).serve
        host.post.deliver = inbox.on_agent_message
        host.perform, host.tick = Effects(host, newcomers).perform, lambda: None
        self.process(ME)
        if has_begun and not host.walker.log:
            host.walker.install_first(view(0, 1, 2))
            for effect in host.walker.take():
                if isinstance(effect, Persist):
                    host.journal.append(effect.what, effect.value)
        if host.walker.log:
            host.judge.install(host.walker.view, host.walker.log, 0.0)
        self.faults: list[dict[str, Any]] = []
        """What would have ended the agent."""

    def process(self, actor: Actor, pid: int | None = None) -> RankProcess:
        """A rank of this host, by default this process."""
        spawner: Any = None
        made = RankProcess(actor, os.getpid() if pid is None else pid, None, spawner)
        self.host.ranks[actor.rank] = made
        return made

    def run(self, test: Callable[[Path], Awaitable[None]]) -> None:
        """While the agent serves its socket, whose path is the test's argument."""

        async def main() -> None:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: self.faults.append(context))
            path = self.config.socket_path(0)
            server = await asyncio.start_unix_server(self.serve, str(path))
            async with asyncio.timeout(DEADLINE_S):
                await test(path)
                await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
                for _ in range(5):  # transports end by callbacks
                    await asyncio.sleep(0)
                gc.collect()
            server.close()

        asyncio.run(main())
        self.host.recorder.close()
        self.host.journal.close()
