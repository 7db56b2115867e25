"""Messages between the newcomer's ear and the newcomer, bounded in number and in bytes.

A message may be as large as the model and its optimizer, so a number alone bounds nothing: what does
not fit waits in the kernel and at the source, which bounds it in turn.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

QUEUED = 16
"""Messages that may wait here ..."""

QUEUED_BYTES = 64 << 20
"""... and their bytes; one message may always."""

_LOOK_S = 0.2


class Heard(NamedTuple):
    """One message of a source; ``kind`` is "lost" when it ended."""

    feed: int
    """Number of the connection, from 1."""
    kind: str
    body: dict[str, Any]


class HeardQueue:
    """First in, first out, between two threads."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Heard, int]] = deque()
        self._bytes = 0
        self._taken = threading.Condition()

    def put(self, heard: Heard, num_bytes: int, closed: Callable[[], bool]) -> bool:
        """Wait for room, then add it; False when ``closed`` first.

        Args:
            num_bytes: its size as it came.
        """
        with self._taken:
            while not self._has_room(num_bytes):
                if closed():
                    return False
                self._taken.wait(_LOOK_S)
            self._waiting.append((heard, num_bytes))
            self._bytes += num_bytes
        return True

    def take(self) -> Heard | None:
        """The next one; None when there is none."""
        with self._taken:
            if not self._waiting:
                return None
            heard, num_bytes = self._waiting.popleft()
            self._bytes -= num_bytes
            self._taken.notify()
        return heard

    def __len__(self) -> int:
        return len(self._waiting)

    def _has_room(self, num_bytes: int) -> bool:
        if not self._waiting:
            return True
        return len(self._waiting) < QUEUED and self._bytes + num_bytes <= QUEUED_BYTES
