"""A bug that no error tells of: one rank repairs itself from its own snapshot, and tells nobody.

Every rank keeps a snapshot of its model, taken every 10 steps. When a batch makes no sense, the rank puts
the snapshot back and goes on: reasonable in a job of one process. In DistributedDataParallel the others did
not go back. From then on gradients of two different models are averaged; no collective fails, the loss falls
on, and whose checkpoint is saved decides which model it was.

    cascade run --observe -n 4 examples/silent_restore.py

CASCADE changes nothing in it (--observe), and its referee names the rank and the step.
"""

from __future__ import annotations

import argparse
import copy
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH, FEATURES, CLASSES = 32, 32, 4


def batch_of(rank: int, step: int, bad: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs (BATCH, FEATURES) float32 and labels (BATCH,) int64; a bad batch came damaged from disk."""
    generator = torch.Generator().manual_seed(1_000 * rank + step)
    inputs = torch.randn(BATCH, FEATURES, generator=generator)
    labels = inputs[:, :CLASSES].argmax(dim=1)
    return (inputs * float("inf") if bad else inputs), labels


def main() -> None:
    """Train; the damaged batch is rank 2's, in step 25."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--bad-rank", type=int, default=2, help="-1: nothing is damaged")
    parser.add_argument("--bad-step", type=int, default=25)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(7)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    net = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loss_of = nn.CrossEntropyLoss()
    snapshot = copy.deepcopy(net.state_dict())
    for step in range(1, arguments.steps + 1):
        if step % 10 == 0:
            snapshot = copy.deepcopy(net.state_dict())
        bad = rank == arguments.bad_rank and step == arguments.bad_step
        inputs, labels = batch_of(rank, step, bad)
        if not inputs.isfinite().all():
            net.load_state_dict(snapshot)  # the bug: the other ranks keep their newer parameters
            inputs, labels = batch_of(rank, step, bad=False)
        optimizer.zero_grad()
        loss = loss_of(model(inputs), labels)
        loss.backward()
        optimizer.step()
        time.sleep(0.01)
    print(f"rank {rank}: {arguments.steps} steps, loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
