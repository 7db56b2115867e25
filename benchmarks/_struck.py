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


Aim = Callable[[JobConfig, Launcher], list[int]]
"""Looks up, before the moment comes, the processes that the signal goes to."""


@dataclass(frozen=True)
class Strike:
    """A signal and whom it hits; sent in a loop of its own, nothing else happens after the clock is read."""

    number: signal.Signals
    aim: Aim
    one_life: bool = False
    """Agents that end are not started again, as where a whole machine is gone."""


def _victim(config: JobConfig, launcher: Launcher) -> list[int]:
    del launcher
    return [rank_pids(config)[Actor(VICTIM)]]


def _victims_host(config: JobConfig, launcher: Launcher) -> list[int]:
    """Its agent and its ranks."""
    index = config.host_of(VICTIM)
    pids = rank_pids(config)
    return [launcher.agent_pids[index], *(pids[Actor(r)] for r in config.ranks_of(index))]


KILL_RANK = Strike(signal.SIGKILL, _victim)
STOP_RANK = Strike(signal.SIGSTOP, _victim)
KILL_HOST = Strike(signal.SIGKILL, _victims_host, one_life=True)


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
        one_life = strike is not None and strike.one_life
        launcher = _OneLife(config) if one_life else Launcher(config)
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
        pids: list[int] = []
        while strike is not None and not over.wait(POLL_S):
            progress = read_progress(config.progress_path(Actor(0)))
            if progress is None or progress.decided < 1:
                continue
            # Reading the journals takes milliseconds on a busy machine, and is not the job's to answer for.
            pids = pids or strike.aim(config, launcher)
            if progress.decided < after_step:
                continue
            at_ns.append(time.monotonic_ns())
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, strike.number)
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
