"""The newcomer's ear: a thread that takes one source at a time and queues what it says."""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
from pathlib import Path
from typing import Any, NamedTuple

from cascade_runtime.rank.feed import READY
from cascade_runtime.rank.state_codec import BadState, read_message

QUEUED = 16
"""Messages that may wait here; more wait at the source, which bounds them."""


class Heard(NamedTuple):
    """One message of a source; ``kind`` is "lost" when it ended."""

    feed: int
    """Number of the connection, from 1."""
    kind: str
    body: dict[str, Any]


class Receiver:
    """Listens for sources.

    Args:
        path: of the socket; nothing may be there yet.
        max_bytes: of one message.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(8)
        self._path = path
        self._queue: queue.Queue[Heard] = queue.Queue(QUEUED)
        self._connection: socket.socket | None = None
        self._closed = False
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        """Readable when there may be something to ``take``."""
        self._thread = threading.Thread(target=self._run, name="cascade-receiver", daemon=True)
        self._thread.start()

    def take(self) -> Heard | None:
        """The next message that has come; None when there is none."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.fd)
        try:
            heard = self._queue.get_nowait()
        except queue.Empty:
            return None
        if not self._queue.empty():
            os.eventfd_write(self.fd, 1)
        return heard

    @property
    def is_idle(self) -> bool:
        """Nothing waits to be taken."""
        return self._queue.empty()

    def let_go(self) -> None:
        """End the connection under way; the next source may come."""
        connection = self._connection
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Take no more; whoever waits for its turn is let go."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._path.unlink(missing_ok=True)
        self.let_go()
        while self.take() is not None:  # the thread may stand at a full queue
            pass

    def _run(self) -> None:
        number = 0
        while not self._closed:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            number += 1
            with connection:
                self._connection = connection
                self._listen_to(number, connection)
                self._connection = None

    def _listen_to(self, number: int, connection: socket.socket) -> None:
        def read_into(view: memoryview) -> None:
            view = view.cast("B") if view.nbytes else view
            while view.nbytes:
                count = connection.recv_into(view)
                if count == 0:
                    raise EOFError
                view = view[count:]

        why = "it ended"
        try:
            connection.sendall(READY)
            while not self._closed:
                kind, body = read_message(read_into, self._max_bytes)
                self._put(Heard(number, kind, body))
        except BadState as error:
            why = str(error)
        except (EOFError, OSError, MemoryError, RuntimeError):  # torch's: no memory for a tensor
            pass
        self._put(Heard(number, "lost", {"why": why}))

    def _put(self, heard: Heard) -> None:
        while not self._closed:
            with contextlib.suppress(queue.Full):
                self._queue.put(heard, timeout=0.2)
                os.eventfd_write(self.fd, 1)
                return
