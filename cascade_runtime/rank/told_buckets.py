"""A newcomer's first steps, in the members' buckets, until DDP has cut its own like theirs."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cascade_runtime.rank.bucket_map import BucketMap, Layout


class ToldBuckets:
    """One step after the other, mapped.

    Args:
        layout: the members' buckets, by names of parameters.
        sizes: number of elements by name.
    """

    def __init__(self, layout: Layout, sizes: dict[str, int]) -> None:
        self.layout = layout
        self._sizes = sizes
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

    def resolve(self, reduced: Sequence[torch.Tensor]) -> bool:
        """Hand the reduced gradients to DDP; True when its own buckets are the members' by now."""
        assert self._map is not None
        for future, own in zip(self._futures, self._map.unpack(reduced), strict=True):
            future.set_result(own)
        return self._names == self.layout
