"""Bytes that nobody should believe, and connections that break in the middle."""

from __future__ import annotations

import contextlib
import socket
import threading

import msgspec
import pytest
import xxhash
import zmq
from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.delivery import Snapshot, Step
from cascade_runtime.rank.delta_frames import (
    MAX_HEAD_BYTES,
    PIECE_BYTES,
    Again,
    Begin,
    Folded,
    NotBelieved,
    Piece,
    encode,
    read_head,
)
from cascade_runtime.vocabulary.identity import Actor, Dot
from tests.runtime.delta_rig import TOKEN, Author, connect, until

SIZE = 1000
DATA = bytes(range(250)) * 4
DIGEST = xxhash.xxh3_128_digest(DATA)
LIAR = Actor(1)


def snapshot(**more):
    return Snapshot(
        **{"origin": LIAR, "upto": 2, "needs": [], "steps": [Step(1, []), Step(2, [])], **more}
    )


def begin(told=None, size=SIZE, digest=DIGEST, token=TOKEN, epoch=1, sender=LIAR, number=0):
    return encode(Begin(token, epoch, sender, number, told or snapshot(), size, digest))


def piece(offset=0, number=0, token=TOKEN, epoch=1, sender=LIAR):
    return encode(Piece(token, epoch, sender, number, offset))


class Liar:
    """Speaks ZeroMQ with an author's ear, and says what it likes."""

    def __init__(self, author):
        self.author = author
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.connect(author.deltas.address)

    def says(self, *frames):
        """What the author dropped for it."""
        before = self.author.deltas.dropped.copy()
        self.socket.send_multipart(frames)
        count = before.total() + 1
        until(lambda: self.author.deltas.dropped.total() >= count, self.author)
        return self.author.deltas.dropped - before


@pytest.fixture
def author():
    one = Author(0, SIZE)
    one.deltas.connect({LIAR: "tcp://127.0.0.1:1"})
    yield one
    one.deltas.close()


@pytest.fixture
def liar(author):
    lying = Liar(author)
    yield lying
    lying.context.destroy(linger=0)


def raw(*fields):
    return msgspec.msgpack.encode(list(fields))


WHOLE = begin()
NOT_BELIEVED = {
    "nothing": ([b""], "form"),
    "no msgpack": ([b"\xc1 hello"], "form"),
    "truncated": ([WHOLE[: len(WHOLE) // 2]], "form"),
    "deep": ([b"\x91" * 100_000], "form"),
    "another kind": ([raw("end", TOKEN, 1, [1, 0], 0)], "form"),
    "no kind": ([raw(1, 2, 3)], "form"),
    "a map": ([msgspec.msgpack.encode({"kind": "begin"})], "form"),
    "large head": ([b"\x00" * (MAX_HEAD_BYTES + 1)], "size"),
    "token": ([begin(token=b"another")], "token"),
    "no token": ([begin(token=b"")], "token"),
    "longer token": ([begin(token=TOKEN + b"x")], "token"),
    "older epoch": ([begin(epoch=0)], "epoch"),
    "later epoch": ([begin(epoch=2)], "epoch"),
    "stranger": ([begin(sender=Actor(7))], "sender"),
    "another incarnation": ([begin(sender=Actor(1, 1))], "sender"),
    "ourselves": ([begin(sender=Actor(0))], "sender"),
    "larger": ([begin(size=1 << 62)], "size"),
    "smaller": ([begin(size=SIZE - 1)], "size"),
    "another's sum": ([begin(snapshot(origin=Actor(2)))], "form"),
    "no steps": ([begin(snapshot(steps=[]))], "form"),
    "steps elsewhere": ([begin(snapshot(upto=3))], "form"),
    "steps backwards": ([begin(snapshot(steps=[Step(3, []), Step(2, [])]))], "form"),
    "counter nought": ([begin(snapshot(upto=0))], "form"),
    "short digest": ([begin(digest=b"x")], "form"),
    "piece of nothing": ([piece(), DATA], "number"),
    "an answer at the ear": ([encode(Folded(TOKEN, 1, LIAR, 0, 1))], "form"),
}


@pytest.mark.parametrize("name", NOT_BELIEVED)
def test_dropped_and_counted(author, liar, name):
    frames, why = NOT_BELIEVED[name]
    assert liar.says(*frames) == {why: 1}
    assert author.deltas.newest == [] and author.deltas.acked == {LIAR: 0}


@pytest.mark.parametrize(
    ("frames", "why"),
    [
        ([piece(offset=1), DATA], "offset"),
        ([piece(offset=1 << 62), DATA], "offset"),
        ([piece(number=5), DATA], "number"),
        ([piece(), DATA + b"x"], "size"),
        ([piece(), b""], "size"),
        ([piece()], "form"),
        ([piece(), DATA[:-1] + b"?"], "digest"),
    ],
)
def test_a_piece_that_is_not_the_next_one_gives_the_snapshot_up(author, liar, frames, why):
    liar.socket.send(begin())
    assert liar.says(*frames) == {why: 1}
    assert liar.says(piece(), DATA) == {"number": 1}, "it is not under way any more"
    assert author.deltas.newest == []
    liar.socket.send(begin(number=9))
    liar.socket.send_multipart([piece(number=9), DATA])
    until(lambda: author.deltas.newest, author)
    assert bytes(author.deltas.take(LIAR)[1]) == DATA


def test_a_snapshot_that_came_torn_is_asked_for_once(author, liar):
    liar.socket.send(begin())
    for _ in range(5):
        liar.says(piece(offset=7), DATA)
    until(lambda: liar.socket.poll(0), author)
    said = msgspec.msgpack.decode(liar.socket.recv(), type=Again)
    assert said.lost == 0
    assert not liar.socket.poll(50)


def test_more_frames_than_a_message_has_are_left_out(author, liar):
    liar.socket.send_multipart([begin(), b"more", b"and more"])
    liar.socket.send_multipart([piece(), DATA, b"x" * 1000])
    until(lambda: author.deltas.newest, author)


def test_numbers_never_go_back(author, liar):
    liar.socket.send(begin(number=4))
    assert liar.says(begin(number=4)) == {"number": 1}
    assert liar.says(begin(number=3)) == {"number": 1}
    assert liar.says(piece(number=3), DATA) == {"number": 1}
    liar.socket.send_multipart([piece(number=4), DATA])  # which goes on undisturbed
    until(lambda: author.deltas.newest, author)


def test_a_message_larger_than_a_piece_never_gets_in(author, liar):
    liar.socket.send_multipart([piece(), bytes(2 * PIECE_BYTES)])
    other = Liar(author)
    assert other.says(begin(epoch=9)) == {"epoch": 1}  # whoever comes after it is heard
    other.context.destroy(linger=0)
    assert author.deltas.dropped == {"epoch": 1}


def test_a_flood_does_not_hold_the_job(author, liar):
    for _ in range(900):
        liar.socket.send(b"x", zmq.NOBLOCK)
    honest = Author(1, SIZE)
    connect(author, honest)
    honest.step()
    until(lambda: author.deltas.newest, author, honest)
    honest.deltas.close()


def test_an_answer_beyond_what_was_issued_is_not_believed():
    one = Author(0, SIZE)
    context = zmq.Context()
    ear = context.socket(zmq.ROUTER)
    ear.bind("tcp://127.0.0.1:*")
    one.deltas.connect({LIAR: ear.get_string(zmq.LAST_ENDPOINT)})
    one.step()
    until(lambda: ear.poll(0), one)
    route = ear.recv_multipart()[0]
    for said in (Folded(TOKEN, 1, LIAR, 0, 2), Folded(b"?", 1, LIAR, 0, 1)):
        ear.send_multipart([route, encode(said)])
    ear.send_multipart([route, begin()])
    until(lambda: one.deltas.dropped.total() == 3, one)
    assert one.deltas.dropped == {"counter": 1, "token": 1, "form": 1}
    assert one.deltas.acked == {LIAR: 0}
    one.deltas.close()
    context.destroy(linger=0)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_head_or_not_believed(data):
    with contextlib.suppress(NotBelieved):
        read_head(memoryview(data), TOKEN, 1, frozenset([LIAR]))


@given(st.data())
def test_a_head_with_bytes_changed_is_a_head_or_not_believed(data):
    whole = bytearray(begin(snapshot(needs=[Dot(2, 0, 1)])))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(NotBelieved):
        read_head(memoryview(whole), TOKEN, 1, frozenset([LIAR]))


# ---- connections that break ----------------------------------------------------------------------


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
    one, other = Author(0, SIZE), Author(1, SIZE)
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
