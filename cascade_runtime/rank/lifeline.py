"""Connections that say nothing: when this process ends, other hosts' agents see it by their end.

An agent learns of its own ranks' deaths from the kernel. Of a host whose agent has died too, nobody
would learn; see agent/hosts.py.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from cascade_runtime.agent.protocol import Lifeline, pack_frame
from cascade_runtime.vocabulary.identity import Actor

LOOK_S = 0.5


class Lifelines:
    """One connection to each agent in ``paths``, dialled again when that agent comes back.

    A forked child (a data loader's worker) closes its copies, or it would seem to be us.
    """

    def __init__(self, paths: list[Path], actor: Actor) -> None:
        self._hello = pack_frame(Lifeline(actor))
        self._sockets: dict[Path, socket.socket | None] = dict.fromkeys(paths)
        self._next_look = 0.0
        os.register_at_fork(after_in_child=self.close)
        self.look()

    def look(self) -> None:
        """Called often; looks twice a second, and never waits."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_S
        for path, line in self._sockets.items():
            if line is None or _has_ended(line):
                self._sockets[path] = self._dial(path)

    def close(self) -> None:
        """Let go of them, and never dial again."""
        for line in self._sockets.values():
            if line is not None:
                line.close()
        self._sockets = {}

    def _dial(self, path: Path) -> socket.socket | None:
        try:
            line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError:  # no descriptor is left: the script's business, and not ours to end it for
            return None
        line.setblocking(False)
        try:
            line.connect(str(path))
            line.sendall(self._hello)
        except OSError:
            line.close()
            return None
        return line


def _has_ended(line: socket.socket) -> bool:
    with suppress(BlockingIOError):
        try:
            if line.recv(64):
                return False
        except BlockingIOError:
            raise
        except OSError:
            pass
        line.close()
        return True
    return False
