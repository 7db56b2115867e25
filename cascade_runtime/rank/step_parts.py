"""The parts of a step: buckets of gradients, buffers, marks of used parameters."""

from __future__ import annotations

import torch
from torch.distributed import GradBucket  # type: ignore[attr-defined]  # absent from the stubs

from cascade_runtime.rank.member import Member
from cascade_runtime.rank.objects import pack
from cascade_runtime.rank.open_step import OpenStep
from cascade_runtime.rank.part import Offsets, Part
from cascade_runtime.rank.used import UsedParameters


class StepParts:
    """Makes them for the open step."""

    def __init__(self, member: Member, step: OpenStep) -> None:
        self._member = member
        self._step = step
        self.used: UsedParameters | None = None
        """Set where ranks may use different parameters."""

    def of_bucket(self, bucket: GradBucket) -> Part:
        """A bucket of gradients."""
        local = bucket.buffer()
        label = f"bucket/{bucket.index()}"
        of: Offsets = ()
        if self.used is not None:
            first = local.storage_offset()
            offsets = [int(g.storage_offset() - first) for g in bucket.gradients()]
            of = list(zip(bucket.parameters(), offsets, strict=True))
        scratch = self._step.scratch(label, local)
        return Part(label, local, scratch, "all_reduce", bucket.parameters, of)

    def rest(self) -> list[Part]:
        """What a step reduces besides gradients."""
        parts = []
        self._member.objects.look_up_buffers()
        if buffers := self.buffers():
            packed = pack(buffers)
            scratch = self._step.scratch("buffers", packed)
            parts.append(Part("buffers", packed, scratch, "broadcast"))
        if self.used is not None:
            marks = self.used.marks.clone()
            scratch = self._step.scratch("used", marks)
            parts.append(Part("used", marks, scratch, "all_reduce"))
        return parts

    def buffers(self) -> list[torch.Tensor]:
        """Those that have elements."""
        return [b for b in self._member.objects.buffers if b.numel()]

    def take_used(self, marks: Part) -> None:
        """What was reduced of parameters that not all ranks used."""
        reduced = [
            (parameter, part.scratch[first : first + parameter.numel()])
            for part in self._step.parts
            for parameter, first in part.of
        ]
        assert self.used is not None
        self.used.take(marks.scratch, marks.local, reduced)
