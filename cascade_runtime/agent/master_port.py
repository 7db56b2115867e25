"""A TCP port for the ranks' own rendezvous that nobody else takes before rank 0 listens on it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def reserved_port(address: str = "127.0.0.1") -> Iterator[int]:
    """A free port, kept for this job as long as the context lasts.

    A port that is looked up and let go may be another process's by the time rank 0 has imported
    torch. A socket that is bound and does not listen keeps the kernel from handing the port out,
    to port 0 or to a connection, and as both ends allow reuse, rank 0 may listen on it all the same.
    """
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind((address, 0))
        yield int(keeper.getsockname()[1])
