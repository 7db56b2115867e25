"""A training job whose rank ``SLOW`` is slow from a step on; it ends after so many samples in all.

All ranks tell each other how many steps they have made in a file; the first that sees enough writes the
number of decided steps to end at, which all that step together reach at once.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import cascade_runtime as cascade
from cascade_runtime.job import attached
from dashboard.demo import train

SLOW, SLOW_AFTER, TIMES = 3, 40, 6.0
HELD_OUT = 99
"""Batches of a rank that there is none of."""
LEAD = 4
FOR_EVER = 10**9


def held_out_loss(model: nn.Module, seed: int) -> float:
    """Of data that nobody trained on."""
    model.eval()
    pairs = [train.batch_of(seed, HELD_OUT, i) for i in range(8)]
    with torch.no_grad():
        losses = [float(nn.CrossEntropyLoss()(model(x), y)) for x, y in pairs]
    return sum(losses) / len(losses)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--rank-steps", type=int, required=True, help="of all ranks together")
    parser.add_argument(
        "--step-ms", type=float, default=30.0, help="slept in each step, as compute"
    )
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    size = dist.get_world_size()
    inner = train.build_model(arguments.seed)
    optimizer = train.build_optimizer(inner)
    model = DistributedDataParallel(inner, bucket_cap_mb=0.1)
    loss_of = nn.CrossEntropyLoss()
    cascade.attach(model, optimizer)
    session = attached()
    assert session is not None
    member = session.member
    made = os.open(arguments.folder / "made", os.O_CREAT | os.O_RDWR, 0o600)
    goal_path, goal, step = arguments.folder / "goal", FOR_EVER, 0
    while member.decided < goal:
        step += 1
        optimizer.zero_grad()
        inputs, labels = train.batch_of(arguments.seed, rank, step)
        loss = loss_of(model(inputs), labels)
        slow = rank == SLOW and step > SLOW_AFTER
        time.sleep(arguments.step_ms / 1000 * (TIMES if slow else 1.0))
        loss.backward()
        optimizer.step()
        os.pwrite(made, step.to_bytes(8, "little"), 8 * rank)
        words = os.pread(made, 8 * size, 0)
        total = sum(int.from_bytes(words[i : i + 8], "little") for i in range(0, len(words), 8))
        if goal == FOR_EVER and goal_path.exists():
            goal = int(goal_path.read_text())
        elif rank == 0 and goal == FOR_EVER and total >= arguments.rank_steps - LEAD * size:
            goal = member.decided + LEAD
            new = goal_path.with_suffix(".new")
            new.write_text(str(goal))
            new.rename(goal_path)
    cascade.finish()
    told = {"steps": step, "loss": held_out_loss(inner, arguments.seed)}
    (arguments.folder / f"rank{rank}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main()
