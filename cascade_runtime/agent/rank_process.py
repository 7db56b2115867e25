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
from cascade_runtime.agent.proc_stat import look_at
from cascade_runtime.agent.zygote_client import SpawnRequest, ZygoteClient
from cascade_runtime.vocabulary.identity import Actor


def rank_environment(config: JobConfig, index: int, actor: Actor) -> dict[str, str]:
    """The variables of torchrun and ours, over the launcher's own environment."""
    local = config.ranks_of(index)
    if actor.rank not in local:  # new ones count on
        local += range(config.first_new_rank + index, actor.rank + 1, config.num_hosts)
    env = dict(os.environ) | config.env
    env.setdefault("OMP_NUM_THREADS", "1")
    env.update(
        RANK=str(actor.rank),
        LOCAL_RANK=str(local.index(actor.rank)),
        WORLD_SIZE=str(config.world_size_of(actor.rank)),
        LOCAL_WORLD_SIZE=str(len(local)),
        GROUP_RANK=str(index),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(config.master_port),
        CASCADE_RUN_DIR=config.run_dir,
        CASCADE_AGENT=str(index),
        CASCADE_INCARNATION=str(actor.incarnation),
    )
    if config.comes_later(actor):
        env["CASCADE_JOIN"] = "1"
    return env


STATUS_PATIENCE_S = 0.05
"""How long to wait for the exit status of a process that is not our child, once it has ended."""

WATCH_AGAIN_S = 0.05

_GENERATIONS = 32
"""Between a rank's process and the one in it that trains, at most."""


class Spawner:
    """Starts ranks, afresh or from a zygote, and knows how those that are not children ended."""

    def __init__(self, config: JobConfig, index: int) -> None:
        self._config = config
        self._index = index
        self._client = ZygoteClient(Path(config.zygote)) if config.zygote else None

    def spawn(self, actor: Actor) -> RankProcess:
        """Start the user's script as this rank."""
        config = self._config
        environment = rank_environment(config, self._index, actor)
        if self._client is not None:
            request = SpawnRequest(config.command, environment, str(Path.cwd()))
            return RankProcess(actor, self._client.spawn(request), None, self)
        command = [sys.executable, "-m", "cascade_runtime.bootstrap", *config.command]
        child = subprocess.Popen(command, env=environment)
        return RankProcess(actor, child.pid, child, self)

    def adopt(self, actor: Actor, pid: int) -> RankProcess:
        """A rank that an earlier incarnation of this agent started."""
        return RankProcess(actor, pid, None, self)

    def status_of(self, process: RankProcess) -> int | None:
        """Exit status of an ended process that is not our child; None when nobody has told it yet."""
        if self._client is not None:
            self._client.read_exits()
            if process.pid in self._client.exits:
                return self._client.exits[process.pid]
        try:
            return int(self._config.exit_path(process.actor).read_text())
        except (OSError, ValueError):
            return None


class RankProcess:
    """One rank's process, watched by its pidfd."""

    def __init__(
        self, actor: Actor, pid: int, child: subprocess.Popen[bytes] | None, spawner: Spawner
    ) -> None:
        self.actor = actor
        self.pid = pid
        self.status: int | None = None
        """Exit status: >= 0 the code, < 0 minus the signal; None while it runs."""
        self.is_going = False
        """It runs none of its code any more, and the kernel has not yet taken all of it down."""
        self._child = child
        self._spawner = spawner
        self._pidfd = -1
        self._ended_at = 0.0
        self._on_exit: Callable[[RankProcess], None] | None = None

    def watch(self, on_exit: Callable[[RankProcess], None]) -> None:
        """Call ``on_exit`` once, when it has ended: by the pidfd, unless ``fails`` was called before."""
        loop = asyncio.get_running_loop()
        self._on_exit = on_exit
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            loop.call_soon(self._ended, on_exit)
            return
        except OSError:  # no descriptor is left just now
            loop.call_later(WATCH_AGAIN_S, self.watch, on_exit)
            return
        loop.add_reader(self._pidfd, self._ended, on_exit)

    def _ended(self, on_exit: Callable[[RankProcess], None]) -> None:
        loop = asyncio.get_running_loop()
        if self._pidfd >= 0:
            loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        if self.is_going:
            self.is_going = False
            if self._child is not None:
                self._child.wait()
            return
        if self._child is not None:
            self.status = self._child.wait()
        else:
            self._ended_at = self._ended_at or loop.time()
            self.status = self._spawner.status_of(self)
            if self.status is None:
                # A death waits for nobody's word: the zygote may not run for tens of milliseconds.
                look = look_at(self.pid)
                self.status = None if look is None else look.failed
            if self.status is None:
                if loop.time() - self._ended_at < STATUS_PATIENCE_S:
                    loop.call_later(0.002, self._ended, on_exit)
                    return
                self.status = -signal.SIGKILL  # nobody can tell any more
        on_exit(self)

    def fails(self, status: int) -> None:
        """It is on its way out (proc_stat.py); the pidfd would tell so much later."""
        if self.status is None and self._on_exit is not None:
            self.status, self.is_going = status, True
            self._on_exit(self)

    def signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.status is not None:
            return
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return


def runs_in(pid: int, root: int) -> bool:
    """Whether process ``pid`` is ``root`` or was started by it (a script may start the one that trains)."""
    for _ in range(_GENERATIONS):
        if pid == root:
            return True
        try:
            text = Path(f"/proc/{pid}/stat").read_bytes()
            pid = int(text[text.rindex(b")") + 2 :].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False


def describe_status(status: int) -> str:
    """``SIGKILL`` or ``exit code 3``."""
    if status < 0:
        try:
            return signal.Signals(-status).name
        except ValueError:
            return f"signal {-status}"
    return f"exit code {status}"
