"""Jobs whose loops are not the plain one, begun at ``start_step``; and the same in one process.

What a rank does in a step is written once: the job runs it on the DDP model, ``train_alone`` on
replicas of the bare one, whose gradients it averages.
"""

from __future__ import annotations

import argparse
import copy
import os
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import cascade_runtime as cascade
from dashboard.demo import train

SEED = 7


class Loop:
    """The plain loop; the others differ from it in one thing."""

    options: dict[str, Any] = {}  # noqa: RUF012

    def module(self) -> nn.Module:
        return train.build_model(SEED)

    def optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        return train.build_optimizer(module)

    def prepare(self, module: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        optimizer.zero_grad()

    def loss(self, net: nn.Module, rank: int, step: int, part: int = 0) -> torch.Tensor:
        inputs, labels = train.batch_of(SEED + part, rank, step)
        return nn.functional.cross_entropy(net(inputs), labels)

    def backward(self, net: nn.Module, rank: int, step: int) -> None:
        self.loss(net, rank, step).backward()

    def finish(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        optimizer.step()


class Unused(Loop):
    """Which layers run depends on rank and step."""

    options = {"find_unused_parameters": True}  # noqa: RUF012

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(SEED)
            self.first = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU())
            self.branches = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))
            self.last = nn.Linear(32, 10)

        def forward(self, inputs: torch.Tensor, rank: int, step: int) -> torch.Tensor:
            hidden = self.first(inputs)
            if step % 3 == 0:  # each rank another one
                hidden = self.branches[rank](hidden)
            elif step % 3 == 1 and rank != 0:  # one that the lowest rank does not use
                hidden = self.branches[1](hidden)
            return self.last(hidden)

    def module(self) -> nn.Module:
        return self.Net()

    def loss(self, net: nn.Module, rank: int, step: int, part: int = 0) -> torch.Tensor:
        inputs, labels = train.batch_of(SEED, rank, step)
        return nn.functional.cross_entropy(net(inputs, rank, step), labels)


class Views(Unused):
    """The same with gradients that are views of the buckets."""

    options = {"find_unused_parameters": True, "gradient_as_bucket_view": True}  # noqa: RUF012


class NoSync(Loop):
    """Three batches a step, the first two under ``no_sync``."""

    def backward(self, net: nn.Module, rank: int, step: int) -> None:
        with net.no_sync() if isinstance(net, DistributedDataParallel) else nullcontext():
            for part in (1, 2):
                self.loss(net, rank, step, part).backward()
        self.loss(net, rank, step).backward()


class Skips(Loop):
    """The optimizer leaves out every third step, as a loss scaler does."""

    def finish(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        if step % 3:
            optimizer.step()


class Adds(Skips):
    """Gradients of three steps, each of them reduced, are added before the optimizer steps."""

    def prepare(self, module: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        if step % 3 == 1:
            optimizer.zero_grad()

    def finish(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        if step % 3 == 0:
            optimizer.step()


class Scaled(Loop):
    """A loss scaler whose scale has grown when the rank comes back; a power of two changes no digit."""

    def __init__(self) -> None:
        self.scaler = torch.amp.GradScaler("cpu", init_scale=16.0, growth_interval=5)

    def backward(self, net: nn.Module, rank: int, step: int) -> None:
        loss = self.loss(net, rank, step)
        (self.scaler.scale(loss) if isinstance(net, DistributedDataParallel) else loss).backward()

    def finish(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        if not dist.is_initialized():
            optimizer.step()
            return
        self.scaler.step(optimizer)
        self.scaler.update()


class Frozen(Loop):
    """A layer is frozen long before the rank comes back."""

    def prepare(self, module: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        optimizer.zero_grad()
        if step == 5:
            module[3].requires_grad_(False)


class Closure(Loop):
    """The optimizer steps with a closure, which no newcomer can replay."""

    def finish(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        optimizer.step(lambda: 0.0)


class Clips(Loop):
    """The script changes the weights outside of the optimizer, so the log alone leads elsewhere."""

    def finish(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        optimizer.step()
        with torch.no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    parameter.clamp_(-0.02, 0.02)


class Another(Loop):
    """The rank that comes back does not train a layer that the others train."""

    def prepare(self, module: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        optimizer.zero_grad()
        if os.environ.get("CASCADE_INCARNATION", "0") != "0":
            module[3].requires_grad_(False)


LOOPS: dict[str, type[Loop]] = {
    kind.__name__: kind
    for kind in (Loop, Unused, Views, NoSync, Skips, Adds, Scaled, Frozen, Closure, Clips, Another)
}


def train_alone(name: str, steps: dict[int, list[int]]) -> dict[str, torch.Tensor]:
    """Final state (float64) after the given ranks trained each step."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    try:
        loop = LOOPS[name]()
        module = loop.module()
        optimizer = loop.optimizer(module)
        for step in sorted(steps):
            loop.prepare(module, optimizer, step)
            _average(loop, module, sorted(steps[step]), step)
            loop.finish(optimizer, step)
        return module.state_dict()
    finally:
        torch.set_default_dtype(torch.float32)


def _average(loop: Loop, module: nn.Module, ranks: list[int], step: int) -> None:
    """The mean of what the ranks add to the gradients; buffers are the lowest rank's."""
    replicas = [copy.deepcopy(module) for _ in ranks]
    for rank, replica in zip(ranks, replicas, strict=True):
        replica.zero_grad()
        loop.backward(replica, rank, step)
    for parameter, *theirs in zip(module.parameters(), *(r.parameters() for r in replicas),
                                  strict=True):  # fmt: skip
        gradients = [p.grad for p in theirs if p.grad is not None]
        if gradients:
            mean = sum(gradients) / len(ranks)
            parameter.grad = mean if parameter.grad is None else parameter.grad + mean
    with torch.no_grad():
        for mine, told in zip(module.buffers(), replicas[0].buffers(), strict=True):
            mine.copy_(told)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--loop", choices=LOOPS, required=True)
    parser.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    loop = LOOPS[arguments.loop]()
    model = DistributedDataParallel(loop.module(), bucket_cap_mb=0.01, **loop.options)
    optimizer = loop.optimizer(model)
    for step in range(cascade.start_step() + 1, arguments.steps + 1):
        loop.prepare(model.module, optimizer, step)
        loop.backward(model, rank, step)
        loop.finish(optimizer, step)
        time.sleep(0.015)
    if arguments.save:
        arguments.save.mkdir(parents=True, exist_ok=True)
        torch.save(model.module.state_dict(), arguments.save / f"rank{rank}.pt")


if __name__ == "__main__":
    main()
