"""A job that is ended early, at moments that no person could choose: no promise is said to be broken."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import pytest

from collector.trace.trace_folder import open_trace
from dashboard.demo.faults import Kill
from tests.runtime.faults import Faults, Running, Strike
from tests.runtime.jobs import FinishedJob, JobRunner

STEPS = "4000"


def end_by(number: int) -> Callable[[Running], bool]:
    """The signal to the launcher, which runs in this process."""

    def what(job: Running) -> bool:
        del job
        signal.pthread_kill(threading.main_thread().ident or 0, number)
        return True

    return what


ctrl_c, kill = end_by(signal.SIGINT), end_by(signal.SIGTERM)


def stopped_early(job: FinishedJob, number: int) -> None:
    assert (job.outcome.stopped_by, job.outcome.exit_code) == (number, 128 + number)
    assert job.outcome.finished == []
    assert job.outcome.last_step > 0
    verdict = job.verdict()
    assert [v.sentence for v in job.report.violations] == []
    assert verdict in ("ok", "unknown")
    assert "end of the run: it was stopped early" in job.report.not_supplied
    with open_trace(job.trace) as source:
        assert (source.meta.clean_end, source.meta.ended_ns is None) == (False, False)


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("mode", "phase"),
    # A rank that is only observed tells no other phase.
    [
        ("enforce", "forward"),
        ("enforce", "backward"),
        ("enforce", "waiting"),
        ("observe", "forward"),
    ],
)
def test_in_any_phase_of_a_step(
    jobs: JobRunner, mode: str, phase: str, capfd: pytest.CaptureFixture[str]
) -> None:
    faults = Faults([Strike(lambda job: job.decided(1) >= 12 and job.phase(1) == phase, ctrl_c)])
    job = jobs.run("--steps", STEPS, faults=faults, mode=mode, hosts=2)
    stopped_early(job, signal.SIGINT)
    said = capfd.readouterr().err
    assert "Traceback" not in said
    assert "died" not in said
    assert said.count("cascade: stopping ...") == 1
    assert {r["signal"] for r in job.rows("health")}.isdisjoint({"dead", "unreachable"})


@pytest.mark.chaos
@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize(
    "when",
    [lambda job: job.walking(), lambda job: job.num_views() > 1],
    ids=["in a walk", "after it"],
)
def test_while_a_death_is_dealt_with(jobs: JobRunner, hosts: int, when) -> None:
    faults = Faults([Strike(when, ctrl_c)])
    job = jobs.run("--steps", STEPS, kills=(Kill(2, 10),), faults=faults, hosts=hosts)
    assert len(job.struck) == 1
    stopped_early(job, signal.SIGINT)


@pytest.mark.chaos
def test_a_stopped_rank_does_not_hold_it_up(jobs: JobRunner) -> None:
    """With --observe nobody fences it: it is woken to hear the signal."""
    faults = Faults([
        Strike(lambda job: job.decided(1) >= 8, lambda job: job.signal(1, signal.SIGSTOP)),
        Strike(lambda job: job.state(1) == "T", ctrl_c),
    ])  # fmt: skip
    stopped_early(jobs.run("--steps", STEPS, faults=faults, mode="observe"), signal.SIGINT)


@pytest.mark.chaos
def test_kill(jobs: JobRunner) -> None:
    faults = Faults([Strike(lambda job: job.decided(0) >= 12, kill)])
    stopped_early(jobs.run("--steps", STEPS, faults=faults), signal.SIGTERM)
