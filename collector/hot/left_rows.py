"""Sealed rows that stay in memory for a moment, for followers who have not read them yet."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

FOLLOWED_S = 10.0
"""Who follows the rows comes again within this time."""

LEFT_S = 5.0
"""Sealed rows stay in memory so long for a follower who has not read them yet."""


class _Left(NamedTuple):
    """A sealed chunk, and when it was sealed."""

    at_s: float
    rows: pa.Table


class LeftRows:
    """The chunks, by table. Whoever uses it holds the run's lock."""

    def __init__(self) -> None:
        self._left: dict[str, list[_Left]] = {}
        self._followed_s = float("-inf")

    @property
    def num_bytes(self) -> int:
        """Of all of it."""
        return sum(one.rows.nbytes for left in self._left.values() for one in left)

    def followed(self) -> None:
        """Somebody reads the rows, and will come again."""
        self._followed_s = time.monotonic()

    def sealed(self, name: str, chunks: Sequence[pa.Table]) -> None:
        """These chunks of a table are in a segment now."""
        now = time.monotonic()
        if now - self._followed_s < FOLLOWED_S:
            self._left.setdefault(name, []).extend(_Left(now, rows) for rows in chunks)
        else:
            self._left.pop(name, None)

    def forget(self) -> None:
        """Those that have been here for long."""
        oldest = time.monotonic() - LEFT_S
        for name, left in list(self._left.items()):
            self._left[name] = [one for one in left if one.at_s >= oldest]
            if not self._left[name]:
                del self._left[name]

    def tables(self) -> dict[str, list[pa.Table]]:
        """What is here, oldest first."""
        self.forget()
        return {name: [one.rows for one in left] for name, left in self._left.items()}
