"""Sends an answer's head and the beginning of its body in one piece."""

from __future__ import annotations

import asyncio

_INTERIM = b"HTTP/1.1 1"


class OneWrite:
    """Stands before a connection's transport. uvicorn writes head and body one after the other.

    The loop passes each piece on by a system call of its own, which costs as much as storing a small
    batch does, and wakes the client twice.

    Args:
        transport: the connection's.
    """

    __slots__ = ("_head", "_is_begun", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""
        self._is_begun = False

    def write(self, data: bytes) -> None:
        """Pass data on; the head of an answer with what comes next."""
        if self._is_begun:
            self._transport.write(self._head + data if self._head else data)
            self._head = b""
        elif data.startswith(_INTERIM):  # 100 Continue: the client waits for it
            self._transport.write(data)
        else:
            self._head, self._is_begun = data, True

    def end(self) -> None:
        """The answer is whole; an answer without a body is only its head."""
        if self._head:
            self._transport.write(self._head)
        self._head, self._is_begun = b"", False

    def close(self) -> None:
        """Close the connection when all is sent."""
        self.end()
        self._transport.close()

    def is_closing(self) -> bool:
        """True when it is being closed."""
        return self._transport.is_closing()
