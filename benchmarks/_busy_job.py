"""What every rank of the fault benchmarks runs: matrix products on a processor that others want too.

``--hold-every N``: in every N-th step one rank, in turn, holds its interpreter lock for a second.
"""

from __future__ import annotations

import argparse
import ctypes
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

HOLD_US = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--hold-every", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(7)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    width = arguments.width
    layers = [nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(width, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    inputs = torch.randn(arguments.batch, width)
    began = time.monotonic()
    for step in range(1, arguments.steps + 1):
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        turn, left = divmod(step, arguments.hold_every or arguments.steps + 1)
        if left == 0 and turn % world == rank:
            ctypes.PyDLL(None).usleep(HOLD_US)  # PyDLL: the lock is kept for the whole call
        loss.backward()
        optimizer.step()
        # The same step on every rank: the clock of the slowest would tear them apart.
        if step % 50 == 0 and time.monotonic() - began > arguments.seconds:
            break


if __name__ == "__main__":
    main()
