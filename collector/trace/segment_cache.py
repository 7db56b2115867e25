"""Columns of files that never change, kept so that a growing trace is read only where it grew."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from pathlib import Path

import pyarrow as pa

_CHANGING = ("tail.parquet", "open.parquet")
"""Names that are written again in a collector's data folder (docs/data-folder.md)."""


class CacheBudget:
    """What the caches of several traces may hold together; not for use by several threads.

    Args:
        max_bytes: of all of them. The cache that was not used for longest is emptied for another.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._caches: OrderedDict[SegmentCache, None] = OrderedDict()

    @property
    def num_bytes(self) -> int:
        """What all of them hold now."""
        return sum(cache.num_bytes for cache in self._caches)

    def used(self, cache: SegmentCache) -> None:
        """This one is in use now."""
        self._caches[cache] = None
        self._caches.move_to_end(cache)

    def makes_room(self, cache: SegmentCache, num_bytes: int) -> bool:
        """Empty other caches until this one may keep so much more; False when it may not."""
        if cache.num_bytes + num_bytes > self.max_bytes:
            return False
        while self.num_bytes + num_bytes > self.max_bytes:
            oldest = next(other for other in self._caches if other.num_bytes and other is not cache)
            oldest.clear()
        return True

    def forget(self, cache: SegmentCache) -> None:
        """It holds nothing any more."""
        self._caches.pop(cache, None)


class SegmentCache:
    """What was read of a trace's sealed segments; not for use by several threads.

    A name is given to one content for ever, so a file is read once for each set of columns.

    Args:
        budget: shared with the caches of other traces; without one, all is kept.
    """

    def __init__(self, budget: CacheBudget | None = None) -> None:
        self._budget = budget
        self._read: dict[tuple[Path, tuple[str, ...]], pa.Table] = {}
        self.num_read = 0
        """Files that were read, not found here."""
        self.num_bytes = 0
        """Held now."""

    def get(self, file: Path, columns: tuple[str, ...], read: Callable[[], pa.Table]) -> pa.Table:
        """The columns of a file, read by ``read`` when they are not here."""
        if self._budget is not None:
            self._budget.used(self)
        key = (file, columns)
        found = self._read.get(key)
        if found is None:
            self.num_read += 1
            found = read()
            size = found.get_total_buffer_size()
            if file.name not in _CHANGING and self._has_room(size):
                self._read[key] = found
                self.num_bytes += size
        return found

    def keep_only(self, files: Collection[Path]) -> None:
        """Forget files that are gone."""
        for key in [key for key in self._read if key[0] not in files]:
            self.num_bytes -= self._read.pop(key).get_total_buffer_size()

    def clear(self) -> None:
        """Forget everything; what is asked for later is read again."""
        self._read.clear()
        self.num_bytes = 0
        if self._budget is not None:
            self._budget.forget(self)

    def _has_room(self, num_bytes: int) -> bool:
        return self._budget is None or self._budget.makes_room(self, num_bytes)
