"""SIGKILL of one rank at random moments: survivors go on, agree, and equal the reference."""

from __future__ import annotations

import random

import pytest

from dashboard.demo.faults import Kill
from tests.long import one_in
from tests.runtime.jobs import ANY_PHASE, FinishedJob, JobRunner
from tests.runtime.reference import contributors, largest_difference, train_reference

SEED = 20261129
STEPS = 60
LAST_KILL = 35
ARGUMENTS = ("--steps", str(STEPS), "--dtype", "float64")
SAME = 1e-9
"""In float64 the order of a sum moves the result by 1e-12 or so, a contribution by 1e-3 or more."""

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(90)]


def moments(number: int) -> list[tuple[int, int, int, tuple[str, ...]]]:
    """(case, victim, step, phases) drawn with a fixed seed."""
    draw = random.Random(SEED)
    cases = []
    for case in range(number):
        phases = draw.choice([("waiting",), ("waiting",), ANY_PHASE, ("forward",), ("backward",)])
        cases.append((case, draw.randrange(4), draw.randrange(LAST_KILL), phases))
    return cases


@pytest.mark.parametrize(
    ("case", "victim", "step", "phases"),
    one_in(3, moments(20), [f"{c}-rank{v}-step{s}-{p[0]}" for c, v, s, p in moments(20)]),
)
def test_survivors_go_on_and_equal_the_reference(
    jobs: JobRunner, case: int, victim: int, step: int, phases: tuple[str, ...]
) -> None:
    hosts = 1 + case % 2
    job = jobs.run(*ARGUMENTS, kills=(Kill(victim, step),), phases=phases, hosts=hosts)
    survivors = [r for r in range(4) if r != victim]
    assert job.struck, "the victim was never struck"
    assert job.outcome.finished == survivors
    assert job.outcome.exit_code == 0
    assert job.outcome.statuses[victim] == -9
    assert_steps_without_a_hole(job, survivors, job.struck[0][1])
    assert_last_rows_of_the_victim(job, victim, job.struck[0][1])
    states = job.parameters()
    assert sorted(states) == survivors
    first = states[survivors[0]]
    assert all(largest_difference(s, first) == 0.0 for s in states.values())
    had = contributors(job)
    assert sorted(had) == list(range(1, STEPS + 1))
    assert largest_difference(first, train_reference(had, seed=7)) < SAME
    assert job.verdict() == "ok", [v.sentence for v in job.report.violations] + [
        (c.code, c.reason) for c in job.report.checks if c.verdict == "unknown"
    ]


def test_the_reference_tells_a_contribution_from_none(jobs: JobRunner) -> None:
    """The comparison above has teeth: one contribution too many moves the result past its limit."""
    job = jobs.run(*ARGUMENTS, kills=(Kill(2, 20),))
    had = contributors(job)
    final = job.parameters()[0]
    assert largest_difference(final, train_reference(had, seed=7)) < SAME
    interrupted = min(s for s, ranks in had.items() if 2 not in ranks)
    had[interrupted] = [0, 1, 2, 3]
    assert largest_difference(final, train_reference(had, seed=7)) > 1e6 * SAME


def assert_steps_without_a_hole(job: FinishedJob, survivors: list[int], decided: int) -> None:
    rows = job.rows("steps")
    for rank in survivors:
        ends = [r["step"] for r in rows if r["rank"] == rank and r["phase"] == "end"]
        assert ends == list(range(1, STEPS + 1))
    assert STEPS - decided >= 20


def assert_last_rows_of_the_victim(job: FinishedJob, victim: int, decided: int) -> None:
    mine = [r for r in job.rows("steps") if r["rank"] == victim]
    assert max(r["step"] for r in mine) >= decided
    applied = [r for r in job.rows("updates") if r["rank"] == victim and r["action"] == "applied"]
    assert max((r["step"] for r in applied), default=0) >= decided
