"""What goes to one other author: the connection, the snapshot under way, and how far it has folded."""

from __future__ import annotations

from collections.abc import Iterator

import zmq

from cascade_runtime.rank.delta_frames import MAX_HEAD_BYTES, PIECE_BYTES

Message = tuple[bytes] | tuple[bytes, memoryview]
"""A head, or a head and the bytes that it speaks of."""


def new_socket(
    context: zmq.Context[zmq.Socket[bytes]], kind: int, num_bytes: int, largest: int
) -> zmq.Socket[bytes]:
    """A socket that keeps no more than two snapshots of this size and takes no larger message."""
    socket = context.socket(kind)
    high_water = 2 * -(-num_bytes // PIECE_BYTES) + 16
    socket.set(zmq.LINGER, 0)
    socket.set(zmq.MAXMSGSIZE, max(largest, MAX_HEAD_BYTES))
    socket.set(zmq.SNDHWM, high_water)
    socket.set(zmq.RCVHWM, high_water)
    return socket


class Outbound:
    """One peer's connection, as the teller keeps it.

    Args:
        context: of the channel.
        num_bytes: of a running sum.
        acked: counter of the own last dot that the peer has folded.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], num_bytes: int, acked: int) -> None:
        self.acked = acked
        self.address = ""
        self.socket: zmq.Socket[bytes] | None = None
        self._monitor: zmq.Socket[bytes] | None = None
        self._context, self._num_bytes = context, num_bytes
        self._next_number = 0
        self._under_way: tuple[int, int] | None = None
        """(number of the message, counter of its last dot)."""

    @property
    def is_free(self) -> bool:
        """Nothing is under way."""
        return self.socket is not None and self._under_way is None

    def next_number(self) -> int:
        """Number of the next message to this peer, from 0."""
        self._next_number += 1
        return self._next_number - 1

    def connect(self, address: str) -> None:
        """Another address, or the same one after its connection broke."""
        self.close()
        self.address = address
        self.socket = new_socket(self._context, zmq.DEALER, self._num_bytes, MAX_HEAD_BYTES)
        self._monitor = self.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self.socket.connect(address)
        self._under_way = None  # it may be lost: the newest goes out instead

    def look(self) -> None:
        """Begin anew where the connection broke: what was in it is lost, and nobody says how much."""
        if self._monitor is not None and self._monitor.poll(0):
            self._monitor.recv_multipart(zmq.NOBLOCK)  # of one kind, so it need not be read
            self.connect(self.address)

    def tell(self, number: int, upto: int, messages: Iterator[Message]) -> bool:
        """A snapshot, whole into the queue; False when there was no room, and it is tried again."""
        assert self.socket is not None
        try:
            for head, *data in messages:
                self.socket.send(head, zmq.NOBLOCK | (zmq.SNDMORE if data else 0))
                for part in data:
                    self.socket.send(part, zmq.NOBLOCK)
        except zmq.Again:
            return False
        self._under_way = number, upto
        return True

    def heard_folded(self, upto: int) -> None:
        """The peer has folded our dots up to this one."""
        self.acked = max(self.acked, upto)
        if self._under_way is not None and upto >= self._under_way[1]:
            self._under_way = None

    def heard_torn(self, number: int) -> None:
        """The peer did not get this message whole."""
        if self._under_way is not None and number == self._under_way[0]:
            self._under_way = None

    def close(self) -> None:
        """Let go at once."""
        if self.socket is not None:
            self.socket.disable_monitor()
            self.socket.close(linger=0)
        if self._monitor is not None:
            self._monitor.close(linger=0)
        self.socket = self._monitor = None
