"""Does the scenario's faults to the running job: real signals to real processes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.launcher import rank_pids
from cascade_runtime.progress import read_progress
from cascade_runtime.vocabulary.identity import Actor
from dashboard.demo.scenarios import Kill

POLL_S = 0.0005


class Injector:
    """Watches the victims' progress words in a thread and strikes when the moment has come.

    Args:
        config: the job.
        kills: what to do.
        say: told of each strike.
        phases: strike when the victim is in one of these phases.
    """

    def __init__(
        self,
        config: JobConfig,
        kills: tuple[Kill, ...],
        say: Callable[[str], None],
        phases: tuple[str, ...] = ("waiting",),
    ) -> None:
        self._config = config
        self._waiting = list(kills)
        self._say = say
        self._phases = phases
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.struck: list[tuple[Kill, int]] = []
        """Kills done, with the steps the victim had decided."""

    def __enter__(self) -> Injector:
        """Start watching."""
        self._thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        """Stop watching."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while self._waiting and not self._over.wait(POLL_S):
            for kill in list(self._waiting):
                self._try(kill)

    def _try(self, kill: Kill) -> None:
        actor = Actor(kill.rank)
        progress = read_progress(self._config.progress_path(actor))
        if progress is None or progress.decided < kill.after_step:
            return
        if progress.phase not in self._phases:
            return
        pid = rank_pids(self._config).get(actor)
        if pid is None:
            return
        self._waiting.remove(kill)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.struck.append((kill, progress.decided))
        self._say(f"killed rank {kill.rank} (SIGKILL) in step {progress.decided + 1}")
