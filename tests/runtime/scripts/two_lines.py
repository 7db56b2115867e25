"""An existing loop with the two lines, callbacks, and a checkpoint in the middle."""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import cascade_runtime as cascade

folder = Path(sys.argv[1])
rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
torch.manual_seed(1)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
model = cascade.attach(model, optimizer)
walks = []
cascade.on_transition(lambda view: walks.append((view.epoch, str(view.regime))))
generator = torch.Generator().manual_seed(rank)
for step in range(30):
    optimizer.zero_grad()
    model(torch.randn(4, 8, generator=generator)).square().mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step == 14 and rank == 0:
        stored = cascade.checkpoint_saved("middle")
        torch.save({"model": model.module.state_dict(), "cascade": stored}, folder / "middle.pt")
regime = cascade.regime()
cascade.finish()
(folder / f"told-{rank}.txt").write_text(f"{regime} {cascade.debt()} {walks}")
