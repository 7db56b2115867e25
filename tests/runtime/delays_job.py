"""A small job whose ranks are slow for a while, each by its own plan; it keeps what cohorts did apart.

It ends at the number of decided steps that somebody writes to ``goal`` in the control folder, where each
rank tells how many steps it has made itself (``rank<N>``).
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import cascade_runtime as cascade
from cascade_runtime.job import attached
from cascade_runtime.rank.reducer import StepReducer
from dashboard.demo import train

FOR_EVER = 10**9
SEED = 7


def build_model() -> nn.Module:
    """Small: its deltas are kept."""
    torch.manual_seed(SEED)
    return nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))


def flat(model: nn.Module) -> torch.Tensor:
    """All parameters, in registration order."""
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


class Notes:
    """What this rank was and did each time that cohorts were apart."""

    def __init__(self, model: nn.Module, rank: int) -> None:
        self._model, self._rank = model, rank
        self._before = torch.empty(0)
        self._of: Any = None
        self._counts = False
        """The step under way goes into the sums of the newest parting."""
        self.partings: list[dict[str, Any]] = []
        """Each: where it began, the authors, the base, deltas of this author, and what all became."""

    def before(self, *ignored: object) -> None:
        """The optimizer is about to step."""
        del ignored
        session = attached()
        assert session is not None
        member, self._before = session.member, flat(self._model)
        sums = cast("StepReducer", session.stepper)._apart.sums
        # A view may part cohorts between a step's decision and this: such a step is in the base to come.
        self._counts = sums is not None
        if sums is not None and sums is not self._of:
            self._of = sums
            self.partings.append(
                {
                    "at": [list(d) for d in map(_triple, member._parted_at.dots())],
                    "authors": [min(c).rank for c in member.view.cohorts],
                    "base": torch.cat([r.base for r in sums._regions]).clone(),
                    "deltas": [],
                    "weight": member.weight,
                    "folded": None,
                }
            )
        elif sums is None and self.partings and self.partings[-1]["folded"] is None:
            self.partings[-1]["folded"] = self._before

    def after(self, *ignored: object) -> None:
        """It has stepped, and nothing is folded yet."""
        del ignored
        session = attached()
        assert session is not None
        member = session.member
        if self._counts and member.is_apart and member.last_dots[-1].rank == self._rank:
            self.partings[-1]["deltas"].append(flat(self._model) - self._before)


def _triple(dot: Any) -> tuple[int, int, int]:
    return dot.rank, dot.incarnation, dot.counter


def factor(plan: list[list[Any]], rank: int, step: int) -> tuple[float, str]:
    """How many times as long as usual this rank takes for its own ``step``, and where in it."""
    for who, first, last, times, where in plan:
        if who == rank and first <= step <= last:
            return times, where
    return 1.0, "forward"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--control", type=Path, required=True)
    parser.add_argument("--plan", default="[]", help="[[rank, first, last, times, where], ...]")
    parser.add_argument("--step-ms", type=float, default=12.0)
    parser.add_argument("--adamw", action="store_true")
    parser.add_argument("--clamps", action="store_true")
    parser.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    plan = json.loads(arguments.plan)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    inner = build_model()
    optimizer: torch.optim.Optimizer
    if arguments.adamw:
        optimizer = torch.optim.AdamW(inner.parameters(), lr=0.01)
    else:
        optimizer = train.build_optimizer(inner)
    notes = Notes(inner, rank)
    optimizer.register_step_post_hook(notes.after)
    model = DistributedDataParallel(inner, bucket_cap_mb=0.004)
    loss_of = nn.CrossEntropyLoss()
    cascade.attach(model, optimizer)
    optimizer.register_step_pre_hook(notes.before)
    session = attached()
    assert session is not None
    member = session.member
    told = os.open(arguments.control / f"rank{rank}", os.O_CREAT | os.O_WRONLY, 0o600)
    goal_path, goal, step = arguments.control / "goal", FOR_EVER, 0
    while member.decided < goal:
        step += 1
        times, where = factor(plan, rank, step)
        pause_s = arguments.step_ms / 1000 * times
        if where == "data":
            time.sleep(pause_s)
        optimizer.zero_grad()
        inputs, labels = train.batch_of(SEED, rank, step)
        loss = loss_of(model(inputs), labels)
        if where == "forward":
            time.sleep(pause_s)
        loss.backward()
        optimizer.step()
        if arguments.clamps:
            with torch.no_grad():
                for parameter in inner.parameters():
                    parameter.clamp_(-0.2, 0.2)
        if where == "after":
            time.sleep(pause_s)
        os.pwrite(told, step.to_bytes(8, "little"), 0)
        if goal == FOR_EVER and goal_path.exists():
            goal = int(goal_path.read_text())
    cascade.finish()
    arguments.save.mkdir(parents=True, exist_ok=True)
    if notes.partings and notes.partings[-1]["folded"] is None:
        notes.partings[-1]["folded"] = flat(inner)
    told_of = {"decided": member.decided, "partings": notes.partings}
    torch.save(told_of, arguments.save / f"notes{rank}.deltas")
    state = {k: v.clone() for k, v in inner.state_dict().items()}
    torch.save(state, arguments.save / f"rank{rank}.pt")


if __name__ == "__main__":
    main()
