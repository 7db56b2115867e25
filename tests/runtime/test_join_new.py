"""``cascade join``: a rank that never was joins a job that runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cascade_runtime.agent.add_rank import add_rank, find_job, next_new_rank
from cascade_runtime.agent.config import JobConfig
from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.identity import Actor
from collector.trace.seal import seal_trace
from collector.trace.trace_writer import write_views
from tests.runtime import faults as do
from tests.runtime import rejoin_job
from tests.runtime.faults import Faults, Running, Strike
from tests.runtime.jobs import FinishedJob, JobRunner, cascade
from tests.runtime.test_rejoin import AFTER, ends, joins, problems

STEPS = 180
AT = 10
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(150)]


def run(jobs: JobRunner, what: Callable[[Running], None], **options: object) -> FinishedJob:
    """A job of 3 ranks that trains until ``what`` has been done, and then some."""
    faults = Faults([Strike(do.after_step(0, AT), what, "asked")])
    settings = {"ranks": 3, "script": rejoin_job.__file__, "respawn": 1} | options
    job = jobs.run("--steps", str(STEPS), faults=faults, **settings)
    assert [name for name, _ in faults.struck] == ["asked"]
    return job


def faults_of_form(trace: Path) -> list[str]:
    """What the checker of form says, where it lies above the checkout."""
    for folder in Path(__file__).resolve().parents:
        if (file := folder / "shared" / "tools" / "check_trace.py").is_file():
            seal_trace(trace)
            write_views(trace)
            ran = subprocess.run([sys.executable, file, trace], capture_output=True, text=True)
            return [] if ran.returncode == 0 else [ran.stdout + ran.stderr]
    return []


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_fourth_rank_joins_and_steps_with_the_others(jobs: JobRunner, hosts: int) -> None:
    new = 3 + hosts  # agents count after the ranks of the start
    told: list[str] = []

    def ask(job: Running) -> None:
        ran = cascade("join", job.config.trace_dir)
        assert ran.returncode == 0, ran.stderr
        told.append(ran.stderr)

    job = run(jobs, ask, hosts=hosts)
    assert f"rank {new} was started, with WORLD_SIZE {new + 1}" in told[0]
    assert problems(job, STEPS) == []
    assert job.outcome.finished == [0, 1, 2, new]
    assert len(ends(job, new, 0)) >= AFTER
    (join,) = joins(job)
    assert join["joined"] == [{"rank": new, "incarnation": 0}]
    assert faults_of_form(job.trace) == []


def test_two_more_one_after_the_other(jobs: JobRunner) -> None:
    def ask(job: Running) -> None:
        for _ in range(2):
            add_rank(job.config, next_new_rank(job.config))

    job = run(jobs, ask)
    assert problems(job, STEPS) == []
    assert job.outcome.finished == [0, 1, 2, 4, 5]


def test_it_is_killed_and_comes_back(jobs: JobRunner) -> None:
    strikes = [
        Strike(do.after_step(0, AT), lambda job: add_rank(job.config, 4)),
        Strike(do.is_back(4, 0), do.kill(4)),
        Strike(do.is_back(4, 1), lambda job: None, "back"),
    ]
    faults = Faults(strikes)
    job = jobs.run(
        "--steps", "150", ranks=3, script=rejoin_job.__file__, respawn=1, faults=faults
    )  # fmt: skip
    assert "back" in [name for name, _ in faults.struck]
    assert problems(job, 150) == []


def test_its_agent_dies_while_it_comes(jobs: JobRunner) -> None:
    strikes = [
        Strike(do.after_step(0, AT), lambda job: add_rank(job.config, 4)),
        Strike(lambda job: job.pid(4) is not None, do.kill_agent(0)),
        Strike(do.is_back(4, 0), lambda job: None, "in"),
    ]
    faults = Faults(strikes)
    job = jobs.run("--steps", "400", ranks=3, script=rejoin_job.__file__, respawn=1, faults=faults)
    assert "in" in [name for name, _ in faults.struck]
    assert problems(job, 400) == []


# ---- refusals -------------------------------------------------------------------------------------


def test_who_cannot_be_added(jobs: JobRunner) -> None:
    said: dict[int, str] = {}

    def ask(job: Running) -> None:
        for rank in (1, 3, 6, 4, 4, -1):
            try:
                add_rank(job.config, rank)
            except BadUsage as error:
                said[rank] = str(error)

    job = run(jobs, ask)
    assert job.outcome.finished == [0, 1, 2, 4]
    assert sorted(said) == [-1, 1, 3, 4, 6]
    assert "rank 1 exists already" in said[1]
    assert "3 is the number of a host agent in the trace; new ranks begin at 4" in said[3]
    assert "rank 4 exists already" in said[4]
    assert "the next new rank of host 0 is 4" in said[6]
    assert "-1 is no rank" in said[-1]


def test_nobody_joins_a_job_that_is_observed(jobs: JobRunner) -> None:
    said: list[str] = []

    def ask(job: Running) -> None:
        with pytest.raises(BadUsage) as refused:
            add_rank(job.config, 4)
        said.append(str(refused.value))

    job = run(jobs, ask, mode="observe", respawn=0, script=None)
    assert job.outcome.finished == [0, 1, 2]
    assert "the job is only observed" in said[0]


def test_a_job_that_ended_and_one_that_never_was(tmp_path: Path) -> None:
    nothing = cascade("join", str(tmp_path / "none"))
    assert nothing.returncode == 2
    assert "no job that runs here writes its trace to this folder" in nothing.stderr
    (tmp_path / "trace.json").write_text(json.dumps({}))
    over = cascade("join", str(tmp_path))
    assert over.returncode == 2
    assert "the job of this trace has ended" in over.stderr
    assert "Traceback" not in nothing.stderr + over.stderr


# ---- where new ranks are --------------------------------------------------------------------------


@pytest.fixture
def config() -> JobConfig:
    return JobConfig(
        run_id="r", name="n", num_ranks=3, num_hosts=2, mode="enforce", policy="default",
        trace_dir="/none", run_dir="/none", host="h", command=["s.py"], master_port=1,
    )  # fmt: skip


def test_new_ranks_go_to_the_hosts_in_turn(config: JobConfig) -> None:
    assert config.first_new_rank == 5
    assert [config.host_of(rank) for rank in (0, 1, 2, 3, 4, 5, 6, 7)] == [0, 1, 1, 0, 1, 0, 1, 0]
    assert [config.world_size_of(rank) for rank in (0, 2, 5, 7)] == [3, 3, 6, 8]
    assert [config.comes_later(a) for a in (Actor(0), Actor(0, 1), Actor(5))] == [
        False, True, True,
    ]  # fmt: skip
    assert next_new_rank(config) == 5


def test_a_job_is_found_by_its_trace(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="no job that runs here"):
        find_job(tmp_path / "trace")
