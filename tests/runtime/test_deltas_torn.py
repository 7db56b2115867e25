"""Connections that break in the middle of a sum, or before its answer."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest

from cascade_runtime.rank.delta_frames import PIECE_BYTES
from tests.runtime.delta_rig import Author, until


class Cutter:
    """Between a sender and a receiver; cuts each of the first connections after so many bytes."""

    def __init__(self, address, cuts):
        host, port = address.removeprefix("tcp://").split(":")
        self._to = host, int(port)
        self._cuts = list(cuts)
        self.num_cut = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        with contextlib.suppress(OSError):
            while True:
                sender, _ = self._listener.accept()
                receiver = socket.create_connection(self._to)
                self._open += [sender, receiver]
                left = self._cuts.pop(0) if self._cuts else None
                back = threading.Thread(target=self._pass, args=(receiver, sender), daemon=True)
                back.start()
                self._pass(sender, receiver, left)
                back.join(10)

    def _pass(self, source, target, left=None):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16 if left is None else min(left, 1 << 16)):
                target.sendall(data)
                if left is not None:
                    left -= len(data)
                    if left <= 0:
                        self.num_cut += 1
                        break
        self.cut(source, target)

    def cut(self, *ends):
        for end in ends or self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._listener.close()
        for end in self._open:
            end.close()


@pytest.mark.parametrize("cuts", [[200_000], [70_000, 4 * PIECE_BYTES, PIECE_BYTES], [100] * 3])
def test_a_sum_arrives_over_a_connection_that_breaks(cuts):
    size = 5 * PIECE_BYTES
    one, other = Author(0, size), Author(1, size)
    cutter = Cutter(other.deltas.address, cuts)
    one.deltas.connect({other.actor: cutter.address})
    other.deltas.connect({one.actor: one.deltas.address})
    one.step()
    until(lambda: other.deltas.newest, one, other)
    assert cutter.num_cut == len(cuts)
    assert other.fold_all() == [(0, 1, bytes(one.own))]
    until(lambda: not one.deltas.in_flight, one, other)
    for author in (one, other):
        author.deltas.close()
    cutter.close()


def test_an_answer_that_was_lost_is_given_again():
    one, other = Author(0), Author(1)
    cutter = Cutter(other.deltas.address, [])
    one.deltas.connect({other.actor: cutter.address})
    other.deltas.connect({one.actor: one.deltas.address})
    one.step()
    until(lambda: other.deltas.newest, one, other)
    cutter.cut()  # while it is folding
    other.fold_all()
    until(lambda: not one.deltas.in_flight, one, other)
    assert other.deltas.newest == [], "it is not folded a second time"
    one.step()
    until(lambda: other.deltas.newest, one, other)
    for author in (one, other):
        author.deltas.close()
    cutter.close()
