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
    num_bytes: int


class LeftRows:
    """The chunks, by table. Whoever uses it holds the run's lock."""

    def __init__(self) -> None:
        self._left: dict[str, list[_Left]] = {}
        self._followed_s = float("-inf")
        # The doorway asks for it many times a second, and Arrow counts the bytes of every column anew.
        self.num_bytes = 0
        """Of all of it."""

    def followed(self) -> None:
        """Somebody reads the rows, and will come again."""
        self._followed_s = time.monotonic()

    def sealed(self, name: str, chunks: Sequence[pa.Table], sizes: Sequence[int]) -> None:
        """These chunks of a table are in a segment now; ``sizes``: bytes of each."""
        now = time.monotonic()
        if now - self._followed_s < FOLLOWED_S:
            more = [_Left(now, *pair) for pair in zip(chunks, sizes, strict=True)]
            self._replace(name, self._left.get(name, []) + more)
        else:
            self._replace(name, [])

    def forget(self) -> None:
        """Those that have been here for long."""
        oldest = time.monotonic() - LEFT_S
        for name, left in list(self._left.items()):
            if left[0].at_s < oldest:  # oldest first
                self._replace(name, [one for one in left if one.at_s >= oldest])

    def tables(self) -> dict[str, list[pa.Table]]:
        """What is here, oldest first."""
        self.forget()
        return {name: [one.rows for one in left] for name, left in self._left.items()}

    def _replace(self, name: str, left: list[_Left]) -> None:
        self.num_bytes += sum(one.num_bytes for one in left)
        self.num_bytes -= sum(one.num_bytes for one in self._left.pop(name, []))
        if left:
            self._left[name] = left
