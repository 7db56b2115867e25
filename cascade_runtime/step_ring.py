"""The step ring: shared memory in which a rank tells how its last steps went, and an agent reads it.

Words of 8 bytes in the machine's own order: how many records were ever written, then SLOTS records of
six words: number of the record (from 1), step, epoch, and on the rank's own monotonic clock (ns) when
it was ready to launch the step's last bucket and when that was done; then the digest of the object
whose turn it was (0: none). Nobody takes a lock: the rank writes a record and then the count; the agent
reads the count, the records and the count again, and leaves out what may have been overwritten.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
from pathlib import Path
from typing import NamedTuple

SLOTS = 128
"""Steps that are kept: at 20 looks a second, steps of 0.4 ms are not missed."""

_RECORD = struct.Struct("6q")
_BYTES = _RECORD.size
_HEAD = 8
_SIZE = _HEAD + SLOTS * _BYTES
_pack = _RECORD.pack_into


class StepTimes(NamedTuple):
    """One decided step, on its rank's clock (ns)."""

    step: int
    epoch: int
    entered_ns: int
    done_ns: int
    digest: int


class StepRing:
    """The rank's end."""

    __slots__ = ("_count", "_map", "_num", "entered_ns")

    def __init__(self, path: Path) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(fd, _SIZE)
            self._map = mmap.mmap(fd, _SIZE)
        finally:
            os.close(fd)
        self._count = memoryview(self._map)[:_HEAD].cast("q")
        self._num = 0
        self.entered_ns = 0
        """When (monotonic) the open step's last bucket was ready to be launched."""

    def end(self, step: int, epoch: int, done_ns: int, digest: int = 0) -> None:
        """The step was decided in ``epoch``; its last bucket was done at ``done_ns`` (monotonic)."""
        self._num = num = self._num + 1
        at = _HEAD + num % SLOTS * _BYTES
        _pack(self._map, at, num, step, epoch, self.entered_ns, done_ns, digest)
        self._count[0] = num


class StepRingReader:
    """The agent's end.

    Args:
        path: the ring's file; it may come later.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._map: mmap.mmap | None = None
        self._read = 0

    def new(self) -> list[StepTimes]:
        """Steps that have ended since the last call, the oldest first; those overwritten are lost."""
        if self._map is None:
            self._map = _map(self._path)
            if self._map is None:
                return []
        num = self._num()
        first = max(self._read, num - SLOTS) + 1
        found = [self._record(i) for i in range(first, num + 1)]
        # Number n may be overwritten from the moment at which the count says n + SLOTS - 1.
        safe = self._num() - SLOTS + 2
        told = [(i, r) for i, r in zip(range(first, num + 1), found, strict=True) if i >= safe]
        steps = []
        for number, (written, *times) in told:
            if written != number:
                break  # its words are on their way to this processor: next time
            self._read = number
            steps.append(StepTimes(*times))
        return steps

    def _num(self) -> int:
        assert self._map is not None
        return int.from_bytes(self._map[:_HEAD], sys.byteorder)

    def _record(self, number: int) -> tuple[int, ...]:
        assert self._map is not None
        return _RECORD.unpack_from(self._map, _HEAD + number % SLOTS * _BYTES)


def _map(path: Path) -> mmap.mmap | None:
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        if os.fstat(fd).st_size < _SIZE:
            return None  # its rank is about to make it
        return mmap.mmap(fd, _SIZE, prot=mmap.PROT_READ)
    finally:
        os.close(fd)
