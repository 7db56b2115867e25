"""What authors of different cohorts say to each other, as frames; and what is not believed.

A message of the channel is one or two ZeroMQ frames: a head (MessagePack, below) and, for a piece of a
running sum, its bytes. ``begin`` announces a snapshot, pieces follow in order, ``folded`` is the
receiver's answer once the snapshot is part of its parameters, ``again`` when it came torn. Every head carries the run's token and
the epoch. Sizes are held against what this member's own model has before anything is kept.
"""

from __future__ import annotations

import hmac
from typing import NamedTuple

import msgspec

from cascade_runtime.delivery import Snapshot
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.scalars import Counter

PIECE_BYTES = 4 << 20
MAX_HEAD_BYTES = 1 << 20

MESSAGES_A_PUMP = 1024
DROPPED_A_PUMP = 32
"""So many are looked at, and so many not believed, before the job goes on: whoever floods the address
cannot hold it. One that is dropped may be as large as a piece."""


class Head(msgspec.Struct, frozen=True, array_like=True, tag_field="kind"):
    """What every frame begins with; ``number`` counts the messages of this sender to this receiver."""

    token: bytes
    epoch: int
    sender: Actor
    number: int


class Begin(Head, frozen=True, array_like=True, tag="begin"):
    """A snapshot follows: ``digest`` (XXH3-128) is that of all its bytes."""

    snapshot: Snapshot
    num_bytes: int
    digest: bytes


class Piece(Head, frozen=True, array_like=True, tag="piece"):
    """The next bytes of the snapshot with this number, from ``offset`` on; in the second frame."""

    offset: int


class Folded(Head, frozen=True, array_like=True, tag="folded"):
    """The receiver's parameters hold the addressee's updates up to this counter."""

    upto: Counter


class Again(Head, frozen=True, array_like=True, tag="again"):
    """The addressee's snapshot with this number did not arrive whole."""

    lost: int


AnyHead = Begin | Piece | Folded | Again
encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(AnyHead)


class Traffic(NamedTuple):
    """One message, for a ``messages`` row: ``direction`` is "send" or "recv"; size in bytes."""

    direction: str
    peer: Actor
    number: int
    num_bytes: int


class NotBelieved(ValueError):
    """A frame that nobody of this view can have sent whole; it says in a word what is wrong."""


def read_head(data: memoryview, token: bytes, epoch: int, peers: frozenset[Actor]) -> AnyHead:
    """The head, if it is one of this view.

    Raises:
        NotBelieved: it is not; the reason is one of a few words.
    """
    if data.nbytes > MAX_HEAD_BYTES:
        raise NotBelieved("size")
    try:
        head = _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise NotBelieved("form") from error
    if not hmac.compare_digest(head.token, token):
        raise NotBelieved("token")
    if head.epoch != epoch:
        raise NotBelieved("epoch")
    if head.sender not in peers:
        raise NotBelieved("sender")
    return head
