"""Columns of files that never change, kept so that a growing trace is read only where it grew."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import pyarrow as pa

_CHANGING = ("tail.parquet", "open.parquet")
"""Names that are written again in a collector's data folder (docs/data-folder.md)."""


class SegmentCache:
    """What was read of a trace's sealed segments; not for use by several threads.

    A name is given to one content for ever, so a file is read once for each set of columns.
    """

    def __init__(self) -> None:
        self._read: dict[tuple[Path, tuple[str, ...]], pa.Table] = {}
        self.num_read = 0
        """Files that were read, not found here."""

    def get(self, file: Path, columns: tuple[str, ...], read: Callable[[], pa.Table]) -> pa.Table:
        """The columns of a file, read by ``read`` when they are not here."""
        key = (file, columns)
        found = self._read.get(key)
        if found is None:
            self.num_read += 1
            found = read()
            if file.name not in _CHANGING:
                self._read[key] = found
        return found

    def keep_only(self, files: Collection[Path]) -> None:
        """Forget files that are gone."""
        for key in [key for key in self._read if key[0] not in files]:
            del self._read[key]
