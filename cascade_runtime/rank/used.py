"""Which parameters got a gradient on any rank, for ``find_unused_parameters``.

DDP leaves the gradient of a parameter alone that no rank has used. It agrees on that over its own
process group, which after ``attach`` is this rank alone; so the cohort agrees here, and a parameter that
only other ranks have used takes their gradient here, where DDP leaves it alone.
"""

from __future__ import annotations

from typing import Any

import torch


class UsedParameters:
    """The marks of one rank, collected from the last decided step on (over ``no_sync`` too)."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._index = {id(p): i for i, p in enumerate(module.parameters())}
        self._parameters: list[Any] = list(module.parameters())  # torch's hooks have no types
        self._handles: list[Any] = []
        self.marks = torch.zeros(len(self._parameters), dtype=torch.uint8)
        self.watch()

    def watch(self) -> None:
        """Look at the parameters that are trained now."""
        for handle in self._handles:
            handle.remove()
        self._handles = [
            p.register_post_accumulate_grad_hook(self._mark)
            for p in self._parameters
            if p.requires_grad
        ]

    def _mark(self, parameter: torch.Tensor) -> None:
        self.marks[self._index[id(parameter)]] = 1

    def take(
        self,
        reduced_marks: torch.Tensor,
        own_marks: torch.Tensor,
        reduced: list[tuple[torch.Tensor, torch.Tensor]],
    ) -> None:
        """Give a parameter that only others have used their gradient; then start anew.

        Args:
            reduced_marks: the cohort's marks, (parameters,) uint8.
            own_marks: this rank's of the same step.
            reduced: parameters with their part of the reduced buckets, flat.
        """
        for parameter, gradient in reduced:
            i = self._index[id(parameter)]
            if own_marks[i] or not reduced_marks[i]:
                continue
            if parameter.grad is None:
                parameter.grad = gradient.view(parameter.shape).clone()
            else:
                parameter.grad.copy_(gradient.view(parameter.shape))
        self.marks.zero_()
