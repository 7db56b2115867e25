"""A rank that was killed is started again, takes the state from a live member and steps with the others."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.runtime import faults as do
from tests.runtime import rejoin_job
from tests.runtime.faults import Faults, Strike
from tests.runtime.jobs import FinishedJob, JobRunner, cascade
from tests.runtime.reference import contributors, largest_difference, train_reference

STEPS = 90
AT = 10
AFTER = 20
"""Steps that a newcomer must have made with the others."""

SAME = 1e-9
Reference = Callable[[dict[int, list[int]]], dict[str, Any]]
"""Gives the state after these ranks have trained each step."""

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(150)]


def problems(
    job: FinishedJob,
    steps: int = STEPS,
    recipe: str = "sgd",
    lost: tuple[int, ...] = (),
    reference: Reference | None = None,
) -> list[str]:
    """What is wrong with a job in which every rank but the ``lost`` ones has finished."""
    train = reference or (lambda had: train_reference(had, 7, recipe))
    ranks = [r for r in sorted(job.outcome.statuses) if r not in lost]
    if job.outcome.finished != ranks or job.outcome.exit_code:
        return [f"{job.outcome}"]
    wrong = []
    states = job.parameters()
    if sorted(states) != ranks:
        return [f"saved by {sorted(states)}"]
    first = states[ranks[0]]
    if any(largest_difference(state, first) != 0.0 for state in states.values()):
        wrong.append("forked: parameters differ")
    had = contributors(job)
    if sorted(had) != list(range(1, steps + 1)):
        wrong.append(f"steps without contributors: {sorted(set(range(1, steps + 1)) - set(had))}")
    elif (off := largest_difference(first, train(had))) > SAME:
        wrong.append(f"{off:.1e} away from the reference")
    if job.verdict() != "ok":
        wrong += [f"{v.code}: {v.sentence}" for v in job.report.violations[:5]]
        wrong += [f"{c.code}: {c.reason}" for c in job.report.checks if c.verdict == "unknown"]
    return wrong


def ends(job: FinishedJob, rank: int, incarnation: int) -> list[dict[str, Any]]:
    rows = [r for r in job.rows("steps") if (r["rank"], r["incarnation"]) == (rank, incarnation)]
    return sorted((r for r in rows if r["phase"] == "end"), key=lambda r: r["seq"])


def joins(job: FinishedJob) -> list[dict[str, Any]]:
    rows = [r for r in job.rows("membership") if r["reason"] == "joined" and r["rank"] == 1]
    return sorted(rows, key=lambda r: r["epoch"])


def killed(*ranks: int, at: int = AT) -> list[Strike]:
    watched = next(r for r in range(9) if r not in ranks)
    return [Strike(do.after_step(watched, at, "waiting"), do.kill(*ranks), "killed")]


def run(jobs: JobRunner, *words: str, strikes: list[Strike], **options: Any) -> FinishedJob:
    faults = Faults(strikes)
    settings = {"respawn": 1, "script": rejoin_job.__file__} | options
    steps = () if "--steps" in words else ("--steps", str(STEPS))
    job = jobs.run(*steps, *words, faults=faults, **settings)
    assert len(faults.struck) == len(strikes), "the moment never came"
    return job


@pytest.mark.parametrize(("victim", "hosts"), [(2, 1), (0, 1), (0, 2), (3, 4)])
def test_it_comes_back_and_steps_with_the_others(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str], victim: int, hosts: int
) -> None:
    job = run(jobs, strikes=killed(victim), hosts=hosts)
    told = capfd.readouterr().err
    assert problems(job) == [], told
    assert f"starting rank {victim} again, as {victim}.1" in told
    assert len(ends(job, victim, 1)) >= AFTER
    (join,) = joins(job)
    assert join["joined"] == [{"rank": victim, "incarnation": 1}]
    churn = [r for r in job.rows("health") if r["fault"] == "NODE_CHURN_HIGH"]
    told_by = [r["rank"] for r in churn]  # by an agent that leads last, too, while it stands
    assert told_by and len(told_by) == len(set(told_by)), "its way in is one churn"
    assert job.rows("transitions")[-1]["to_regime"] != "EVENTUAL"
    (received,) = [r for r in job.rows("checkpoints") if r["action"] == "received"]
    saved = {r["checkpoint_id"]: r for r in job.rows("checkpoints") if r["action"] == "saved"}
    source = saved[received["checkpoint_id"]]
    for column in ("frontier", "params_digest", "optim_digest", "durable"):
        assert received[column] == source[column]
    assert_nobody_waited_long(job, join["epoch"], victim)


def assert_nobody_waited_long(job: FinishedJob, epoch: int, victim: int) -> None:
    """The others are held up by the join for some steps, not for as long as the newcomer needs."""
    walk = [r for r in job.rows("transitions") if r["new_epoch"] == epoch]
    proposed = min(r["mono_ns"] for r in walk if r["phase"] == "proposed")
    for rank in {0, 1, 2, 3} - {victim}:
        at = [r["mono_ns"] for r in ends(job, rank, 0)]
        gaps = [(b - a, a, b) for a, b in pairwise(at)]
        usual = statistics.median(gap for gap, _, _ in gaps)
        (over,) = [gap for gap, a, b in gaps if a <= proposed < b]
        assert over < 10 * usual + 0.5e9, f"rank {rank} waited {over / 1e9:.2f} s"


@pytest.mark.parametrize("recipe", [r for r in rejoin_job.RECIPES if r != "sgd"])
def test_optimizers_and_schedules_come_along(jobs: JobRunner, recipe: str) -> None:
    job = run(jobs, "--recipe", recipe, strikes=killed(2), hosts=2)
    assert problems(job, recipe=recipe) == []
    assert len(ends(job, 2, 1)) >= AFTER


def test_two_at_once(jobs: JobRunner) -> None:
    job = run(jobs, "--steps", "130", strikes=killed(1, 3), ranks=5, hosts=2)
    assert problems(job, 130) == []
    assert len(ends(job, 1, 1)) >= AFTER
    assert len(ends(job, 3, 1)) >= AFTER


def test_it_is_started_again_as_often_as_was_said(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str]
) -> None:
    again = [*killed(2), Strike(do.is_back(2), do.kill_newest(2))]
    last = [*again, Strike(do.is_back(2, 2), do.kill_newest(2))]
    job = run(jobs, "--steps", "150", strikes=last, respawn=2)
    told = capfd.readouterr().err
    assert problems(job, 150, lost=(2,)) == [], told
    assert "rank 2 is not started again: it was, 2 times" in told
    assert job.outcome.statuses[2] == -9


def test_a_script_that_begins_at_zero_is_told(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str]
) -> None:
    job = run(jobs, "--from-zero", "--steps", "60", strikes=killed(2))
    told = capfd.readouterr().err
    assert "Let the loop begin at cascade_runtime.start_step()" in told
    assert job.outcome.finished == [0, 1, 2, 3]
    assert len(joins(job)) == 1
    assert len(ends(job, 2, 1)) == 60
    assert job.verdict() == "ok"


def test_a_job_that_ends_meanwhile_ends_as_always(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str]
) -> None:
    job = run(jobs, "--steps", str(AT + 4), strikes=killed(2), respawn_delay_s=0.05)
    told = capfd.readouterr().err
    assert problems(job, AT + 4, lost=(2,)) == [], told
    assert "rank 2.1 came too late: the job is over" in told
    assert "Traceback" not in told


def test_observe_starts_nobody_again_and_says_so(tmp_path) -> None:
    script = "tests/runtime/scripts/no_model.py"
    ran = cascade(
        "run", "--observe", "--respawn", "2", "-n", "2", "--out", str(tmp_path / "t"), script
    )
    assert ran.returncode == 0, ran.stderr
    assert "nobody is started again while observing" in ran.stderr


def test_a_negative_number_of_times_is_refused(tmp_path) -> None:
    script = "tests/runtime/scripts/no_model.py"
    ran = cascade("run", "--respawn", "-1", "-n", "2", "--out", str(tmp_path / "t"), script)
    assert ran.returncode == 2
    assert "--respawn" in ran.stderr
    assert "Traceback" not in ran.stderr
