"""What must hold of every job that faults were done to, whatever they were."""

from __future__ import annotations

from tests.runtime.jobs import FinishedJob
from tests.runtime.reference import contributors, largest_difference, train_reference

FORKED = "forked"
SAME = 1e-9
"""In float64 the order of a sum moves the result by 1e-12 or so, a contribution by 1e-3 or more."""


def problems(job: FinishedJob, steps: int, survivors: list[int]) -> list[str]:
    """What is wrong with a job of ``steps`` steps in float64; empty when nothing is.

    ``survivors`` must have finished; others may have.
    """
    wrong = []
    finished = job.outcome.finished
    if missing := [r for r in survivors if r not in finished]:
        return [f"ranks {missing} did not finish: {job.outcome}"]
    if job.outcome.exit_code:
        wrong.append(f"exit code {job.outcome.exit_code}: {job.outcome}")
    rows = job.rows("steps")
    for rank in finished:
        ends = [r["step"] for r in rows if r["rank"] == rank and r["phase"] == "end"]
        if sorted(ends) != list(range(1, steps + 1)):
            wrong.append(f"rank {rank} ended steps {ends}")
    states = job.parameters()
    if sorted(states) != finished:
        wrong.append(f"saved by {sorted(states)}, finished {finished}")
    first = states[min(states)]
    if any(largest_difference(state, first) != 0.0 for state in states.values()):
        wrong.append(f"{FORKED}: the survivors' parameters differ")
    had = contributors(job)
    if sorted(had) != list(range(1, steps + 1)):
        wrong.append(f"steps without contributors: {sorted(set(range(1, steps + 1)) - set(had))}")
    elif (off := largest_difference(first, train_reference(had, seed=7))) > SAME:
        wrong.append(f"{off:.1e} away from the reference")
    if job.verdict() != "ok":
        wrong += [f"{v.code}: {v.sentence}" for v in job.report.violations]
        wrong += [f"{c.code}: {c.reason}" for c in job.report.checks if c.verdict == "unknown"]
    return wrong


def last_step_before(job: FinishedJob, mono_ns: int, rank: int) -> int:
    """The last step that ``rank`` had ended at a moment of the machine's steady clock."""
    ends = [
        r["step"]
        for r in job.rows("steps")
        if r["rank"] == rank and r["phase"] == "end" and r["mono_ns"] <= mono_ns
    ]
    return max(ends, default=0)
