"""A job that saves with torch.distributed.checkpoint and resumes, rightly or not.

    resumes.py FOLDER first|MODE

``first`` saves after steps 5 and 10 and is killed. Then it resumes, MODE: ``right``; ``older``: from
step 5; ``rng``: with the generator that was saved under one name for all; ``position``: from the
beginning of the data; ``shares``: with the data of ranks that are no more shared among those there are;
``alone``: rank 0 alone says what it has loaded.
"""

import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import cascade_runtime as cascade
from cascade_runtime import dcp

folder, mode = Path(sys.argv[1]), sys.argv[2]
BATCH = 4
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
model = DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(), torch.nn.Linear(8, 1))
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(100 + rank)
position, shard = 0, f"part-{rank}"


def state():
    return {"model": model.module.state_dict(), "rng": torch.get_rng_state()}


if mode != "first":
    saved = folder / ("step-5" if mode == "older" else "step-10")
    found = state()
    record = dcp.load(found, checkpoint_id=saved)
    position, shard = record.data_position, record.data_shard
    if mode == "rng":
        torch.set_rng_state(found["rng"])
    if mode == "position":
        position = 0
    if mode == "shares" and rank == 0:
        shard = f"part-0, part-{world}"
    if mode != "alone" or rank == 0:
        cascade.checkpoint_loaded(folder=saved, data_position=position, data_shard=shard)
for step in range(1, 11):
    optimizer.zero_grad()
    generator = torch.Generator().manual_seed(position * 100 + rank)
    model(torch.randn(BATCH, 8, generator=generator)).square().mean().backward()
    optimizer.step()
    position += BATCH * world
    if mode == "first" and step in (5, 10):
        dcp.save(
            state(),
            checkpoint_id=folder / f"step-{step}",
            data_position=position,
            data_shard=shard,
        )
        dist.barrier()
    if mode == "first" and step == 10:
        os.kill(os.getpid(), signal.SIGKILL)
text = repr([p.tolist() for p in model.parameters()])
(folder / f"{mode}-{rank}.txt").write_text(text)
