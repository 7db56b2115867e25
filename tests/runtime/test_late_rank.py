"""Real jobs with a rank that is late: one walk, no flapping, nobody removed; and jobs without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.jobs import FinishedJob, JobRunner

SCRIPT = Path(__file__).parent / "scripts" / "late.py"
LATE = ("--late-rank", "2", "--late-from", "40")

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(100)]


def walks(job: FinishedJob) -> list[tuple[str, str, str | None]]:
    """(from, to, fault) of every view of another regime, as one member committed them."""
    rows = sorted(
        (r for r in job.rows("transitions") if (r["rank"], r["phase"]) == (0, "committed")),
        key=lambda r: r["new_epoch"],
    )
    return [
        (r["from_regime"], r["to_regime"], r["fault"])
        for r in rows
        if r["from_regime"] != r["to_regime"]
    ]


def assert_all_finished(job: FinishedJob) -> None:
    assert job.outcome.exit_code == 0
    assert job.outcome.finished == [0, 1, 2, 3]
    assert job.verdict() == "ok", [v.sentence for v in job.report.violations]


FALL = ("STRONG", "CAUSAL", "RANK_SKEW_HIGH")


@pytest.mark.parametrize("hosts", [1, 2])
def test_late_in_every_step_to_the_end_is_one_walk(jobs: JobRunner, hosts: int) -> None:
    job = jobs.run("--steps", "200", *LATE, script=SCRIPT, hosts=hosts)
    assert_all_finished(job)
    assert walks(job) == [FALL]
    fired = [r for r in job.rows("health") if r["fault"] == "RANK_SKEW_HIGH"]
    assert [r["subject_rank"] for r in fired] == [2]


def test_in_time_again_it_climbs_once(jobs: JobRunner) -> None:
    job = jobs.run("--steps", "200", *LATE, "--late-until", "90", script=SCRIPT)
    assert_all_finished(job)
    assert walks(job) == [FALL, ("CAUSAL", "STRONG", "STABLE_SYNC")]


def test_observe_says_what_it_would_have_done_and_changes_nothing(jobs: JobRunner) -> None:
    job = jobs.run("--steps", "120", *LATE, script=SCRIPT, mode="observe")
    assert_all_finished(job)
    assert walks(job) == []
    decided = [d for d in job.rows("decisions") if d["fault"] == "RANK_SKEW_HIGH"]
    assert [(d["to_regime"], d["changed"]) for d in decided] == [("CAUSAL", True)]


def test_an_interpreter_lock_held_for_a_second_removes_nobody(jobs: JobRunner) -> None:
    """The rank is named slow, and a stall is about to happen; no word of a death."""
    job = jobs.run(
        *("--steps", "100", "--late-rank", "1", "--late-ms", "0", "--hold-at", "60"), script=SCRIPT
    )
    assert_all_finished(job)
    health = job.rows("health")
    assert not [r for r in health if r["fault"] == "GPU_FAIL_STOP"]
    assert {r["subject_rank"] for r in health if r["detector"] == "slow"} == {1}
    assert [r["signal"] for r in health if r["fault"] == "RANK_SKEW_HIGH"] == ["stall"]
    departed = [a for r in job.rows("membership") if r["reason"] == "failed" for a in r["departed"]]
    assert departed == []


def test_without_a_fault_nothing_fires(jobs: JobRunner) -> None:
    job = jobs.run("--steps", "300", script=SCRIPT, hosts=2)
    assert_all_finished(job)
    assert walks(job) == []
    assert [r for r in job.rows("health") if r["fault"] is not None] == []
    assert {r["signal"] for r in job.rows("health")} >= {"transfer", "late"}
