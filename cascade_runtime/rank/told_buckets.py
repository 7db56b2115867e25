"""A newcomer's first steps, in the members' buckets, until DDP has cut its own like theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

import torch

from cascade_runtime.rank.bucket_map import BucketMap, Layout
from cascade_runtime.rank.part import Offsets


class ToldBuckets:
    """One step after the other, mapped.

    Args:
        layout: the members' buckets, by names of parameters.
        parameters: all of the model, by name.
    """

    def __init__(self, layout: Layout, parameters: Mapping[str, torch.Tensor]) -> None:
        self.layout = layout
        self._parameters = parameters
        self._sizes = {name: p.numel() for name, p in parameters.items()}
        self.begin()

    def begin(self) -> None:
        """A backward begins."""
        self._names: Layout = []
        self._buffers: list[torch.Tensor] = []
        self._futures: list[torch.futures.Future[torch.Tensor]] = []
        self._map: BucketMap | None = None

    def add(self, names: list[str], buffer: torch.Tensor) -> torch.futures.Future[torch.Tensor]:
        """One of this rank's own buckets; the future is of its reduced gradients."""
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        self._names.append(names)
        self._buffers.append(buffer)
        self._futures.append(future)
        return future

    def packed(self) -> list[torch.Tensor]:
        """The step's gradients in the members' buckets.

        Raises:
            NotSupported: they are not of the same parameters.
        """
        self._map = BucketMap(self.layout, self._names, self._buffers, self._sizes)
        return self._map.packed

    def parameters_of(self, bucket: int) -> Callable[[], Sequence[torch.Tensor]]:
        """What gives the parameters in one of the members' buckets, in order."""
        return lambda: [self._parameters[name] for name in self.layout[bucket]]

    def offsets(self, bucket: int) -> Offsets:
        """The same with the place of each one's first element in it."""
        names = self.layout[bucket]
        ends = accumulate(self._sizes[name] for name in names)
        return [
            (self._parameters[name], end - self._sizes[name])
            for name, end in zip(names, ends, strict=True)
        ]

    def resolve(self, reduced: Sequence[torch.Tensor]) -> bool:
        """Hand the reduced gradients to DDP; True when its own buckets are the members' by now."""
        assert self._map is not None
        for future, own in zip(self._futures, self._map.unpack(reduced), strict=True):
            future.set_result(own)
        return self._names == self.layout
