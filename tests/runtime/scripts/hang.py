"""A job in which one rank sleeps for ever in its own code between two steps."""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, required=True)
parser.add_argument("--rank", type=int, required=True)
parser.add_argument("--at", type=int, required=True)
arguments = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(3)
dist.init_process_group("gloo")
rank = dist.get_rank()
model = nn.parallel.DistributedDataParallel(nn.Linear(32, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(1, arguments.steps + 1):
    while rank == arguments.rank and step == arguments.at:
        time.sleep(1.0)
    optimizer.zero_grad()
    model(torch.randn(16, 32)).square().mean().backward()
    optimizer.step()
    time.sleep(0.005)
