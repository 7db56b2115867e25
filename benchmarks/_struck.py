"""A real job of busy ranks with one fault done to it, for benchmarks that ask how soon it is answered."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.launcher import Launcher, make_config, rank_pids
from cascade_runtime.agent.outcome import Outcome
from cascade_runtime.progress import read_progress
from cascade_runtime.vocabulary.identity import Actor
from collector.trace.trace_folder import open_trace

JOB = Path(__file__).with_name("_busy_job.py")
ROOT = Path(__file__).parents[1]
NUM_RANKS = 4
VICTIM = 2
POLL_S = 0.0005


@dataclass
class Struck:
    """A job that has ended: when it was struck (CLOCK_MONOTONIC), and its rows by table."""

    at_ns: int
    outcome: Outcome
    rows: dict[str, list[dict[str, Any]]]


Strike = Callable[[JobConfig, Launcher], None]


def kill_rank(config: JobConfig, launcher: Launcher) -> None:
    """SIGKILL to the victim."""
    del launcher
    os.kill(rank_pids(config)[Actor(VICTIM)], signal.SIGKILL)


def stop_rank(config: JobConfig, launcher: Launcher) -> None:
    """SIGSTOP to the victim."""
    del launcher
    os.kill(rank_pids(config)[Actor(VICTIM)], signal.SIGSTOP)


def kill_host(config: JobConfig, launcher: Launcher) -> None:
    """SIGKILL to the victim's agent and to its ranks, as when a machine is gone."""
    index = config.host_of(VICTIM)
    pids = rank_pids(config)
    os.kill(launcher.agent_pids[index], signal.SIGKILL)
    for rank in config.ranks_of(index):
        os.kill(pids[Actor(rank)], signal.SIGKILL)


def run(
    arguments: list[str],
    strike: Strike | None,
    *,
    after_step: int,
    num_hosts: int,
    zygote: Path,
    tables: tuple[str, ...],
) -> Struck:
    """Runs the job, strikes once rank 0 has decided ``after_step``, reads what it left."""
    folder = Path(tempfile.mkdtemp(prefix="struck-"))
    try:
        config = make_config(
            [str(JOB), *arguments],
            num_ranks=NUM_RANKS,
            num_hosts=num_hosts,
            trace_dir=folder / "trace",
            env={"PYTHONPATH": str(ROOT)},
            zygote=zygote,
        )
        launcher = _OneLife(config) if strike is kill_host else Launcher(config)
        with _striking(config, launcher, strike, after_step) as at_ns:
            outcome = launcher.run()
        shutil.rmtree(config.run_dir, ignore_errors=True)
        with open_trace(folder / "trace") as trace:
            rows = {name: trace.table(name).to_pylist() for name in tables}
        return Struck(at_ns[0] if at_ns else 0, outcome, rows)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _striking(
    config: JobConfig, launcher: Launcher, strike: Strike | None, after_step: int
) -> Iterator[list[int]]:
    at_ns: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(POLL_S):
            progress = read_progress(config.progress_path(Actor(0)))
            if progress is None or progress.decided < after_step or strike is None:
                continue
            at_ns.append(time.monotonic_ns())
            with contextlib.suppress(ProcessLookupError):
                strike(config, launcher)
            return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield at_ns
    finally:
        over.set()
        thread.join()


class _OneLife(Launcher):
    """Starts no agent twice, as where a whole machine is gone."""

    def _on_agent_end(self, index: int, code: int) -> None:
        del code
        self._done.add(index)
