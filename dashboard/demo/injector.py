"""Does the scenario's faults to the running job: real signals to real processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from cascade_runtime.agent.add_rank import add_rank, next_new_rank
from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.launcher import rank_pids
from cascade_runtime.progress import Progress, read_progress
from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.identity import Actor
from dashboard.demo.faults import Join, Kill, KillAgent, Stop, Strike

POLL_S = 0.0005


class Injector:
    """Watches the victims' progress words in a thread and strikes when the moment has come.

    Args:
        config: the job.
        strikes: what to do.
        say: told of each strike.
        phases: strike at a rank when it is in one of these phases.
    """

    def __init__(
        self,
        config: JobConfig,
        strikes: tuple[Strike, ...],
        say: Callable[[str], None],
        phases: tuple[str, ...] = ("waiting",),
    ) -> None:
        self._config = config
        self._waiting = list(strikes)
        self._to_continue: list[tuple[float, int, Stop]] = []
        self._say = say
        self._phases = phases
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.struck: list[tuple[Strike, int]] = []
        """What was done, with the steps that the watched rank had decided."""

    def __enter__(self) -> Injector:
        """Start watching."""
        self._thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        """Stop watching; whoever is stopped still is let go."""
        self._over.set()
        self._thread.join()
        self._let_go(all_of_them=True)

    def _watch(self) -> None:
        while (self._waiting or self._to_continue) and not self._over.wait(POLL_S):
            for strike in list(self._waiting):
                self._try(strike)
            self._let_go()

    def _try(self, strike: Strike) -> None:
        actor = Actor(strike.rank)
        progress = read_progress(self._config.progress_path(actor))
        if progress is None or not self._is_time(strike, progress):
            return
        if isinstance(strike, Join):
            self._add_rank(strike, progress.decided)
            return
        pid = self._pid(strike)
        if pid is None:
            return
        self._waiting.remove(strike)
        try:
            os.kill(pid, signal.SIGSTOP if isinstance(strike, Stop) else signal.SIGKILL)
        except ProcessLookupError:
            return
        self.struck.append((strike, progress.decided))
        if isinstance(strike, Stop):
            self._to_continue.append((time.monotonic() + strike.seconds, pid, strike))
        self._say(f"{_what(strike)} in step {progress.decided + 1}")

    def _add_rank(self, strike: Join, decided: int) -> None:
        self._waiting.remove(strike)
        rank = next_new_rank(self._config)
        try:
            add_rank(self._config, rank)
        except BadUsage as error:  # the job has just ended: it is told as a fault that was not done
            self._say(str(error))
            return
        self.struck.append((strike, decided))
        self._say(f"added rank {rank} after step {decided}")

    def _is_time(self, strike: Strike, progress: Progress) -> bool:
        if progress.decided < strike.after_step:
            return False
        return isinstance(strike, KillAgent | Join) or progress.phase in self._phases

    def _pid(self, strike: Kill | Stop | KillAgent) -> int | None:
        if not isinstance(strike, KillAgent):
            return rank_pids(self._config).get(Actor(strike.rank))
        try:
            return int(Path(self._config.run_dir, f"agent-{strike.host}.pid").read_text())
        except (OSError, ValueError):
            return None

    def _let_go(self, *, all_of_them: bool = False) -> None:
        now = time.monotonic()
        due = [entry for entry in self._to_continue if all_of_them or entry[0] <= now]
        for entry in due:
            _, pid, stop = entry
            self._to_continue.remove(entry)
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                continue
            self._say(f"let rank {stop.rank} run again (SIGCONT)")


def _what(strike: Kill | Stop | KillAgent) -> str:
    match strike:
        case KillAgent(host=host):
            return f"killed the agent of host {host} (SIGKILL)"
        case Stop(rank=rank):
            return f"stopped rank {rank} (SIGSTOP)"
        case _:
            return f"killed rank {strike.rank} (SIGKILL)"
