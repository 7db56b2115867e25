"""Whole jobs: clean ones, observed ones, ones with two deaths, an agent's death, the two-line form."""

from __future__ import annotations

import os
import signal
import threading
from importlib.resources import files
from pathlib import Path

import pytest

from cascade_runtime.agent.launcher import Launcher, make_config
from cascade_runtime.progress import read_progress
from cascade_runtime.vocabulary.identity import Actor
from dashboard.demo import train
from dashboard.demo.faults import Kill
from tests.runtime.jobs import FinishedJob, JobRunner
from tests.runtime.reference import largest_difference

SCRIPTS = Path(__file__).parent / "scripts"
TWO_DEATHS = {"DIES": "3:13,2:15"}
"""The second comes before the job can have climbed, which is what the tests are about."""

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(90)]


def test_a_clean_job_is_proved(jobs: JobRunner) -> None:
    job = jobs.run("--steps", "20", "--pause-ms", "60", ranks=3)  # a second, for CPU rows
    assert job.outcome.finished == [0, 1, 2]
    assert job.verdict() == "ok"
    assert {r["regime"] for r in job.rows("reads")} == {"STRONG"}
    assert [r["reason"] for r in job.rows("membership") if r["rank"] == 0] == [
        "started",
        "finished",
    ]
    assert job.report.debt.opened == 0
    busy = [r for r in job.rows("health") if r["signal"] == "cpu_busy"]
    assert {r["subject_rank"] for r in busy} == {0, 1, 2}
    assert all(r["fault"] is None and r["value"] >= 0 for r in busy)


def test_the_two_lines_in_an_existing_loop(jobs: JobRunner, tmp_path: Path) -> None:
    job = jobs.run(str(tmp_path), script=SCRIPTS / "two_lines.py", ranks=2)
    assert job.outcome.exit_code == 0
    told = {(tmp_path / f"told-{rank}.txt").read_text() for rank in (0, 1)}
    # Whoever is still in its loop when the other one leaves walks to the view without it, which is
    # told; whoever leaves is told nothing of the view without itself.
    assert told in ({"STRONG [] []"}, {"STRONG [] []", "STRONG [] [(1, 'STRONG')]"})
    saved = [r for r in job.rows("checkpoints") if r["action"] == "saved"]
    assert [(r["checkpoint_id"], r["durable"], r["world_size"]) for r in saved] == [
        ("middle", True, 2)
    ]
    applied = [r for r in job.rows("updates") if r["rank"] == 0 and r["action"] == "applied"]
    before = max(r["counter"] for r in applied if r["seq"] < saved[0]["seq"])
    assert saved[0]["frontier"] == [{"rank": 0, "incarnation": 0, "counter": before}]
    assert job.verdict() == "ok"


def test_observe_changes_nothing_and_records(jobs: JobRunner) -> None:
    plain = jobs.run("--steps", "15", ranks=2)
    observed = jobs.run("--steps", "15", ranks=2, mode="observe")
    assert observed.outcome.exit_code == 0
    # Same arithmetic as DDP's default hook, so the same bytes as our own reduction of one view.
    for rank in (0, 1):
        mine, theirs = plain.parameters()[rank], observed.parameters()[rank]
        weights = {k: v for k, v in mine.items() if "weight" in k and v.dim() == 2}
        assert largest_difference(weights, theirs) < 1e-5
    assert observed.verdict() == "ok"
    assert observed.rows("decisions") == []


def test_observe_says_what_it_would_have_done(jobs: JobRunner) -> None:
    job = jobs.run("--steps", "60", ranks=3, mode="observe", kills=(Kill(1, 10),))
    assert job.outcome.finished == []  # plain DDP loses the job, and observe does not save it
    assert job.outcome.exit_code != 0
    decided = [
        (r["fault"], r["from_regime"], r["to_regime"], r["changed"]) for r in job.rows("decisions")
    ]
    assert decided[0] == ("GPU_FAIL_STOP", "STRONG", "CAUSAL", True)
    assert job.rows("transitions") == []
    assert job.verdict() in ("ok", "unknown")


def test_a_second_death_falls_to_eventual_and_climbs_back(jobs: JobRunner, tmp_path: Path) -> None:
    """Two losses within a minute are churn too, so STRONG comes only after a quiet time."""
    policy = tmp_path / "policy.toml"
    packaged = files("cascade_runtime.vocabulary") / "policies" / "default.toml"
    policy.write_text(packaged.read_text().replace("quiet_s = 30.0", "quiet_s = 0.3"))
    job = jobs.run(
        *("--steps", "80", "--dtype", "float64", "--pause-ms", "10"),
        script=SCRIPTS / "dies.py",
        env=TWO_DEATHS,
        policy=str(policy),
    )
    assert job.outcome.finished == [0, 1]
    walked = [
        (r["from_regime"], r["to_regime"], r["fault"])
        for r in sorted(job.rows("transitions"), key=lambda r: r["seq"])
        if r["rank"] == 0 and r["phase"] == "committed" and r["from_regime"] != r["to_regime"]
    ]
    assert walked == [
        ("STRONG", "CAUSAL", "GPU_FAIL_STOP"),
        ("CAUSAL", "EVENTUAL", "GPU_FAIL_STOP"),
        ("EVENTUAL", "CAUSAL", "RECOVERY_DETECTED"),
        ("CAUSAL", "STRONG", "STABLE_SYNC"),
    ]
    churn = [r for r in job.rows("health") if r["fault"] == "NODE_CHURN_HIGH"]
    assert [(r["value"], r["threshold"]) for r in churn] == [(2.0, 2.0)]
    states = job.parameters()
    assert largest_difference(states[0], states[1]) == 0.0
    assert_ok(job)


def test_two_losses_within_a_minute_are_churn_and_hold_the_climb_up(jobs: JobRunner) -> None:
    job = jobs.run("--steps", "60", script=SCRIPTS / "dies.py", env=TWO_DEATHS)
    assert job.outcome.finished == [0, 1]
    churn = [d for d in job.rows("decisions") if d["fault"] == "NODE_CHURN_HIGH"]
    assert [d["changed"] for d in churn] == [False], "CAUSAL or EVENTUAL stay as they are"
    assert not [r for r in job.rows("health") if r["fault"] == "STABLE_SYNC"]
    assert_ok(job)


@pytest.mark.parametrize("hosts", [1, 2])
def test_ranks_outlive_their_agent(zygote: Path, tmp_path: Path, hosts: int) -> None:
    """The agent of the victim's host is killed first; started again, it certifies the death."""
    saved = tmp_path / "saved"
    command = [str(train.__file__), "--steps", "60", "--save", str(saved)]
    config = make_config(
        command, num_ranks=4, num_hosts=hosts, trace_dir=tmp_path / "trace", zygote=zygote
    )
    launcher = Launcher(config)
    over = threading.Event()

    def strike() -> None:
        while not over.wait(0.001):
            progress = read_progress(config.progress_path(Actor(3)))
            if progress and progress.decided >= 15 and progress.phase == "waiting":
                os.kill(launcher.agent_pids[hosts - 1], signal.SIGKILL)
                os.kill(launcher.rank_pids()[Actor(3)], signal.SIGKILL)
                return

    thread = threading.Thread(target=strike)
    thread.start()
    outcome = launcher.run()
    over.set()
    thread.join()
    job = FinishedJob(outcome, tmp_path / "trace", saved)
    assert outcome.finished == [0, 1, 2]
    assert outcome.exit_code == 0
    agent = 4 + hosts - 1
    incarnations = {r["incarnation"] for r in job.rows("actors") if r["rank"] == agent}
    assert incarnations == {0, 1}
    assert_ok(job)


def assert_ok(job: FinishedJob) -> None:
    assert job.verdict() == "ok", [v.sentence for v in job.report.violations] + [
        (c.code, c.reason) for c in job.report.checks if c.verdict == "unknown"
    ]
