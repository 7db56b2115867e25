"""The leading agent dies while debts are open: what its ranks told it once must not be lost with it."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from cascade_runtime.agent.launcher import Launcher, make_config, read_memory
from cascade_runtime.progress import read_progress
from cascade_runtime.vocabulary.identity import Actor
from dashboard.demo import train
from tests.runtime.jobs import FinishedJob

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(90)]


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_job_in_causal_climbs_although_its_leader_was_started_again(
    zygote: Path, tmp_path: Path, hosts: int
) -> None:
    command = [str(train.__file__), "--steps", "150", "--pause-ms", "20"]
    config = make_config(
        command, num_ranks=4, num_hosts=hosts, trace_dir=tmp_path / "trace", zygote=zygote
    )
    launcher = Launcher(config)
    over = threading.Event()
    struck: list[str] = []

    def decided(rank: int) -> int:
        progress = read_progress(config.progress_path(Actor(rank)))
        return progress.decided if progress and progress.phase == "waiting" else -1

    def strike() -> None:
        while not over.wait(0.001):
            if decided(3) >= 10:
                os.kill(launcher.rank_pids()[Actor(3)], signal.SIGKILL)
                break
        while not over.wait(0.001) and len(read_memory(config, 0).views) < 2:
            continue
        # In CAUSAL all have told their digests with the first step, and climb after the fifth.
        first = decided(1)
        while not over.wait(0.001):
            first = first if first >= 0 else decided(1)
            if 0 <= first < decided(1) - 1:
                struck.append(str(read_memory(config, 0).views[-1].regime))
                os.kill(launcher.agent_pids[0], signal.SIGKILL)
                return

    thread = threading.Thread(target=strike)
    thread.start()
    outcome = launcher.run()
    over.set()
    thread.join()
    assert struck == ["CAUSAL"]
    assert outcome.finished == [0, 1, 2]
    assert outcome.exit_code == 0
    job = FinishedJob(outcome, tmp_path / "trace", tmp_path / "saved")
    walked = [
        (r["from_regime"], r["to_regime"])
        for r in sorted(job.rows("transitions"), key=lambda r: r["seq"])
        if r["rank"] == 1 and r["phase"] == "committed" and r["from_regime"] != r["to_regime"]
    ]
    assert walked == [("STRONG", "CAUSAL"), ("CAUSAL", "STRONG")]
    assert job.verdict() == "ok", [v.sentence for v in job.report.violations]
    assert (job.report.debt.opened, job.report.debt.open) == (2, 0)
