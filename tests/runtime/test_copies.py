"""Optimizers that keep parameters of their own, and those that do not."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from cascade_runtime.rank.copies import kept_copy
from cascade_runtime.rank.sums import Own, Sums, Told
from cascade_runtime.vocabulary.identity import Actor

PLAIN = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.01),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.01),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=1.0),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.001, momentum=0.9, centered=True),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
}


class Masters(torch.optim.Optimizer):
    """SGD on float32 copies, as mixed-precision optimizers do it."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["master"] = p.detach().float().clone()
                state["master"].sub_(p.grad.float(), alpha=group["lr"])
                p.copy_(state["master"])


def build(dtype=torch.float32):
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)).to(dtype)


def train(model, optimizer, steps):
    dtype = next(model.parameters()).dtype
    for step in range(steps):
        generator = torch.Generator().manual_seed(step)
        inputs = torch.randn(32, 16, generator=generator).to(dtype)
        labels = torch.randint(4, (32,), generator=generator)
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("steps", [0, 1, 30])
def test_torch_s_own_keep_none(name, steps):
    model = build()
    optimizer = PLAIN[name](model.parameters())
    train(model, optimizer, steps)
    assert kept_copy(optimizer) is None


@pytest.mark.parametrize("steps", [1, 30])
def test_masters_are_found(steps):
    model = build(torch.bfloat16)
    optimizer = Masters(model.parameters(), 0.05)
    assert kept_copy(optimizer) is None, "it has none yet"
    train(model, optimizer, steps)
    assert kept_copy(optimizer) == "master"


def test_why_they_must_be_found():
    """What another cohort added is gone after the next step."""
    model = build(torch.bfloat16)
    optimizer = Masters(model.parameters(), 0.05)
    train(model, optimizer, 1)
    sums, weight = Sums(model.parameters()), model[0].weight
    train(model, optimizer, 1)
    other = torch.ones(sums.num_sum_bytes // 4).view(torch.uint8)
    sums.advance(Own(Actor(0), 1, 1.0), [Told(Actor(1), 1, other)])
    assert float(weight.detach().float().mean()) > 0.9
    train(model, optimizer, 1)
    assert float(weight.detach().float().mean()) < 0.1
