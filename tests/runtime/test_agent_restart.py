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
from tests.runtime.jobs import FinishedJob
from tests.runtime.policies import policy_with

LATER = {("walk", "stable_rounds"): 60}
"""Steps up to the climb: the agent is killed well before, on a busy machine too."""

SCRIPT = """
import os, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import cascade_runtime as cascade
from dashboard.demo import train

torch.set_num_threads(1)
dist.init_process_group("gloo")
model = DistributedDataParallel(train.build_model(7), bucket_cap_mb=0.1)
optimizer = train.build_optimizer(model)
cascade.attach(model, optimizer)
last = 1500  # a restart takes as long as it takes on a busy machine; who never climbs ends here

def on_transition(view):
    global last
    if view.regime > view.from_regime:
        last = view.cut_step + 10  # the same step on every rank

cascade.on_transition(on_transition)
step = 0
while step < last:
    step += 1
    inputs, labels = train.batch_of(7, int(os.environ["RANK"]), step)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    time.sleep(0.03)
"""

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(90)]


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_job_in_causal_climbs_although_its_leader_was_started_again(
    zygote: Path, tmp_path: Path, hosts: int
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    config = make_config(
        [str(script)], num_ranks=4, num_hosts=hosts, trace_dir=tmp_path / "trace", zygote=zygote,
        policy=str(policy_with(LATER, tmp_path / "policy.toml")),
    )  # fmt: skip
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
        # In CAUSAL all have told their digests with the first step, and climb steps later.
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
