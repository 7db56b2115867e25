"""Between a newcomer's own gradient buckets and those of the members.

DDP cuts its buckets anew after its first backward, in the order in which gradients came. A newcomer has
not had that step, while the members have, so in its first step its gradients are packed as theirs are,
by the names of parameters, and unpacked again.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cascade_runtime.vocabulary.errors import NotSupported

Layout = list[list[str]]


class BucketMap:
    """One step's mapping.

    Args:
        told: the members' buckets, by names of parameters.
        own: names of the parameters in each of this rank's buckets.
        buffers: those buckets, flat.
        sizes: number of elements by name.

    Raises:
        NotSupported: the two do not hold the same parameters.
    """

    def __init__(
        self, told: Layout, own: Layout, buffers: Sequence[torch.Tensor], sizes: dict[str, int]
    ) -> None:
        if sorted(n for b in told for n in b) != sorted(n for b in own for n in b):
            raise NotSupported(
                "this rank's gradients are not of the same parameters as the others'",
                where="attach",
                hint="a rank that comes back must run the same script with the same arguments",
            )
        self._told, self._own, self._sizes = told, own, sizes
        pieces = _cut(own, buffers, sizes)
        self.packed = [torch.cat([pieces[n] for n in names]) for names in told]
        """The gradients, in the members' buckets."""

    def unpack(self, reduced: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Of the members' buckets, reduced: this rank's own ones."""
        pieces = _cut(self._told, reduced, self._sizes)
        return [torch.cat([pieces[n] for n in names]) for names in self._own]


def _cut(
    layout: Layout, buckets: Sequence[torch.Tensor], sizes: dict[str, int]
) -> dict[str, torch.Tensor]:
    return {
        name: piece
        for names, bucket in zip(layout, buckets, strict=True)
        for name, piece in zip(names, torch.split(bucket, [sizes[n] for n in names]), strict=True)
    }
