"""Whether an optimizer keeps parameters of its own beside the model's.

Some do: float32 masters of half-precision parameters, the iterates of schedule-free methods, the slow
weights of look-ahead. Such an optimizer writes the model's parameters from its own, so what other
cohorts added to them would be gone at its next step, and nobody would see it. With one cohort nothing
is added, so only a job that would part into several must know.
"""

from __future__ import annotations

import torch

NEAR = 0.1
"""A state tensor nearer to its parameter than this share of the parameter's norm is a copy of it.

Momenta and second moments have other sizes; a copy that was kept up to date is within a step or a few.
"""


def kept_copy(optimizer: torch.optim.Optimizer) -> str | None:
    """The state entry in which ``optimizer`` keeps parameters of its own, or None.

    Judged by the largest parameter that has state; before the first step there is none.
    """
    with_state = [p for g in optimizer.param_groups for p in g["params"] if optimizer.state.get(p)]
    # Small ones may be zero, or be near to anything: a bias that has hardly moved.
    parameter = max(with_state, key=lambda p: p.numel(), default=None)
    if parameter is None:
        return None
    value = parameter.detach().double()
    size = float(value.norm())
    for name, state in optimizer.state[parameter].items():
        if not isinstance(state, torch.Tensor) or state.shape != parameter.shape or size == 0.0:
            continue
        if float((state.detach().double() - value).norm()) < NEAR * size:
            return str(name)
    return None


def told_entries(optimizer: torch.optim.Optimizer) -> tuple[int, tuple[str, ...]]:
    """What changes when an optimizer begins to keep more: some add entries after several steps."""
    state = optimizer.state
    return len(state), tuple(map(str, next(iter(state.values()), ())))
