"""What comes from one origin: its snapshot piece by piece, and what it is owed for it.

A snapshot that comes torn (its connection broke in the middle) is given up, and its sender is told so
once. Sizes are held against what a running sum of this model has before anything is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import xxhash

from cascade_runtime.delivery import Snapshot
from cascade_runtime.rank.delta_frames import PIECE_BYTES, Again, Begin, Folded, NotBelieved, Piece

Arrived = tuple[Snapshot, bytearray]


class Inbound:
    """One origin's side of the channel, as the receiver keeps it.

    Args:
        num_bytes: of a running sum, at least 1.
    """

    def __init__(self, num_bytes: int) -> None:
        self.arrived: Arrived | None = None
        """The newest snapshot that came whole and was not taken."""
        self.folded = 0
        """Counter of its dots that are folded here."""
        self.owed: dict[type[Folded | Again], int] = {}
        """What it has not been told yet; the newest of each kind."""
        self._num_bytes = num_bytes
        self._buffer: bytearray | None = None
        self._begun: Begin | None = None
        self._filled = 0
        self._newest = -1
        self._skipped = -1
        self._asked = -1

    def is_stale(self, head: Begin | Piece) -> bool:
        """Of a snapshot that another one has followed, or that has begun already."""
        first = self._newest + 1 if isinstance(head, Begin) else self._newest
        return head.number < first

    def begin(self, head: Begin) -> None:
        """A snapshot begins; one that was under way is given up.

        Raises:
            NotBelieved: it is of another size, or another's, or its steps do not lead to its counter.
        """
        told, uptos = head.snapshot, [s.upto for s in head.snapshot.steps]
        if head.num_bytes != self._num_bytes:
            raise NotBelieved("size")
        if told.origin != head.sender or len(head.digest) != 16:
            raise NotBelieved("form")
        if not uptos or uptos[-1] != told.upto or any(b <= a for a, b in pairwise(uptos)):
            raise NotBelieved("form")
        self._newest = head.number
        if told.upto <= self.folded:  # told again, because what we said was lost
            self._begun, self._skipped = None, head.number
            self.owed[Folded] = self.folded
            return
        if self._buffer is None:
            self._buffer = bytearray(self._num_bytes)
        self._begun, self._filled = head, 0

    def piece(self, head: Piece, receive: Callable[[memoryview], int]) -> bool:
        """The next bytes; True when the snapshot is whole with them.

        Args:
            head: what came before them.
            receive: puts them where it is told, and says how many they were.

        Raises:
            NotBelieved: they are not the next bytes, or not those that were announced.
        """
        if head.number == self._skipped:
            return False
        try:
            return self._piece(head, receive)
        except NotBelieved:
            self._begun = None
            if head.number > self._asked:
                self._asked = self.owed[Again] = head.number
            raise

    def _piece(self, head: Piece, receive: Callable[[memoryview], int]) -> bool:
        begun, buffer = self._begun, self._buffer
        if begun is None or buffer is None or head.number != begun.number:
            raise NotBelieved("number")
        if head.offset != self._filled:
            raise NotBelieved("offset")
        room = memoryview(buffer)[self._filled : self._filled + PIECE_BYTES]
        count = receive(room)
        if not 0 < count <= len(room):
            raise NotBelieved("size")
        self._filled += count
        if self._filled < self._num_bytes:
            return False
        if xxhash.xxh3_128_digest(buffer) != begun.digest:
            raise NotBelieved("digest")
        before, self.arrived = self.arrived, (begun.snapshot, buffer)
        self._begun = self._buffer = None
        if before is not None:
            self.give_back(before[1])
        return True

    def give_back(self, buffer: bytearray) -> None:
        """A buffer that is needed no more, for the next snapshot."""
        if self._buffer is None and len(buffer) == self._num_bytes:
            self._buffer = buffer
