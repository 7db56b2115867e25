"""Plays a schedule of delays, and judges the job that it left."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cascade_runtime.vocabulary.identity import Actor
from tests.runtime import delays_job
from tests.runtime.causal_reference import Replay
from tests.runtime.checks import FORKED
from tests.runtime.delays import LOOK_S, Delayed
from tests.runtime.faults import Running, Strike
from tests.runtime.jobs import FinishedJob, JobRunner
from tests.runtime.policies import splitting_policy
from tests.runtime.schedules import HANG_S, HUNG, MORE_STEPS, Played, Watched

LEAD = 30
"""The goal is so many steps ahead of the furthest rank: all read it before they are there."""

SETTLE_S = 60.0
FENCED = 75
SHOWN = 5
"""Violations that are told one by one."""


class _Ending:
    """Ends the job once every survivor has made enough steps after the last fault."""

    def __init__(self, control: Path, survivors: list[int]) -> None:
        self._control, self._survivors = control, survivors
        self._began: list[int] = []
        self._since_s = self._next_s = 0.0
        self.went_on: int | None = None

    def _steps(self, rank: int) -> int:
        try:
            return int.from_bytes((self._control / f"rank{rank}").read_bytes(), "little")
        except OSError:
            return 0

    def when(self, job: Running) -> bool:
        """All have; or it takes too long, and what is missing is told."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + LOOK_S
        self._since_s = self._since_s or now_s
        steps = [self._steps(r) for r in self._survivors]
        if min(steps) < 12:  # not at the first delay yet
            self._since_s = now_s
            return False
        self._began = self._began or steps
        self.went_on = min(a - b for a, b in zip(steps, self._began, strict=True))
        done = self.went_on >= MORE_STEPS and self._plan_is_over(steps)
        return done or now_s - self._since_s > SETTLE_S

    plan_ends: dict[int, int]

    def _plan_is_over(self, steps: list[int]) -> bool:
        own = dict(zip(self._survivors, steps, strict=True))
        return all(own[r] > last + 5 for r, last in self.plan_ends.items() if r in own)

    def what(self, job: Running) -> bool:
        """Write the goal."""
        goal = max(job.decided(r) for r in self._survivors) + LEAD
        path = self._control / "goal.new"
        path.write_text(str(goal))
        path.rename(self._control / "goal")
        return True


def play(runner: JobRunner, schedule: Delayed) -> Played:
    """Run it and judge the job that it left.

    Raises:
        KeyboardInterrupt: somebody ended it.
    """
    control = Path(tempfile.mkdtemp(prefix="delays-"))
    try:
        return _play(runner, schedule, control)
    finally:
        shutil.rmtree(control, ignore_errors=True)


def _play(runner: JobRunner, schedule: Delayed, control: Path) -> Played:
    survivors = [r for r in range(schedule.ranks) if r not in schedule.lost | schedule.paused]
    ending = _Ending(control, survivors)
    ending.plan_ends = {}
    for who, _, last, *_ in schedule.plan:
        ending.plan_ends[who] = max(ending.plan_ends.get(who, 0), last)
    faults = Watched([*schedule.strikes, Strike(ending.when, ending.what)])
    policy = splitting_policy(control / "policy.toml")
    job = runner.run(
        "--control", str(control), "--plan", json.dumps(schedule.plan),
        "--step-ms", str(schedule.step_ms), *schedule.options,
        script=delays_job.__file__, policy=str(policy),
        ranks=schedule.ranks, hosts=schedule.hosts, faults=faults, saves=True,
    )  # fmt: skip
    if faults.hung:
        return Played([f"{HUNG} for {HANG_S:.0f} s and was ended"], job)
    if job.outcome.stopped_by:  # the launcher took the signal; nothing is wrong with the job
        raise KeyboardInterrupt
    wrong = problems(job, survivors, adds_up="--clamps" not in schedule.options)
    for rank in schedule.paused - set(job.outcome.finished):
        status = job.outcome.statuses.get(rank)
        if status not in (FENCED, -signal.SIGKILL):
            wrong.append(f"rank {rank} was fenced and ended with {status}")
    if (ending.went_on or 0) < MORE_STEPS:
        wrong.append(f"only {ending.went_on} steps after the last fault")
    return Played(wrong, job, ending.went_on, parted=num_partings(job))


def num_partings(job: FinishedJob) -> int:
    """How many views had several cohorts."""
    rows = job.rows("transitions")
    return len(
        {r["new_epoch"] for r in rows if r["phase"] == "committed" and len(r["cohorts"]) > 1}
    )


def problems(job: FinishedJob, survivors: list[int], adds_up: bool = True) -> list[str]:
    """What is wrong with a job in CAUSAL that faults were done to; empty when nothing is.

    Args:
        job: it has ended.
        survivors: must have finished; others may have.
        adds_up: the script writes to no parameter itself, so the deltas are the optimizer's alone.
    """
    finished = job.outcome.finished
    if missing := [r for r in survivors if r not in finished]:
        return [f"ranks {missing} did not finish: {job.outcome}"]
    wrong = []
    if job.outcome.exit_code:
        wrong.append(f"exit code {job.outcome.exit_code}: {job.outcome}")
    states = job.parameters()
    if sorted(states) != finished:
        wrong.append(f"saved by {sorted(states)}, finished {finished}")
    notes = {int(p.stem[5:]): torch.load(p) for p in sorted(job.saved.glob("notes*.deltas"))}
    wrong += unlike(states, {rank: told["decided"] for rank, told in notes.items()})
    wrong += other_bytes({r: told["partings"] for r, told in notes.items()}) if adds_up else []
    if job.verdict() != "ok":
        violations = job.report.violations
        wrong += [f"{v.code}: {v.sentence}" for v in violations[:SHOWN]]
        wrong += [f"{len(violations)} violations in all"] if len(violations) > SHOWN else []
        wrong += [f"{c.code}: {c.reason}" for c in job.report.checks if c.verdict == "unknown"]
    return wrong + unpaid(job.rows("debt"))


def unlike(states: dict[int, dict[str, Any]], decided: dict[int, int]) -> list[str]:
    """Members that ended after the same step with other bytes.

    One that is in the middle of a step when the others' count becomes its own makes one more.
    """
    wrong, firsts = [], {}
    for rank, state in states.items():
        first = firsts.setdefault(decided[rank], rank)
        names = [n for n, value in states[first].items() if not torch.equal(value, state[n])]
        if names:
            wrong.append(f"{FORKED}: {names} of rank {rank} differ from rank {first}'s")
    if max(decided.values()) - min(decided.values()) > 1:
        wrong.append(f"ended after steps {decided}")
    return wrong


def unpaid(rows: list[dict[str, Any]]) -> list[str]:
    """Debts that the job's rows leave open, or close without saying how."""
    opened = Counter(r["debt_id"] for r in rows if r["action"] == "opened")
    closed = [r for r in rows if r["action"] != "opened"]
    ids = {r["debt_id"] for r in closed}
    wrong = [f"debt {debt} was never closed" for debt in opened if debt not in ids]
    wrong += [
        f"debt {debt} was opened {count} times" for debt, count in opened.items() if count > 1
    ]
    wrong += [
        f"debt {r['debt_id']} was settled without a resolution"
        for r in closed
        if r["action"] == "settled" and (r["resolution"] is None or r["frontier"] is None)
    ]
    wrong += [
        f"debt {r['debt_id']} was written off: not of a lost rank's data"
        for r in closed
        if r["action"] == "written_off" and not (r["object"] or "").startswith("data/")
    ]
    return wrong


def other_bytes(notes: dict[int, list[dict[str, Any]]]) -> list[str]:
    """Where what all became after a parting is not base and deltas, added up in canonical order.

    Args:
        notes: by rank, what ``delays_job.Notes`` kept of each parting.
    """
    partings: dict[str, dict[int, dict[str, Any]]] = {}
    twice: set[str] = set()
    for rank, told in notes.items():
        for parting in told:
            key = json.dumps(parting["at"])
            if rank in partings.setdefault(key, {}):
                twice.add(key)
            partings[key][rank] = parting
    wrong = []
    for key, of in partings.items():
        some = next(iter(of.values()))
        # What an author that was lost had stepped is nowhere but in the sums.
        if key in twice or any(a not in notes for a in some["authors"]):
            continue
        expected = _replayed(some["base"], of)
        wrong += [
            f"rank {rank} became other bytes than those of the definition (parted at {key})"
            for rank, parting in of.items()
            if parting["folded"].numpy().tobytes() != expected.tobytes()
        ]
    return wrong


def _replayed(base: torch.Tensor, of: dict[int, dict[str, Any]]) -> np.ndarray:
    replay, counts = Replay([base.numpy()]), {}
    for rank, parting in of.items():
        for delta in parting["deltas"]:
            replay.add(Actor(rank), [delta.numpy() * np.float32(parting["weight"])])
        if parting["deltas"]:
            counts[Actor(rank)] = len(parting["deltas"])
    return replay.fold(counts)[0]
