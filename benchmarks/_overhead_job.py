"""What every rank of the overhead benchmarks runs, under the agent; _overhead.py starts it.

Three models of one shape and seed, in the same processes: ``plain`` and ``plain again`` are
DistributedDataParallel as it comes, ``ours`` is attached. Blocks of steps take turns between them, and
``alone`` is the plain model without communication. While a block is not ours, the agent is stopped
(SIGSTOP): a plain step must not pay for our process.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import cascade_runtime as cascade
from benchmarks import _harness
from cascade_runtime.job import members

SEED = 7
CLASSES = 10
SETTLE_STEPS = 3
"""Steps of each block that are not counted: the other model's data is still in the caches."""
STAND_STILL_S = 2.0


class Agent:
    """The host agent's process, from inside the job.

    Args:
        watched: let it go on when this process dies, or nobody would ever end the job.
    """

    def __init__(self, *, watched: bool) -> None:
        run_dir = Path(os.environ["CASCADE_RUN_DIR"])
        self._pid = int((run_dir / f"agent-{os.environ['CASCADE_AGENT']}.pid").read_text())
        if watched:
            then = ["sh", "-c", f"cat >/dev/null; kill -CONT {self._pid}"]
            self._watch = subprocess.Popen(then, stdin=subprocess.PIPE)

    def cpu_ns(self) -> int:
        """User and system time of all its threads so far."""
        return time.clock_gettime_ns((~self._pid << 3) | 2)  # clock_getcpuclockid(3)

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        os.kill(self._pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._pid, signal.SIGCONT)


class Trainee:
    """A model, its optimizer and what one step is."""

    def __init__(self, width: int, depth: int, batch: int) -> None:
        torch.manual_seed(SEED)
        layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
        self.model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(width, CLASSES)))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        generator = torch.Generator().manual_seed(dist.get_rank())
        self._inputs = torch.randn(batch, width, generator=generator)
        self._labels = torch.randint(CLASSES, (batch,), generator=generator)
        self._loss_of = nn.CrossEntropyLoss()

    def num_parameters(self) -> int:
        return sum(p.numel() for p in self.model.parameters())

    def step(self) -> None:
        self.optimizer.zero_grad()
        self._loss_of(self.model(self._inputs), self._labels).backward()
        self.optimizer.step()

    def step_alone(self) -> None:
        with self.model.no_sync():
            self.step()

    def level(self) -> None:
        """Equal on all ranks again."""
        for parameter in self.model.parameters():
            dist.broadcast(parameter.data, 0)
            dist.broadcast(self.optimizer.state[parameter]["momentum_buffer"], 0)


class Timer:
    """Times blocks of steps and stretches of nothing."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def block(self, step: Callable[[], None], num_steps: int) -> dict[str, object]:
        """Wall time of every step; CPU time of this rank, and of the agent, over all of them."""
        for _ in range(SETTLE_STEPS):
            step()
        dist.barrier()
        agent, rank = self._agent.cpu_ns(), time.process_time_ns()
        stamps = [time.perf_counter_ns()]
        for _ in range(num_steps):
            step()
            stamps.append(time.perf_counter_ns())
        rank, agent = time.process_time_ns() - rank, self._agent.cpu_ns() - agent
        dist.barrier()
        step_ns = [b - a for a, b in itertools.pairwise(stamps)]
        return {"step_ns": step_ns, "rank_cpu_ns": rank, "agent_cpu_ns": agent}

    def stand_still(self) -> dict[str, float]:
        """CPU time that this rank, and the agent, use in a second without a step."""
        dist.barrier()
        agent, rank = self._agent.cpu_ns(), time.process_time_ns()
        time.sleep(STAND_STILL_S)
        rank, agent = time.process_time_ns() - rank, self._agent.cpu_ns() - agent
        dist.barrier()
        return {"rank": rank / STAND_STILL_S / 1e9, "agent": agent / STAND_STILL_S / 1e9}


def blocks(
    timer: Timer, agent: Agent, trainees: dict[str, Trainee], num_steps: int
) -> dict[str, Callable[[], dict[str, object]]]:
    """The four arms."""
    first = dist.get_rank() == 0

    def without_agent(step: Callable[[], None], steps: int) -> dict[str, object]:
        with agent.stopped() if first else contextlib.nullcontext():
            dist.barrier()
            return timer.block(step, steps)

    def alone() -> dict[str, object]:
        found = without_agent(trainees["plain"].step_alone, max(num_steps // 5, 2))
        trainees["plain"].level()
        return found

    return {
        "plain": functools.partial(without_agent, trainees["plain"].step, num_steps),
        "ours": functools.partial(timer.block, trainees["ours"].step, num_steps),
        "plain again": functools.partial(without_agent, trainees["plain again"].step, num_steps),
        "alone": alone,
    }


def main() -> None:
    options = argparse.ArgumentParser()
    for name in ("width", "depth", "batch", "steps", "repeats"):
        options.add_argument(f"--{name}", type=int, required=True)
    options.add_argument("--out", type=Path, required=True)
    args = options.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    agent = Agent(watched=rank == 0)
    timer = Timer(agent)
    trainees = {
        name: Trainee(args.width, args.depth, args.batch)
        for name in ("plain", "ours", "plain again")
    }
    before = timer.stand_still()
    cascade.attach(trainees["ours"].model, trainees["ours"].optimizer)
    dist.barrier()  # all are attached before the agent is stopped for the first time
    arms = blocks(timer, agent, trainees, args.steps)
    for arm in arms.values():
        arm()  # warm-up: buckets are cut anew after the first step, memory is touched
    found = _harness.alternate(arms, args.repeats, say=rank == 0)
    told = {
        "num_parameters": trainees["ours"].num_parameters(),
        "num_attached_steps": (args.repeats + 1) * (args.steps + SETTLE_STEPS),
        "still": {"before attach": before, "attached": timer.stand_still()},
        "regime": cascade.regime().value,
        "num_members": len(members()),
        "blocks": found,
    }
    (args.out / f"rank-{rank}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main()
