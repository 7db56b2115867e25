"""Models and loops that are not the plain one; ``--case`` names which.

A copy of the model is trained first under plain DDP for ``--plain`` steps, then the attached one from
the same start with the same batches, so that both can be compared. After that the attached one goes on,
and the rank of ``--die`` ends itself by SIGKILL in the middle of a backward.
"""

import argparse
import copy
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import cascade_runtime as cascade

BUCKET_MB = 0.0005
"""So small that each of the little layers has a bucket of its own."""


def batch(step: int, part: int = 0) -> torch.Tensor:
    """(8, 16) of this rank's ``step``."""
    generator = torch.Generator().manual_seed(step * 1009 + dist.get_rank() * 31 + part)
    return torch.randn(8, 16, generator=generator)


class Case:
    """The plain model and loop; the others differ from it in one thing or some."""

    options: dict[str, Any] = {}  # noqa: RUF012
    plain_options: dict[str, Any] = {}  # noqa: RUF012

    def module(self) -> nn.Module:
        return nn.Sequential(
            nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 16), nn.Linear(16, 4)
        )

    def plain(self, module: nn.Module) -> DistributedDataParallel:
        options = self.options | self.plain_options
        return DistributedDataParallel(module, bucket_cap_mb=BUCKET_MB, **options)

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def before(self, ddp: DistributedDataParallel) -> None:
        """Done to the attached model before it is attached."""

    def after(self, ddp: DistributedDataParallel) -> None:
        """Done to the attached model after that."""

    def step(self, ddp: DistributedDataParallel, optimizer: Any, step: int) -> None:
        optimizer.zero_grad()
        ddp(batch(step)).square().mean().backward()
        optimizer.step()

    def loop(self, ddp: DistributedDataParallel, optimizer: Any, steps: range) -> None:
        for step in steps:
            self.step(ddp, optimizer, step)


# ---- what works ------------------------------------------------------------------------------------


class OddTensors(Case):
    """Parameters of many dtypes, one without elements, one frozen; buffers of odd sizes, replaced."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(16, 16)
            self.narrow = nn.Linear(16, 16, dtype=torch.bfloat16)
            self.wide = nn.Linear(16, 16, dtype=torch.float64)
            self.turn = nn.Parameter(torch.randn(16, dtype=torch.complex64))
            self.nothing = nn.Parameter(torch.zeros(0, 16))
            self.fixed = nn.Parameter(torch.randn(16), requires_grad=False)
            self.register_buffer("seen", torch.zeros(3, dtype=torch.bool))
            self.register_buffer("empty", torch.zeros(0))
            self.register_buffer("mean", torch.zeros(16))
            self.register_buffer("none", None)
            self.register_buffer("angle", torch.zeros(5, dtype=torch.complex64))
            self.register_buffer("count", torch.tensor(0))

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            hidden = self.first(inputs)
            if self.training:
                # Replaced by another tensor, not changed: that is how many write an average.
                self.mean = 0.9 * self.mean + 0.1 * hidden.detach().mean(0)
                self.angle = self.angle + 1j * hidden.detach().mean()
                self.count += 1
                self.seen = hidden.detach().flatten()[:3] > 0
            hidden = self.narrow(hidden.bfloat16()).double() + self.nothing.sum() + self.fixed
            return (self.wide(hidden).float() * self.turn).abs() + self.mean

    def module(self) -> nn.Module:
        return self.Net()


class OwnBuffers(Case):
    """The buffers are each rank's own."""

    options = {"forward_sync_buffers": False}  # noqa: RUF012


class Unused(Case):
    """Which layers run depends on rank and step; one never does, one on no rank in some steps."""

    options = {"find_unused_parameters": True}  # noqa: RUF012

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(16, 16)
            self.branches = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
            self.sometimes = nn.Linear(16, 16)
            self.never = nn.Linear(16, 16)

        def forward(self, inputs: torch.Tensor, step: int) -> torch.Tensor:
            hidden = self.first(inputs)
            if step % 3 == 0:  # one layer on one rank
                hidden = self.branches[dist.get_rank() % 3](hidden)
            elif step % 3 == 1:  # rank 0 uses none
                hidden = hidden if dist.get_rank() == 0 else self.branches[0](hidden)
            if step % 2:
                hidden = self.sometimes(hidden)
            return hidden

    def module(self) -> nn.Module:
        return self.Net()

    def step(self, ddp: DistributedDataParallel, optimizer: Any, step: int) -> None:
        optimizer.zero_grad(set_to_none=step % 4 != 0)
        ddp(batch(step), step).square().mean().backward()
        optimizer.step()


class UnusedViews(Unused):
    """The same with gradients that are views of the buckets, and accumulated."""

    options = {"find_unused_parameters": True, "gradient_as_bucket_view": True}  # noqa: RUF012

    def step(self, ddp: DistributedDataParallel, optimizer: Any, step: int) -> None:
        optimizer.zero_grad()
        with ddp.no_sync():
            ddp(batch(step, 1), step + 1).square().mean().backward()
        ddp(batch(step), step).square().mean().backward()
        optimizer.step()


class Accumulate(Case):
    """Gradients of four batches; zeroed, not dropped; two forwards a backward; some steps skipped."""

    def step(self, ddp: DistributedDataParallel, optimizer: Any, step: int) -> None:
        optimizer.zero_grad(set_to_none=False)
        with ddp.no_sync():
            for part in (1, 2, 3):
                ddp(batch(step, part)).square().mean().backward()
        both = ddp(batch(step)).square().mean() + ddp(batch(step, 4)).square().mean()
        both.backward()
        if step % 4:
            optimizer.step()


class Static(Case):
    """A static graph with activation checkpoints, gradients as views of the buckets."""

    options = {"static_graph": True, "gradient_as_bucket_view": True}  # noqa: RUF012

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.third = (nn.Linear(16, 16) for _ in range(3))
            self.never = nn.Linear(16, 16)

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            hidden = self.first(inputs)
            hidden = checkpoint(self.second, hidden, use_reentrant=True)
            return self.third(hidden)

    def module(self) -> nn.Module:
        return self.Net()


class StaticUnused(Static):
    """A static graph in which one rank never uses a layer that the others use."""

    class Net(Static.Net):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            hidden = super().forward(inputs)
            return hidden if dist.get_rank() == 1 else self.never(hidden)


class Closure(Case):
    """The optimizer calls forward and backward itself, twice; the only buffer has no elements."""

    def module(self) -> nn.Module:
        module = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 4))
        module.register_buffer("empty", torch.zeros(0))
        return module

    def step(self, ddp: DistributedDataParallel, optimizer: Any, step: int) -> None:
        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            ddp(batch(step, 1)).square().mean().backward()
            loss = ddp(batch(step)).square().mean()
            loss.backward()
            return loss

        optimizer.step(closure)


class Frozen(Case):
    """A layer is frozen in step 3 and thawed in step 6; another is frozen when training begins."""

    plain_options = {"find_unused_parameters": True}  # noqa: RUF012

    def module(self) -> nn.Module:
        module = super().module()
        module[4].requires_grad_(False)
        return module

    def plain(self, module: nn.Module) -> DistributedDataParallel:
        # Plain DDP never looks again at what was frozen when it was made.
        module.requires_grad_(True)
        ddp = super().plain(module)
        ddp.module[4].requires_grad_(False)
        return ddp

    def step(self, ddp: DistributedDataParallel, optimizer: Any, step: int) -> None:
        if step in (3, 6):
            ddp.module[3].requires_grad_(step == 6)
            ddp.module[4].requires_grad_(step == 3)
        super().step(ddp, optimizer, step)


# ---- ranks that end early --------------------------------------------------------------------------


class Raises(Case):
    """A forward fails on rank 1: in step 3 it takes the next batch instead, in step 7 it ends."""

    def step(self, ddp: DistributedDataParallel, optimizer: Any, step: int) -> None:
        width = 15 if step in (3, 7) and dist.get_rank() == 1 else 16
        optimizer.zero_grad()
        try:
            out = ddp(batch(step)[:, :width])
        except RuntimeError:
            if step == 7:
                raise
            out = ddp(batch(step, 1))
        out.square().mean().backward()
        optimizer.step()


class Uneven(Case):
    """Each rank has another number of batches."""

    def loop(self, ddp: DistributedDataParallel, optimizer: Any, steps: range) -> None:
        super().loop(ddp, optimizer, steps[: len(steps) - 2 * dist.get_rank()])


# ---- what is refused -------------------------------------------------------------------------------


class NoGradient(Case):
    """A layer gets no gradient, and find_unused_parameters is off."""

    def step(self, ddp: DistributedDataParallel, optimizer: Any, step: int) -> None:
        optimizer.zero_grad()
        Unused.step(self, ddp, optimizer, step)  # type: ignore[arg-type]

    def module(self) -> nn.Module:
        return Unused.Net()


class Leftover(Case):
    """The optimizer steps on gradients that were never reduced."""

    def step(self, ddp: DistributedDataParallel, optimizer: Any, step: int) -> None:
        optimizer.zero_grad()
        with ddp.no_sync():
            ddp(batch(step)).square().mean().backward()
        optimizer.step()


class FrozenHere(Case):
    """One rank freezes a layer, the others do not."""

    def step(self, ddp: DistributedDataParallel, optimizer: Any, step: int) -> None:
        if step == 3 and dist.get_rank() == 1:
            ddp.module[3].requires_grad_(False)
        super().step(ddp, optimizer, step)


class Replaced(Case):
    """A layer is put in another one's place while it trains; nothing else would fail."""

    options = {"find_unused_parameters": True}  # noqa: RUF012

    def step(self, ddp: DistributedDataParallel, optimizer: Any, step: int) -> None:
        if step == 3:
            ddp.module[1] = nn.Identity()  # one without parameters may come, or go
            ddp.module[2] = nn.Tanh()
        if step == 5:
            ddp.module[3] = nn.Linear(16, 16)
        super().step(ddp, optimizer, step)

    def module(self) -> nn.Module:
        return nn.Sequential(
            nn.Linear(16, 16), nn.ReLU(), nn.ReLU(), nn.Linear(16, 16), nn.Linear(16, 4)
        )


class ReplacedHere(Replaced):
    """On one rank alone."""

    def step(self, ddp: DistributedDataParallel, optimizer: Any, step: int) -> None:
        if step == 5 and dist.get_rank() == 1:
            ddp.module[3].weight = nn.Parameter(torch.randn(16, 16))
        Case.step(self, ddp, optimizer, step)


class SyncBatchNorm(Case):
    """Layers with collectives of their own."""

    def before(self, ddp: DistributedDataParallel) -> None:
        ddp.module = nn.SyncBatchNorm.convert_sync_batchnorm(ddp.module)


class BuiltinHook(Case):
    """One of torch's own hooks is there already."""

    def before(self, ddp: DistributedDataParallel) -> None:
        ddp._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)


class HookAfter(Case):
    """The user's communication hook comes later."""

    def after(self, ddp: DistributedDataParallel) -> None:
        ddp.register_comm_hook(None, allreduce_hook)


class Joins(Case):
    """The loop is in DDP's join()."""

    def loop(self, ddp: DistributedDataParallel, optimizer: Any, steps: range) -> None:
        with ddp.join():
            super().loop(ddp, optimizer, steps)


CASES: dict[str, type[Case]] = {
    kind.__name__: kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Case)
}


def die_in_backward(model: nn.Module) -> None:
    """At the gradient of the first layer, which is the last one to come."""
    first = next(p for p in model.parameters() if p.requires_grad)
    first.register_hook(lambda gradient: os.kill(os.getpid(), signal.SIGKILL))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=CASES, required=True)
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--plain", type=int, default=0)
    parser.add_argument("--die", help="RANK:STEP", default="-1:-1")
    parser.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    case = CASES[arguments.case]()
    torch.manual_seed(5)
    module = case.module()
    plain = case.plain(copy.deepcopy(module))
    held = DistributedDataParallel(module, bucket_cap_mb=BUCKET_MB, **case.options)
    optimizer = case.optimizer(held)
    case.before(held)
    cascade.attach(held, optimizer)
    case.after(held)
    steps = range(1, arguments.steps + 1)
    saved: dict[str, Any] = {"parameters": [name for name, _ in module.named_parameters()]}
    if arguments.plain:
        first, steps = steps[: arguments.plain], steps[arguments.plain :]
        case.loop(plain, case.optimizer(plain), first)
        saved["plain"] = copy.deepcopy(plain.module.state_dict())
        case.loop(held, optimizer, first)
        saved["held"] = copy.deepcopy(held.module.state_dict())
    victim, at = map(int, arguments.die.split(":"))
    if rank == victim:
        case.loop(held, optimizer, range(steps[0], at))
        die_in_backward(held)
        steps = range(at, steps[-1] + 1)
    case.loop(held, optimizer, steps)
    saved["last"] = held.module.state_dict()
    if arguments.save:
        arguments.save.mkdir(parents=True, exist_ok=True)
        torch.save(saved, arguments.save / f"rank{rank}.pt")
    print(f"rank {rank}: {arguments.steps} steps", flush=True)


if __name__ == "__main__":
    sys.exit(main())
