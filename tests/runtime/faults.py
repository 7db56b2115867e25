"""Real signals to real processes of a running job, at moments that a test names."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.launcher import Launcher, rank_pids, read_memory
from cascade_runtime.agent.proc_stat import process_state
from cascade_runtime.progress import Fence, read_progress
from cascade_runtime.vocabulary.identity import Actor

POLL_S = 0.0005


class Running:
    """A job that runs: where its processes are, and how to hurt them."""

    def __init__(self, config: JobConfig, launcher: Launcher) -> None:
        self.config = config
        self._launcher = launcher
        self._pids: dict[Actor, int] = {}

    # ---- looking ---------------------------------------------------------------------------------

    def decided(self, rank: int) -> int:
        progress = read_progress(self.config.progress_path(Actor(rank)))
        return progress.decided if progress else -1

    def phase(self, rank: int) -> str:
        progress = read_progress(self.config.progress_path(Actor(rank)))
        return progress.phase if progress else "starting"

    def num_views(self, agent: int = 0) -> int:
        return len(read_memory(self.config, agent).views)

    def walking(self, agent: int = 0) -> bool:
        return read_memory(self.config, agent).walking

    def pid(self, rank: int) -> int | None:
        actor = Actor(rank)
        if actor not in self._pids:
            self._pids.update(rank_pids(self.config))
        return self._pids.get(actor)

    def newest(self, rank: int) -> Actor:
        """The newest incarnation of the rank that was started."""
        return max(actor for actor in rank_pids(self.config) if actor.rank == rank)

    def decided_newest(self, rank: int) -> int:
        """Of the newest incarnation; below 1 until it has the state of a member."""
        progress = read_progress(self.config.progress_path(self.newest(rank)))
        return progress.decided if progress else -1

    def incarnation(self, rank: int) -> int:
        return self.newest(rank).incarnation

    def proposed_with(self, rank: int) -> bool:
        """A view that lets the rank in is accepted somewhere, and not known to be committed."""
        for agent in range(self.config.num_hosts):
            memory = read_memory(self.config, agent)
            if memory.accepted is not None and memory.accepted[1].epoch >= len(memory.views):
                return any(actor.rank == rank for actor in memory.accepted[1].joined)
        return False

    def has_joined(self, rank: int, incarnation: int = 1) -> bool:
        return any(
            Actor(rank, incarnation) in view.joined
            for agent in range(self.config.num_hosts)
            for view in read_memory(self.config, agent).views
        )

    def signal_newest(self, rank: int, number: int) -> bool:
        pid = rank_pids(self.config)[self.newest(rank)]
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True

    def state(self, rank: int) -> str | None:
        pid = self.pid(rank)
        return process_state(pid) if pid is not None else None

    # ---- striking --------------------------------------------------------------------------------

    def signal(self, rank: int, number: int) -> bool:
        pid = self.pid(rank)
        if pid is None:
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True

    def signal_agent(self, index: int, number: int) -> bool:
        pid = self._launcher.agent_pids.get(index)
        if pid is None:
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True


@dataclass
class Strike:
    """One fault: when, what; ``what`` is called once and gives False when it could not be done."""

    when: Callable[[Running], bool]
    what: Callable[[Running], bool | None]
    name: str = ""


@dataclass
class Faults:
    """Watches the job in a thread and strikes when the moments come, in their order."""

    strikes: list[Strike]
    struck: list[tuple[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, running: Running) -> None:
        self._thread = threading.Thread(target=self._watch, args=(running,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        assert self._thread is not None
        self._thread.join()

    def _watch(self, running: Running) -> None:
        for strike in self.strikes:
            while not strike.when(running):
                if self._over.wait(POLL_S):
                    return
            if strike.what(running) is not False:
                self.struck.append((strike.name, time.monotonic()))


def after_step(rank: int, step: int, *phases: str) -> Callable[[Running], bool]:
    """The rank has decided ``step`` and is in one of ``phases`` (any, when none is named)."""

    def when(job: Running) -> bool:
        return job.decided(rank) >= step and (not phases or job.phase(rank) in phases)

    return when


def after(seconds: float) -> Callable[[Running], bool]:
    """So long after the last strike."""
    began: list[float] = []

    def when(job: Running) -> bool:
        del job
        began.append(time.monotonic())
        return began[-1] - began[0] >= seconds

    return when


def fenced(rank: int) -> Callable[[Running], bool]:
    """The rank's agent has fenced it."""

    def when(job: Running) -> bool:
        try:
            return Fence(job.config.progress_path(Actor(rank))).is_up
        except OSError:
            return False

    return when


def _each(job: Running, ranks: tuple[int, ...], number: int) -> bool:
    """To all of them, also where one is gone already."""
    done = [job.signal(rank, number) for rank in ranks]
    return all(done)


def _each_newest(job: Running, ranks: tuple[int, ...]) -> bool:
    done = [job.signal_newest(rank, signal.SIGKILL) for rank in ranks]
    return all(done)


def kill(*ranks: int) -> Callable[[Running], bool]:
    return lambda job: _each(job, ranks, signal.SIGKILL)


def stop(*ranks: int) -> Callable[[Running], bool]:
    return lambda job: _each(job, ranks, signal.SIGSTOP)


def go_on(*ranks: int) -> Callable[[Running], bool]:
    return lambda job: _each(job, ranks, signal.SIGCONT)


def kill_newest(*ranks: int) -> Callable[[Running], bool]:
    """The newest incarnation of each."""
    return lambda job: _each_newest(job, ranks)


def stop_newest(rank: int) -> Callable[[Running], bool]:
    return lambda job: job.signal_newest(rank, signal.SIGSTOP)


def comes_back(rank: int, incarnation: int = 1) -> Callable[[Running], bool]:
    """The rank was started again and listens for who serves it."""
    return lambda job: job.config.join_path(Actor(rank, incarnation)).exists()


def is_back(rank: int, incarnation: int = 1) -> Callable[[Running], bool]:
    """A view with the rank's new incarnation is committed."""
    return lambda job: job.has_joined(rank, incarnation)


def being_let_in(rank: int) -> Callable[[Running], bool]:
    """A view with it is proposed (or it is in already: the moment was too short)."""
    return lambda job: job.proposed_with(rank) or job.has_joined(rank)


def kill_agent(index: int) -> Callable[[Running], bool]:
    return lambda job: job.signal_agent(index, signal.SIGKILL)


def stop_agent(index: int) -> Callable[[Running], bool]:
    return lambda job: job.signal_agent(index, signal.SIGSTOP)


def kill_host(index: int) -> Callable[[Running], bool]:
    """An agent and all its ranks, at once."""

    def what(job: Running) -> bool:
        done = job.signal_agent(index, signal.SIGKILL)
        for rank in job.config.ranks_of(index):
            with suppress(OSError):
                job.signal(rank, signal.SIGKILL)
        return done

    return what
