"""The agent's connection to a zygote (cascade_runtime/zygote.py), and what the two say."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec


class SpawnRequest(msgspec.Struct, frozen=True):
    """Fork a rank with this command line and environment; stdout and stderr travel as descriptors."""

    arguments: list[str]
    environment: dict[str, str]
    directory: str


class Spawned(msgspec.Struct, frozen=True, tag="spawned"):
    """Answer to a request."""

    pid: int


class Exited(msgspec.Struct, frozen=True, tag="exited"):
    """A process that this connection asked for has ended."""

    pid: int
    status: int


class ZygoteClient:
    """An agent's connection to a zygote."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.connect(str(path))
        self.exits: dict[int, int] = {}

    @property
    def fd(self) -> int:
        """To poll on for exits."""
        return self._socket.fileno()

    def spawn(self, request: SpawnRequest) -> int:
        """The new process's pid."""
        payload = msgspec.msgpack.encode(request)
        socket.send_fds(self._socket, [payload], [1, 2])
        while True:
            message = self._receive()
            if isinstance(message, Spawned):
                return message.pid
            self.exits[message.pid] = message.status

    def read_exits(self) -> None:
        """Take in the exits that have been told, without waiting."""
        self._socket.setblocking(False)
        try:
            while True:
                message = self._receive()
                if isinstance(message, Exited):
                    self.exits[message.pid] = message.status
        except (BlockingIOError, EOFError):
            return
        finally:
            self._socket.setblocking(True)

    def _receive(self) -> Spawned | Exited:
        data = self._socket.recv(1 << 16)
        if not data:
            raise EOFError("the zygote is gone")
        return msgspec.msgpack.decode(data, type=Spawned | Exited)
