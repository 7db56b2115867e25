"""Starting, adopting and watching the rank processes of one host."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.vocabulary.identity import Actor


def rank_environment(config: JobConfig, index: int, actor: Actor) -> dict[str, str]:
    """torchrun's variables and ours, over the launcher's own environment."""
    local = config.ranks_of(index)
    env = dict(os.environ) | config.env
    env.setdefault("OMP_NUM_THREADS", "1")
    env.update(
        RANK=str(actor.rank),
        LOCAL_RANK=str(local.index(actor.rank)),
        WORLD_SIZE=str(config.num_ranks),
        LOCAL_WORLD_SIZE=str(len(local)),
        GROUP_RANK=str(index),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(config.master_port),
        CASCADE_RUN_DIR=config.run_dir,
        CASCADE_AGENT=str(index),
        CASCADE_INCARNATION=str(actor.incarnation),
    )
    return env


class RankProcess:
    """One rank: a child, or after an agent's restart a process that was started before."""

    def __init__(self, actor: Actor, pid: int, child: subprocess.Popen[bytes] | None) -> None:
        self.actor = actor
        self.pid = pid
        self.status: int | None = None
        """Exit status: >= 0 the code, < 0 minus the signal; None while it runs."""
        self._child = child
        self._pidfd = -1

    @classmethod
    def spawn(cls, config: JobConfig, index: int, actor: Actor) -> RankProcess:
        """Start the user's script as this rank."""
        command = [sys.executable, "-m", "cascade_runtime.bootstrap", *config.command]
        child = subprocess.Popen(command, env=rank_environment(config, index, actor))
        return cls(actor, child.pid, child)

    def watch(self, on_exit: Callable[[RankProcess], None], exit_note: Path) -> None:
        """Call ``on_exit`` once it has ended; the kernel tells by the pidfd, within milliseconds."""
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            self._ended(on_exit, exit_note)
            return
        loop = asyncio.get_running_loop()
        loop.add_reader(self._pidfd, self._ended, on_exit, exit_note)

    def _ended(self, on_exit: Callable[[RankProcess], None], exit_note: Path) -> None:
        if self._pidfd >= 0:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        if self._child is not None:
            self.status = self._child.wait()
        else:
            # Not our child: the launcher reaped it and left a note; without one the status is lost.
            try:
                self.status = int(exit_note.read_text())
            except (OSError, ValueError):
                self.status = -signal.SIGKILL
        on_exit(self)

    def signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.status is not None:
            return
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return


def describe_status(status: int) -> str:
    """``SIGKILL`` or ``exit code 3``."""
    if status < 0:
        try:
            return signal.Signals(-status).name
        except ValueError:
            return f"signal {-status}"
    return f"exit code {status}"
