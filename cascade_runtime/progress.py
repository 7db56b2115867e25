"""The progress file: shared memory in which a rank tells how far it is, and its agent fences it.

Little-endian, 64 bytes of words of 8 bytes each, every one written in one store:

====== ============ ==========================================================================
offset written by   what
====== ============ ==========================================================================
0      rank         decided step
8      rank         counter of the last issued dot
16     rank         monotonic stamp (ns) of the last sign of progress
24     rank         phase
32     rank         claim: the step that it is about to decide
40     agent        fence: 0, or since when (monotonic ns) the process had been stopped when it was
                    fenced; a fenced rank acts no more
48     agent        when (monotonic ns) a fenced process was seen running again; 0 before
====== ============ ==========================================================================

It survives the rank's death, so an agent can tell what a dead author had issued, and *slow* from
*dead* without the rank's interpreter lock.

Claim and fence are Dekker's handshake (docs/decisions/0023): the rank writes its claim (or the
counter of what it issues) and then looks at the fence; the agent writes the fence, makes every
processor catch up, and then reads. One of the two sees the other: either the rank finds the fence and
acts no more, or the agent finds what the rank may have done.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from pathlib import Path
from typing import NamedTuple

HEADER_BYTES = 64
_WORD = struct.Struct("<qqqq")
_CLAIM, _FENCE, _RESUMED = 4, 5, 6
"""Positions among the words."""

PHASES = ("starting", "forward", "backward", "waiting", "halted", "leaving", "between steps")
STARTING, FORWARD, BACKWARD, WAITING, HALTED, LEAVING, BETWEEN = range(len(PHASES))


class Progress(NamedTuple):
    """What the word said."""

    decided: int
    issued: int
    mono_ns: int
    phase: str


class ProgressWord:
    """The rank's end."""

    def __init__(self, path: Path) -> None:
        self._words = _map(path, os.O_RDWR | os.O_CREAT)

    def write(self, decided: int, issued: int, phase: int) -> None:
        """Tell where the rank is; ``phase`` indexes PHASES."""
        words = self._words
        words[0], words[1], words[2], words[3] = decided, issued, time.monotonic_ns(), phase

    def claim(self, step: int) -> None:
        """Say that ``step`` is about to be decided; look at ``fenced`` after it, never before."""
        self._words[_CLAIM] = step

    @property
    def fenced(self) -> bool:
        """The agent has fenced this rank: it must not act any more."""
        return self._words[_FENCE] != 0

    @property
    def stopped_s(self) -> float:
        """How long a fenced rank had been stopped."""
        until = self._words[_RESUMED] or time.monotonic_ns()
        return max(0, until - self._words[_FENCE]) / 1e9


class Fence:
    """The agent's end of the fence.

    Raises:
        OSError: the rank never got so far as to make its file.
    """

    def __init__(self, path: Path) -> None:
        self._words = _map(path, os.O_RDWR)

    @property
    def is_up(self) -> bool:
        """The rank is fenced."""
        return self._words[_FENCE] != 0

    def raise_(self, since_ns: int) -> None:
        """Fence the rank; it was stopped since ``since_ns`` (monotonic)."""
        self._words[_FENCE] = max(1, since_ns)

    def resumed(self, at_ns: int) -> None:
        """The process runs again since ``at_ns``."""
        self._words[_RESUMED] = at_ns

    def standing(self) -> tuple[int, int]:
        """The last step that the rank may have decided, and the counter of its last issued dot."""
        words = self._words
        return max(words[0], words[_CLAIM]), words[1]


def _map(path: Path, flags: int) -> memoryview:
    fd = os.open(path, flags, 0o600)
    try:
        if os.fstat(fd).st_size < HEADER_BYTES:
            os.ftruncate(fd, HEADER_BYTES)
        return memoryview(mmap.mmap(fd, HEADER_BYTES)).cast("q")
    finally:
        os.close(fd)


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


def read_standing(path: Path) -> tuple[int, int]:
    """As ``Fence.standing``, of a rank that may never have got so far (then 0 and 0)."""
    try:
        return Fence(path).standing()
    except OSError:
        return 0, 0
