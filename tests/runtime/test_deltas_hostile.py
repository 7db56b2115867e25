"""Bytes that nobody should believe."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
import xxhash
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_runtime.delivery import Snapshot, Step
from cascade_runtime.rank.delta_frames import (
    DROPPED_A_PUMP,
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


def test_what_is_dropped_in_one_look_is_bounded(author, monkeypatch):
    """A frame that is dropped may have megabytes."""

    def hear(socket, *, routed):
        del socket, routed
        author.deltas.dropped["form"] += 1
        return True

    monkeypatch.setattr(author.deltas, "_hear", hear)
    author.deltas.pump()
    assert author.deltas.dropped.total() <= DROPPED_A_PUMP + 1


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


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_head_or_not_believed(data):
    with contextlib.suppress(NotBelieved):
        read_head(memoryview(data), TOKEN, 1, frozenset([LIAR]))


@settings(deadline=None)
@given(st.data())
def test_a_head_with_bytes_changed_is_a_head_or_not_believed(data):
    whole = bytearray(begin(snapshot(needs=[Dot(2, 0, 1)])))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(NotBelieved):
        read_head(memoryview(whole), TOKEN, 1, frozenset([LIAR]))
