"""The progress word: shared memory in which a rank tells how far it is, and an agent reads it.

32 bytes, little-endian: decided step, counter of the last issued dot, monotonic stamp (ns) of the
last sign of progress, phase. It survives the rank's death, so an agent can tell what a dead author
had issued, and *slow* from *dead* without the rank's interpreter lock.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from pathlib import Path
from typing import NamedTuple

_WORD = struct.Struct("<qqqq")

PHASES = ("starting", "forward", "backward", "waiting", "halted", "leaving")
STARTING, FORWARD, BACKWARD, WAITING, HALTED, LEAVING = range(len(PHASES))


class Progress(NamedTuple):
    """What the word said."""

    decided: int
    issued: int
    mono_ns: int
    phase: str


class ProgressWord:
    """The rank's end."""

    def __init__(self, path: Path) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(fd, _WORD.size)
            self._map = mmap.mmap(fd, _WORD.size)
        finally:
            os.close(fd)

    def write(self, decided: int, issued: int, phase: int) -> None:
        """Tell where the rank is; ``phase`` indexes PHASES."""
        _WORD.pack_into(self._map, 0, decided, issued, time.monotonic_ns(), phase)


def read_progress(path: Path) -> Progress | None:
    """The agent's end; None when the rank never got so far."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if len(data) < _WORD.size:
        return None
    decided, issued, mono_ns, phase = _WORD.unpack_from(data)
    return Progress(decided, issued, mono_ns, PHASES[phase % len(PHASES)])
