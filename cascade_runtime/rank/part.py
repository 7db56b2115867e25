"""One collective of a step: a bucket of gradients, the buffers, or the marks of used parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Offsets = Sequence[tuple[torch.Tensor, int]]
"""Parameters, each with the place of its first element in their bucket."""

CutOfPart = tuple[object, ...]


def no_parameters() -> Sequence[torch.Tensor]:
    """Of a part that is no bucket."""
    return ()


FOLD_LABELS = ("folds", "sum/")


class Attempt:
    """One launch of a part on one communicator, and how it ended.

    An abandoned communicator's operations end later than that, in threads of their own: what they find
    is written here, where it cannot be taken for the end of a later launch.
    """

    __slots__ = ("complete_ns", "failed")

    def __init__(self) -> None:
        self.complete_ns = 0
        self.failed: str | None = None


class Part:
    """One bucket (or the buffers) of the open step, and its collective on the newest group.

    Args:
        label: what it is, equal on all members.
        local: this rank's values, flat; stays as it is.
        scratch: where they are reduced.
        op: "all_reduce" or "broadcast".
        parameters: of the bucket, in order; called only where they are asked for.
        of: the same with their places, where ranks may use different parameters.
    """

    def __init__(
        self,
        label: str,
        local: torch.Tensor,
        scratch: torch.Tensor,
        op: str,
        parameters: Callable[[], Sequence[torch.Tensor]] = no_parameters,
        of: Offsets = (),
    ) -> None:
        self.label = label
        self.local = local
        self.scratch = scratch
        self.op = op
        self.parameters = parameters
        self.of = of
        self.cut: CutOfPart = (label, local.numel(), local.dtype)
        """What must be the same on all members."""
        self.future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        self.work: Any = None
        self.entered_seq = -1
        self.cseq = -1
        self.attempt = Attempt()
        """The last launch."""

    @property
    def complete_ns(self) -> int:
        """When (monotonic) the collective ended here; 0 before."""
        return self.attempt.complete_ns

    @property
    def failed(self) -> str | None:
        """Why it failed."""
        return self.attempt.failed

    @property
    def is_fold(self) -> bool:
        """It carries other cohorts' updates, not this step's."""
        return self.label.startswith(FOLD_LABELS)

    @property
    def done(self) -> bool:
        """The collective completed here."""
        return self.attempt.complete_ns > 0 and self.attempt.failed is None
