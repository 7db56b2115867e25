"""A job that hangs: a rank sleeps in its own code, until somebody ends the job."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from analyzer import analyze
from collector.trace.trace_folder import open_trace
from tests.runtime.faults import Faults, Running, Strike, after
from tests.runtime.jobs import JobRunner

SCRIPT = Path(__file__).parent / "scripts" / "hang.py"
AT, HELD_S = 12, 4.0

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(100)]


def end(job: Running) -> bool:
    del job
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
    return True


def test_what_was_waited_is_told_and_laid_to_who_never_came(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str]
) -> None:
    hangs = Strike(
        lambda job: job.decided(1) == AT - 1 and job.phase(0) != "backward", lambda _: True
    )
    faults = Faults([hangs, Strike(after(HELD_S), end)])
    job = jobs.run(
        *("--steps", "4000", "--rank", "1", "--at", str(AT)), script=SCRIPT, ranks=3, faults=faults
    )
    assert job.outcome.stopped_by == signal.SIGTERM
    with open_trace(job.trace) as source:
        analysis = analyze(source)
    report = analysis.report
    assert [v.sentence for v in report.violations] == []
    # The last row of a waiter may be a second old when the job is ended.
    by_rank = {r.rank: r for r in report.waits.by_rank}
    held = [r for r in analysis.results["waits"].to_pylist() if r["is_open"] and r["wait_ns"]]
    assert {(r["rank"], r["root_rank"], r["cause"]) for r in held} == {
        (0, 1, "absent rank"),
        (2, 1, "absent rank"),
    }
    for rank in (0, 2):
        assert HELD_S - 1.5 < by_rank[rank].waited_s < HELD_S + 2.0
    assert by_rank[1].caused_s > 2 * (HELD_S - 1.5)
    assert [s.rank for s in report.suspects if s.certain] == [1]
    said = capfd.readouterr().err
    assert f"rank 1 has not entered step {AT} for " in said
    assert "ranks 0 and 2 wait for it (it lives, pid " in said
    told = [r for r in job.rows("health") if r["detector"] == "wait"]
    assert {r["rank"] for r in told} == {0, 2}
    assert all(r["fault"] is None and r["signal"] == "pending" for r in told)
