"""The step under way on one rank: its parts, how far it is, and where its results lie.

A scratch copy of each bucket is reduced (DDP's own buffer keeps the local gradient, so the step can be
reduced again on another view). Scratch sets alternate by step, so that the buckets of the last decided
step are kept for members that are one step behind (12 % of random kills leave some).
"""

from __future__ import annotations

import torch

from cascade_runtime.rank.groups import bury
from cascade_runtime.rank.member import Member
from cascade_runtime.rank.part import Part


class OpenStep:
    """What the hook fills and the walk looks at."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self.parts: list[Part] = []
        """Of the backward under way, in order; empty once DDP has their results."""
        self.kept: list[Part] = []
        """Of the last decided step, once it was handed to DDP."""
        self.has_begun = False
        """A forward of it has begun, and the optimizer has not stepped yet."""
        self.is_decided = False
        """Decided, and the optimizer has not stepped yet."""
        self.has_all = False
        """All its buckets are in ``parts``."""
        self.is_held = False
        """Nothing is launched until all members have been found to have the same cut."""
        self.done_ns = 0
        """When (monotonic) the last of its collectives completed here."""
        self._pools: list[dict[str, torch.Tensor]] = [{}, {}]

    def begin_backward(self) -> None:
        """Its first bucket comes."""
        self.parts = []
        self.is_decided = self.has_all = self.is_held = False

    @property
    def is_handed_over(self) -> bool:
        """DDP has the results of the last backward, or there was none; not between decision and that."""
        return not (self.is_decided and self.parts)

    @property
    def buckets(self) -> list[Part]:
        """Parts that hold gradients."""
        return [p for p in self.parts if p.label.startswith("bucket/")]

    @property
    def last_decided(self) -> list[Part]:
        """Parts of the last decided step: the open ones just after deciding, else the kept."""
        return self.kept if self.is_handed_over else self.parts

    def hand_over(self) -> None:
        """DDP has the results."""
        self.kept, self.parts = self.parts, []
        self.has_all = False

    def scratch(self, label: str, like: torch.Tensor) -> torch.Tensor:
        """Where a part like this is reduced in this step."""
        pool = self._pools[self._member.decided % 2]
        scratch = pool.get(label)
        if scratch is None or scratch.shape != like.shape or scratch.dtype != like.dtype:
            scratch = pool[label] = torch.empty_like(like)
        return scratch

    def leave_group(self, num_pending: int) -> None:
        """The group that its parts were launched on is left, with so many operations under way.

        What may still be written to is never reduced into again: not the open step's, and not what was
        kept, where a rolling forward was cut short (its bytes may come two steps later).
        """
        if num_pending:
            self._pools = [{}, {}]
        if num_pending and self.parts and not self.is_decided:
            bury([(p.work, p.scratch) for p in self.parts])
            for part in self.parts:
                part.scratch = self.scratch(part.label, part.local)
        for part in (*self.parts, *self.kept):
            part.work = None  # it holds on to the group's connections
