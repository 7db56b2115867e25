"""A plain DistributedDataParallel job, as anybody writes it.

All that it knows of CASCADE is where its loop begins and how far the job is: a rank that comes later goes
on where the others are.

A student network learns a fixed teacher from seeded data; rank r's batch of step s depends on
(seed, r, s) alone, so a run can be computed again without the contributions that a dead rank never
made.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import cascade_runtime as cascade

WIDTH, CLASSES, BATCH = 256, 10, 64


def build_model(seed: int) -> nn.Module:
    """The student, the same on every rank before training."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(64, WIDTH),
        nn.BatchNorm1d(WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, CLASSES),
    )


def build_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """SGD with momentum."""
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def batch_of(seed: int, rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs (BATCH, 64) of the default dtype and labels (BATCH,) int64 of one rank's step."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + rank * 10_007 + step)
    inputs = torch.randn(BATCH, 64, generator=generator)
    teacher = torch.randn(64, CLASSES, generator=torch.Generator().manual_seed(seed))
    return inputs, (inputs @ teacher).argmax(dim=1)


def main() -> None:
    """Train, say how it goes, save the parameters where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--save", type=Path, help="folder for each rank's final parameters")
    parser.add_argument(
        "--pause-ms", type=float, default=0.0, help="per step, for watching it live"
    )
    parser.add_argument("--late-rank", type=int, default=-1, help="the rank that comes late ...")
    parser.add_argument("--late-ms", type=float, default=50.0, help="... by this, asleep ...")
    parser.add_argument("--late-steps", default="1-0", help="... in the steps FIRST-LAST")
    parser.add_argument("--cold-steps", type=int, default=0, help="a rank that joins is slow ...")
    parser.add_argument("--cold-ms", type=float, default=300.0, help="... by this, so often")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.set_default_dtype(getattr(torch, arguments.dtype))
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    model = DistributedDataParallel(build_model(arguments.seed), bucket_cap_mb=0.1)
    optimizer = build_optimizer(model)
    loss_of = nn.CrossEntropyLoss()
    loss = torch.zeros(())
    first_late, last_late = (int(step) for step in arguments.late_steps.split("-"))
    step = joined_at = cascade.start_step()
    num_cold = arguments.cold_steps if joined_at else 0
    while step < arguments.steps:
        step += 1
        inputs, labels = batch_of(arguments.seed, rank, step)
        if rank == arguments.late_rank and first_late <= step <= last_late:
            time.sleep(arguments.late_ms / 1000)  # as a slow reader of its data would
        if num_cold > 0:
            num_cold -= 1
            time.sleep(arguments.cold_ms / 1000)  # as one whose data is not in any cache yet
        optimizer.zero_grad()
        loss = loss_of(model(inputs), labels)
        loss.backward()
        optimizer.step()
        step = max(
            step, cascade.decided_steps()
        )  # who has stepped by itself counts on with the others
        if arguments.pause_ms:
            time.sleep(arguments.pause_ms / 1000)
    print(f"rank {rank}: {arguments.steps} steps, loss {loss.item():.4f}", flush=True)
    if arguments.save:
        arguments.save.mkdir(parents=True, exist_ok=True)
        torch.save(model.module.state_dict(), arguments.save / f"rank{rank}.pt")


if __name__ == "__main__":
    main()
