"""Random kills and stops of ranks, agents and whole hosts: drawn by number, played, and judged."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from dataclasses import dataclass

from cascade_runtime.agent.launcher import rank_pids
from tests.runtime import faults as do
from tests.runtime.checks import last_step_before, problems
from tests.runtime.faults import Faults, Running, Strike
from tests.runtime.jobs import FinishedJob, JobRunner

MORE_STEPS = 20
"""Every survivor goes on for at least so many steps after the last fault."""

PAUSE_MS = 4
HANG_S = 150.0
HUNG = "hung"


@dataclass(frozen=True)
class Schedule:
    """One job and what is done to it."""

    ranks: int
    hosts: int
    strikes: list[Strike]
    lost: frozenset[int]
    """Ranks that are killed, or stopped for good."""
    paused: frozenset[int]
    """Ranks that are stopped for a while: they go on, or leave when they were fenced."""
    steps: int

    def __str__(self) -> str:
        names = "; ".join(s.name for s in self.strikes if s.name)
        return f"{self.ranks} ranks on {self.hosts} hosts: {names}"


def draw(seed: int, number: int) -> Schedule:
    """The schedule of this number."""
    chance = random.Random(f"{seed}/{number}")
    ranks = chance.randint(2, 8)
    hosts = chance.randint(1, min(4, ranks))
    watcher = chance.randrange(ranks)  # the one rank that nothing is done to tells the time
    able = [r for r in range(ranks) if r != watcher]
    strikes: list[Strike] = []
    lost: set[int] = set()
    paused: set[int] = set()
    step = 0
    for _ in range(chance.randint(1, 3)):
        step += chance.randint(1, 9)
        phases = chance.choice([(), ("waiting",), ("forward",), ("backward",)])
        when = do.after_step(watcher, step, *phases)
        what = chance.choice(
            ["kill", "kill", "stop", "stop", "pause", "both", "agent", "doze", "host"]
        )
        left = [r for r in able if r not in lost | paused]
        if what in ("agent", "doze"):
            index = chance.randrange(hosts)
            act = do.kill_agent(index) if what == "agent" else do.stop_agent(index)
            strikes.append(Strike(when, act, f"{what} {index} after step {step}"))
            continue
        if not left:
            continue
        victim = chance.choice(left)
        if what == "host":
            index = next(i for i in range(hosts) if victim in _ranks_of(i, ranks, hosts))
            mine = _ranks_of(index, ranks, hosts)
            if watcher in mine:
                what = "kill"
            else:
                lost |= set(mine)
                name = f"host {index} (ranks {mine}) after step {step}"
                strikes.append(Strike(when, do.kill_host(index), name))
                continue
        if what == "both" and len(left) > 1:
            pair = chance.sample(left, 2)
            lost |= set(pair)
            act = chance.choice([do.kill, do.stop])
            strikes.append(Strike(when, act(*pair), f"{act.__name__} {pair} after step {step}"))
        elif what == "pause":
            paused.add(victim)
            pause_s = chance.choice([0.01, 0.05, 0.1, 0.2, 0.5, 1.5])
            name = f"stop {victim} after step {step} for {pause_s} s"
            strikes.append(Strike(when, do.stop(victim), name))
            strikes.append(Strike(do.after(pause_s), do.go_on(victim)))
        else:
            lost.add(victim)
            act = do.stop if what == "stop" else do.kill
            strikes.append(Strike(when, act(victim), f"{act.__name__} {victim} after step {step}"))
    return Schedule(ranks, hosts, strikes, frozenset(lost), frozenset(paused), step + 45)


def _ranks_of(index: int, ranks: int, hosts: int) -> list[int]:
    return list(range(index * ranks // hosts, (index + 1) * ranks // hosts))


@dataclass
class Played:
    """A schedule's job, judged."""

    wrong: list[str]
    """What was wrong, each a sentence; see ``HUNG`` and ``checks.FORKED``."""
    job: FinishedJob
    went_on: int | None = None
    """The fewest steps that a survivor made after the last fault; None where that is not known."""
    parted: int = 0
    """Views in which cohorts were apart."""


def play(runner: JobRunner, schedule: Schedule) -> Played:
    """Run it and judge the job that it left.

    Raises:
        KeyboardInterrupt: somebody ended it.
    """
    faults = Watched(schedule.strikes)
    job = runner.run(
        "--steps", str(schedule.steps), "--dtype", "float64", "--pause-ms", str(PAUSE_MS),
        ranks=schedule.ranks, hosts=schedule.hosts, faults=faults,
    )  # fmt: skip
    if faults.hung:
        return Played([f"{HUNG} for {HANG_S:.0f} s and was ended"], job)
    if job.outcome.stopped_by:  # the launcher took the signal; nothing is wrong with the job
        raise KeyboardInterrupt
    survivors = [r for r in range(schedule.ranks) if r not in schedule.lost | schedule.paused]
    wrong = problems(job, schedule.steps, survivors)
    for rank in schedule.paused - set(job.outcome.finished):
        status = job.outcome.statuses.get(rank)
        if status not in (75, -signal.SIGKILL):  # ended by itself, or with the job before it could
            wrong.append(f"rank {rank} was fenced and ended with {status}")
    struck = [at_s for name, at_s in faults.struck if name]
    if wrong or not struck:
        return Played(wrong, job)
    at_ns = int(struck[-1] * 1e9)
    went_on = min(schedule.steps - last_step_before(job, at_ns, r) for r in survivors)
    if went_on < MORE_STEPS:
        wrong.append(f"only {went_on} steps after the last fault")
    return Played(wrong, job, went_on)


class Watched(Faults):
    """Faults, and an end to a job that hangs."""

    hung = False

    def start(self, running: Running) -> None:
        """As Faults; whoever still runs after HANG_S is ended."""
        super().start(running)
        self._clock = threading.Timer(HANG_S, self._end, (running,))
        self._clock.start()

    def stop(self) -> None:
        """The job has ended."""
        self._clock.cancel()
        super().stop()

    def _end(self, running: Running) -> None:
        self.hung = True
        for rank in range(running.config.num_ranks):
            running.signal(rank, signal.SIGCONT)
        for index in range(running.config.num_hosts):
            running.signal_agent(index, signal.SIGCONT)
            running.signal_agent(index, signal.SIGTERM)
        time.sleep(8.0)
        for pid in rank_pids(running.config).values():
            with_pid_gone(pid)


def with_pid_gone(pid: int) -> None:
    """End a rank that did not end by itself."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
