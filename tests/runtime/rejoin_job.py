"""A job whose loop begins at ``start_step``; optimizer, schedule and clipping by name.

The reference of the same recipe is trained by ``train_recipe``.
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
from torch.optim import lr_scheduler

import cascade_runtime as cascade
from dashboard.demo import train

RECIPES = ("sgd", "adamw", "one_cycle", "chained")


class Recipe:
    """An optimizer with what a user's loop does around its step."""

    def __init__(self, name: str, model: nn.Module) -> None:
        self._model = model
        self._clips = name != "sgd"
        self._schedulers: list[lr_scheduler.LRScheduler] = []
        if name == "sgd":
            self.optimizer: torch.optim.Optimizer = train.build_optimizer(model)
        elif name == "adamw":
            self.optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
            self._schedulers = [lr_scheduler.StepLR(self.optimizer, 7, 0.7)]
        elif name == "one_cycle":
            matrices = [p for p in model.parameters() if p.ndim > 1]
            vectors = [p for p in model.parameters() if p.ndim <= 1]
            self.optimizer = torch.optim.SGD(
                [{"params": matrices, "weight_decay": 0.01}, {"params": vectors}],
                lr=0.01, momentum=0.9, nesterov=True,
            )  # fmt: skip
            self._schedulers = [
                lr_scheduler.OneCycleLR(self.optimizer, max_lr=[0.05, 0.02], total_steps=1000)
            ]
        else:
            self.optimizer = torch.optim.Adam(model.parameters(), lr=0.01, amsgrad=True)
            parts = [
                lr_scheduler.LinearLR(self.optimizer, 0.2, total_iters=15),
                lr_scheduler.MultiStepLR(self.optimizer, [3, 5, 9], 0.8),
            ]
            self._schedulers = [lr_scheduler.SequentialLR(self.optimizer, parts, [12])]

    def step(self) -> None:
        if self._clips:
            nn.utils.clip_grad_norm_(self._model.parameters(), 0.5)
        self.optimizer.step()
        for scheduler in self._schedulers:
            scheduler.step()


def last_step(most: int, told: Path | None) -> int:
    """The step to end with: ``most``, or the one in the file ``told`` once it is there."""
    return min(most, int(told.read_text())) if told is not None and told.exists() else most


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--recipe", choices=RECIPES, default="sgd")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--pause-ms", type=float, default=15.0)
    parser.add_argument("--from-zero", action="store_true", help="start_step is not asked")
    parser.add_argument("--until", type=Path, help="holds the last step, as soon as it is known")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    model = DistributedDataParallel(train.build_model(7), bucket_cap_mb=0.1)
    recipe = Recipe(arguments.recipe, model)
    loss_of = nn.CrossEntropyLoss()
    first = 0 if arguments.from_zero else cascade.start_step()
    for step in range(first + 1, arguments.steps + 1):
        if step > last_step(arguments.steps, arguments.until):
            break
        inputs, labels = train.batch_of(7, rank, step)
        recipe.optimizer.zero_grad()
        loss_of(model(inputs), labels).backward()
        recipe.step()
        time.sleep(arguments.pause_ms / 1000)
    if arguments.save:
        arguments.save.mkdir(parents=True, exist_ok=True)
        torch.save(model.module.state_dict(), arguments.save / f"rank{rank}.pt")


if __name__ == "__main__":
    main()
