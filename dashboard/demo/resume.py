"""A DistributedDataParallel job that saves with torch.distributed.checkpoint, and resumes as told.

``--save`` trains, saves after every 20 steps and ends as a power cut would end it. ``--resume NAME`` goes on
from that checkpoint; the generator was saved under one name for all ranks, and the position in the data
is not asked for: both as people write it.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import cascade_runtime as cascade
from cascade_runtime import dcp
from dashboard.demo.train import BATCH, batch_of

EVERY = 20


def main() -> None:
    """Train and save, or resume and train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True, help="of all checkpoints")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--pause-ms", type=float, default=0.0)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--resume", metavar="NAME")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loss_of = nn.CrossEntropyLoss()
    torch.manual_seed(1000 + rank)
    position = 0
    if arguments.resume:
        resume(arguments.folder / arguments.resume, net, f"part-{rank}")
    for step in range(1, arguments.steps + 1):
        inputs, labels = batch_of(7, rank, position)
        optimizer.zero_grad()
        loss_of(model(inputs), labels).backward()
        optimizer.step()
        position += BATCH * world
        if arguments.save and step % EVERY == 0:
            state = {"model": net.state_dict(), "rng": torch.get_rng_state()}
            dcp.save(
                state,
                checkpoint_id=arguments.folder / f"step-{step}",
                data_position=position,
                data_shard=f"part-{rank}",
            )
            dist.barrier()
        time.sleep(arguments.pause_ms / 1000)
    if arguments.save:
        os.kill(os.getpid(), signal.SIGKILL)


def resume(checkpoint: Path, net: nn.Module, shard: str) -> None:
    """From a checkpoint, with what was saved under "rng", at the beginning of the data."""
    state: dict[str, Any] = {"model": net.state_dict(), "rng": torch.get_rng_state()}
    dcp.load(state, checkpoint_id=checkpoint)
    torch.set_rng_state(state["rng"])
    cascade.checkpoint_loaded(folder=checkpoint, data_position=0, data_shard=shard)


if __name__ == "__main__":
    main()
