"""A job in which one rank is late for some of its steps, and sometimes holds its interpreter lock."""

import argparse
import ctypes
import time

import torch
import torch.distributed as dist
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, required=True)
parser.add_argument("--pause-ms", type=float, default=5.0)
parser.add_argument("--late-rank", type=int, default=-1)
parser.add_argument("--late-ms", type=float, default=50.0)
parser.add_argument("--late-from", type=int, default=0)
parser.add_argument("--late-until", type=int, default=1 << 60)
parser.add_argument("--hold-at", type=int, default=-1)
arguments = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(3)
dist.init_process_group("gloo")
rank = dist.get_rank()
model = nn.parallel.DistributedDataParallel(
    nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 8)), bucket_cap_mb=0.02
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(1, arguments.steps + 1):
    optimizer.zero_grad()
    loss = model(torch.randn(16, 32)).square().mean()
    if rank == arguments.late_rank:
        if arguments.late_from <= step < arguments.late_until:
            time.sleep(arguments.late_ms / 1000)
        if step == arguments.hold_at:
            ctypes.PyDLL(None).usleep(1_000_000)  # PyDLL: the lock is kept for the whole call
    loss.backward()
    optimizer.step()
    time.sleep(arguments.pause_ms / 1000)
print(f"rank {rank}: {arguments.steps} steps", flush=True)
