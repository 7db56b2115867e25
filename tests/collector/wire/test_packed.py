"""Packed bodies that are unpacked together: each gives what it gives when it is unpacked alone."""

from __future__ import annotations

import os
import random
from functools import partial

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.vocabulary.errors import CascadeError
from collector.web.errors import BadBody
from collector.web.unpack import unpack
from collector.wire.batch import Batch
from collector.wire.packed import size_of_one_frame, unpack_together
from collector.wire.records import decode_msgpack, encode_msgpack
from collector.wire.unread import Unread, read_together, unread_zstd
from tests.collector.wire.bodies import sample_rows
from tests.vocabulary.strategies import LAWS

LIMIT = 64 << 10
unpack_one = partial(unpack, "zstd", limit=LIMIT)


def packed(plain: bytes, **options: bool) -> bytes:
    return zstandard.ZstdCompressor(level=1, **options).compress(plain)


@LAWS
@given(st.binary(min_size=1, max_size=3000), st.booleans(), st.integers(1, 300))
def test_one_frame_says_its_size(plain: bytes, checksum: bool, times: int) -> None:
    body = packed(plain * times, write_checksum=checksum)
    assert size_of_one_frame(body) == len(plain * times)
    assert unpack_together([body, body]) == [plain * times] * 2


@LAWS
@given(st.binary(max_size=60))
def test_any_bytes_are_looked_at(body: bytes) -> None:
    assert size_of_one_frame(body) is None


def test_several_blocks_are_one_frame() -> None:
    for plain in (os.urandom(400_000), bytes(400_000), os.urandom(1000) * 400):
        assert size_of_one_frame(packed(plain)) == len(plain)


def test_what_is_not_exactly_one_frame_has_no_size() -> None:
    body = packed(b"rows" * 100)
    streamed = zstandard.ZstdCompressor().compressobj()
    for other in (
        body + body,
        body + b"x",
        body[:-1],
        body[:5],
        b"",
        b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd" + body,
        packed(b""),
        streamed.compress(b"rows") + streamed.flush(),
    ):
        assert size_of_one_frame(other) is None, other
        assert unread_zstd(other, LIMIT, unpack_one) is None
    assert unread_zstd(body, 399, unpack_one) is None


@pytest.mark.parametrize("seed", range(3))
def test_bodies_are_read_as_alone_whatever_is_wrong_with_others(seed: int) -> None:
    rng = random.Random(seed)
    rows = sample_rows()
    num_bad = num_damaged = 0
    for _ in range(60):
        bodies: list[tuple[bytes, bytes | None]] = []
        later: list[Unread] = []
        for _ in range(rng.randrange(1, 12)):
            at = rng.randrange(len(rows))
            plain = bytearray(encode_msgpack(rows[at : at + rng.randrange(1, 20)]))
            if rng.random() < 0.1:
                plain[rng.randrange(1, len(plain))] = rng.randrange(256)
            body = bytearray(packed(bytes(plain), write_checksum=True))
            if rng.random() < 0.05:
                body[rng.randrange(10, len(body))] ^= 1 << rng.randrange(8)
            found = unread_zstd(bytes(body), LIMIT, unpack_one)
            if found is not None:
                later.append(found)
                bodies.append((bytes(plain), bytes(body)))
        for mine, (plain_body, body_sent) in zip(read_together(later), bodies, strict=True):
            try:
                want: Batch | CascadeError = decode_msgpack(unpack_one(body_sent))
            except CascadeError as error:
                want = error
            if isinstance(want, Batch):
                assert isinstance(mine, Batch)
                assert (mine.body, mine.records) == (bytes(plain_body), want.records)
            else:
                assert type(mine) is type(want)
                assert (mine.message, mine.where) == (want.message, want.where)
                num_bad += 1
                num_damaged += isinstance(want, BadBody)
    assert num_bad > num_damaged > 0  # the test saw both


def test_a_body_without_rows_is_read_at_once() -> None:
    assert unread_zstd(packed(b"\x90"), LIMIT, unpack_one) is None
