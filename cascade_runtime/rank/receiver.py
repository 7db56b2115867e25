"""The newcomer's ear: a thread that takes one source at a time and queues what it says."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from pathlib import Path

from cascade_runtime.rank.feed import READY
from cascade_runtime.rank.heard_queue import Heard, HeardQueue
from cascade_runtime.rank.state_codec import BadState, read_message


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
        self._queue = HeardQueue()
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
        heard = self._queue.take()
        if self._queue:
            os.eventfd_write(self.fd, 1)
        return heard

    @property
    def is_idle(self) -> bool:
        """Nothing waits to be taken."""
        return not self._queue

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
        size = 0

        def read_into(view: memoryview) -> None:
            nonlocal size
            size += view.nbytes
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
                size = 0
                kind, body = read_message(read_into, self._max_bytes)
                self._put(Heard(number, kind, body), size)
        except BadState as error:
            why = str(error)
        except (EOFError, OSError, MemoryError, RuntimeError):  # torch's: no memory for a tensor
            pass
        self._put(Heard(number, "lost", {"why": why}))

    def _put(self, heard: Heard, num_bytes: int = 0) -> None:
        if self._queue.put(heard, num_bytes, lambda: self._closed):
            os.eventfd_write(self.fd, 1)
