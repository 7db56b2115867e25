"""Which segments are stored elsewhere, remembered across the agent's death.

Losing it costs a second sending of what is left, which the collector drops.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from cascade_runtime.vocabulary.identity import Actor


class Cursor:
    """The lowest segment number still needed, by actor.

    Args:
        path: its file, in a folder that is private to the user.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._first: dict[Actor, int] = {}
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            known = msgspec.msgpack.decode(path.read_bytes(), type=list[tuple[Actor, int]])
            self._first = dict(known)

    def first_kept(self, actor: Actor) -> int:
        """0 for an actor that it does not know."""
        return self._first.get(actor, 0)

    def advance(self, first_kept: dict[Actor, int]) -> None:
        """Remember this, before any segment below is removed."""
        self._first.update(first_kept)
        # On a full disk segments must still go: room is made by that alone, and what this file
        # would have said can be done without.
        with contextlib.suppress(OSError):
            self._write(msgspec.msgpack.encode(list(self._first.items())))

    def _write(self, data: bytes) -> None:
        temporary = self._path.with_name(f"{self._path.name}.new")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        temporary.replace(self._path)
