"""A job with one rank that is slow until it has stepped by itself for a while.

It ends when the job has decided ``--goal`` steps, which all ranks that step together do at once.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import cast

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import cascade_runtime as cascade
from cascade_runtime.job import attached
from cascade_runtime.rank.reducer import StepReducer
from dashboard.demo import train


class Notes:
    """What the test wants to know of one rank: when it stepped, and its deltas while apart."""

    def __init__(self, rank: int, model: nn.Module, folder: Path) -> None:
        self._rank, self._model, self._folder = rank, model, folder
        self._before: list[torch.Tensor] = []
        self._counts = False
        """The step under way goes into this cohort's sum."""
        self.base: list[torch.Tensor] = []
        self.folded: list[torch.Tensor] = []
        """Parameters when the optimizer steps for the first time with all again."""
        self.deltas: list[list[torch.Tensor]] = []
        """Of an author: what each step moved, not weighted."""
        self.steps: list[tuple[float, int, int]] = []
        """(s, number, cohorts) of each."""

    def before(self, *ignored: object) -> None:
        del ignored
        session = attached()
        assert session is not None
        self._before = [p.detach().clone() for p in self._model.parameters()]
        # A view may part cohorts between a step's decision and this: such a step is in the base to come.
        sums = cast("StepReducer", session.stepper)._apart.sums
        self._counts = session.member.is_apart and sums is not None
        if self._counts:
            self.base = self.base or self._before
        elif not session.member.is_apart and self.base and not self.folded:
            self.folded = self._before

    def after(self, *ignored: object) -> None:
        del ignored
        session = attached()
        if session is None:
            return  # a newcomer replays what the members have done
        member = session.member
        self.steps.append((time.monotonic(), member.decided, len(member.view.cohorts)))
        if self._counts and member.actor == member.author:
            now = [p.detach() for p in self._model.parameters()]
            delta = [a - b for a, b in zip(now, self._before, strict=True)]
            self.deltas.append(delta)

    def save(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"notes{self._rank}"
        path.with_suffix(".json").write_text(json.dumps(self.steps))
        told = {"base": self.base, "deltas": self.deltas, "folded": self.folded}
        torch.save(told, path.with_suffix(".deltas"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--goal", type=int, default=120)
    parser.add_argument("--slow", type=int, default=2)
    parser.add_argument("--step-ms", type=float, default=25.0)
    parser.add_argument("--times", type=float, default=6.0)
    parser.add_argument("--alone", type=int, default=8, help="slow for so many steps by itself")
    parser.add_argument("--adamw", action="store_true")
    parser.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    inner = train.build_model(7)
    optimizer: torch.optim.Optimizer
    if arguments.adamw:
        optimizer = torch.optim.AdamW(inner.parameters(), lr=0.01)
    else:
        optimizer = train.build_optimizer(inner)
    notes = Notes(rank, inner, arguments.save)
    optimizer.register_step_post_hook(notes.after)
    model = DistributedDataParallel(inner, bucket_cap_mb=0.1)
    loss_of = nn.CrossEntropyLoss()
    cascade.attach(model, optimizer)
    optimizer.register_step_pre_hook(notes.before)
    session = attached()
    assert session is not None
    member = session.member
    step = alone = 0
    while member.decided < arguments.goal:
        step += 1
        optimizer.zero_grad()
        inputs, labels = train.batch_of(7, rank, step)
        loss = loss_of(model(inputs), labels)
        alone += len(member.view.cohorts) > 1
        slow = rank == arguments.slow and alone <= arguments.alone
        time.sleep(arguments.step_ms / 1000 * (arguments.times if slow else 1.0))
        loss.backward()
        optimizer.step()
    cascade.finish()
    notes.save()
    state = {k: v.clone() for k, v in inner.state_dict().items()}
    torch.save(state, arguments.save / f"rank{rank}.pt")


if __name__ == "__main__":
    main()
