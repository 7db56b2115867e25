"""Random delays, short stops and kills while a straggler may step by itself: drawn by number."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cascade_runtime.agent.launcher import read_memory
from tests.runtime import faults as do
from tests.runtime.faults import Running, Strike

APART_PATIENCE_S = 4.0
"""A strike for when cohorts are apart is done all the same after this."""

LOOK_S = 0.02


@dataclass(frozen=True)
class Delayed:
    """One job, who is slow when, and what is done to it."""

    ranks: int
    hosts: int
    plan: list[list[Any]]
    """Rank, first and last of its own steps, how many times as slow, and where in the step."""
    step_ms: float
    options: list[str]
    strikes: list[Strike]
    lost: frozenset[int]
    paused: frozenset[int]
    """Stopped for a while: they go on, or leave when they were fenced."""

    def __str__(self) -> str:
        slow = [
            f"slow {who} {times:.0f}x {where} {first}-{last}"
            for who, first, last, times, where in self.plan
        ]
        names = "; ".join([*slow, *(s.name for s in self.strikes if s.name)])
        options = "".join(f" {o}" for o in self.options)
        return f"{self.ranks} ranks on {self.hosts} hosts{options}: {names}"


def draw(seed: int, number: int) -> Delayed:
    """The schedule of this number."""
    chance = random.Random(f"delays/{seed}/{number}")
    ranks = chance.randint(3, 6)
    hosts = chance.randint(1, 3)
    step_ms = chance.choice([8.0, 12.0, 20.0])
    options = [o for o in ("--adamw", "--clamps") if chance.random() < 0.35]
    slow = chance.sample(range(ranks), chance.choice([1, 1, 2]))
    plan = []
    for rank in slow:
        first = chance.randint(12, 26)
        for _ in range(chance.choice([1, 1, 2])):
            times = chance.choice([4.0, 6.0, 6.0, 10.0, 120.0])
            num = 1 if times > 100 else int(chance.uniform(0.6, 3.0) * 1000 / (times * step_ms))
            where = chance.choice(["data", "forward", "after"])
            plan.append([rank, first, first + num, times, where])
            first += num + chance.randint(8, 40)
    strikes: list[Strike] = []
    lost: set[int] = set()
    paused: set[int] = set()
    watcher = chance.choice([r for r in range(ranks) if r not in slow])
    for _ in range(chance.randint(0, 2)):
        _add_strike(chance, ranks, hosts, slow, watcher, strikes, lost, paused)
    return Delayed(
        ranks, hosts, plan, step_ms, options, strikes, frozenset(lost), frozenset(paused)
    )


def _add_strike(
    chance: random.Random, ranks: int, hosts: int, slow: list[int], watcher: int,
    strikes: list[Strike], lost: set[int], paused: set[int],
) -> None:  # fmt: skip
    """One more fault, to somebody whom nothing has happened to, once cohorts are apart."""
    more = chance.randint(0, 12)
    phases = chance.choice([(), ("waiting",), ("forward",), ("backward",), ("halted",)])
    left = [r for r in range(ranks) if r not in lost | paused | {watcher}]
    what = chance.choice(["straggler", "peer", "author", "agent", "doze", "pause", "pause slow"])
    if what in ("agent", "doze"):
        index = chance.randrange(hosts)
        when = _apart_for(watcher, more)
        if what == "agent":
            strikes.append(Strike(when, do.kill_agent(index), f"agent {index} {more} steps apart"))
        else:
            strikes.append(Strike(when, do.stop_agent(index), f"doze {index} {more} steps apart"))
            strikes.append(Strike(do.after(chance.choice([0.2, 1.0])), _wake_agent(index)))
        return
    if not left:
        return
    stragglers = [r for r in left if r in slow]
    if what in ("straggler", "pause slow") and stragglers:
        victim = stragglers[0]
    else:
        victim = min(left) if what == "author" else chance.choice(left)
    when = _apart_for(watcher, more, victim, phases)
    if what.startswith("pause"):
        paused.add(victim)
        for_s = chance.choice([0.01, 0.03, 0.06, 0.1, 0.3])
        strikes.append(
            Strike(when, do.stop(victim), f"stop {victim} {more} steps apart, {for_s} s")
        )
        strikes.append(Strike(do.after(for_s), do.go_on(victim)))
    else:
        lost.add(victim)
        strikes.append(Strike(when, do.kill(victim), f"kill {victim} {more} steps apart"))


def _wake_agent(index: int) -> Callable[[Running], bool]:
    return lambda job: job.signal_agent(index, signal.SIGCONT)


def is_apart(job: Running) -> bool:
    """The newest view that any agent has has several cohorts."""
    views = [v for i in range(job.config.num_hosts) for v in read_memory(job.config, i).views[-1:]]
    return len(max(views, key=lambda v: v.epoch).cohorts) > 1 if views else False


def _apart_for(
    watcher: int, more: int, victim: int | None = None, phases: tuple[str, ...] = ()
) -> Callable[[Running], bool]:
    """The watcher has made ``more`` steps with cohorts apart, and the victim is in one of the phases."""
    since: list[int] = []
    next_s = given_up_s = 0.0

    def when(job: Running) -> bool:
        nonlocal next_s, given_up_s
        now_s = time.monotonic()
        if job.decided(watcher) < 12:
            return False
        given_up_s = given_up_s or now_s + APART_PATIENCE_S
        if not since:
            if now_s < next_s:
                return False
            next_s = now_s + LOOK_S
            if not is_apart(job) and now_s < given_up_s:
                return False
            since.append(job.decided(watcher))
        in_time = job.decided(watcher) >= since[0] + more
        placed = not phases or victim is None or job.phase(victim) in phases
        return (in_time and placed) or now_s > given_up_s + APART_PATIENCE_S

    return when
