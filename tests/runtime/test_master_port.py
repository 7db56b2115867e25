"""The port that is kept for rank 0: nobody else is given it, and rank 0 can listen on it."""

from __future__ import annotations

import contextlib
import socket
import threading

from torch.distributed import TCPStore

from cascade_runtime.agent.master_port import reserved_port

TRIES = 2000


def given_out(number: int) -> list[socket.socket]:
    sockets = []
    for _ in range(number):
        probe = socket.socket()
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        sockets.append(probe)
    return sockets


def test_the_kernel_gives_it_to_nobody_else():
    with reserved_port() as port, contextlib.ExitStack() as stack:
        ports = set()
        for _ in range(TRIES // 100):
            for probe in given_out(100):
                ports.add(probe.getsockname()[1])
                stack.callback(probe.close)
        assert len(ports) == TRIES
        assert port not in ports


def test_a_store_listens_on_it_and_is_reached():
    with reserved_port() as port:
        found: list[bytes] = []
        server = TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)

        def ask() -> None:
            client = TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)
            found.append(client.get("key"))

        server.set("key", "value")
        asking = threading.Thread(target=ask)
        asking.start()
        asking.join(30)
        assert found == [b"value"]


def test_two_jobs_have_two_ports():
    with reserved_port() as one, reserved_port() as other:
        assert one != other
