"""zstd and gzip within a limit: several frames, cut off, damaged, bombs."""

from __future__ import annotations

import contextlib
import gzip
import random
import tracemalloc

import pytest
import zstandard

from collector.web.errors import BadBody, BodyTooLarge, UnknownMediaType
from collector.web.unpack import MAX_PARTS, packing_of, unpack

PLAIN = random.Random(7).randbytes(300_000) + b"row " * 100_000


def sized(data):
    return zstandard.ZstdCompressor().compress(data)


def unsized(data):
    return zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compress(data)


FORMS = {"zstd": sized, "zstd, no size": unsized, "gzip": gzip.compress}
forms = pytest.mark.parametrize("form", FORMS)


def undo(form, body, limit=1 << 20):
    return unpack(form.partition(",")[0], body, limit)


@forms
@pytest.mark.parametrize("data", [b"", b"x", PLAIN], ids=["empty", "one byte", "large"])
def test_round_trip(form, data):
    assert undo(form, FORMS[form](data)) == data


@forms
def test_frames_one_after_the_other(form):
    pack = FORMS[form]
    assert undo(form, pack(b"one ") + pack(b"") + pack(PLAIN)) == b"one " + PLAIN


def test_a_frame_to_skip_is_skipped():
    skip = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    assert undo("zstd", skip + sized(b"rows") + skip) == b"rows"


@forms
def test_the_limit_is_exact(form):
    body = FORMS[form](PLAIN)
    assert undo(form, body, len(PLAIN)) == PLAIN
    with pytest.raises(BodyTooLarge):
        undo(form, body, len(PLAIN) - 1)


@forms
def test_the_limit_is_of_all_frames_together(form):
    body = FORMS[form](bytes(600)) * 2
    with pytest.raises(BodyTooLarge):
        undo(form, body, 1_199)
    assert undo(form, body, 1_200) == bytes(1_200)


@forms
@pytest.mark.parametrize("cut", [1, 5, 9, 1000, 200_000])
def test_a_body_that_is_cut_off_is_refused_never_taken_in_part(form, cut):
    body = FORMS[form](PLAIN)
    with pytest.raises(BadBody, match="cannot be unpacked"):
        undo(form, body[:-cut])


@forms
@pytest.mark.parametrize("tail", [b"x", b"\0" * 8, b"more that is no frame"])
def test_something_behind_the_last_frame_is_refused(form, tail):
    with pytest.raises(BadBody):
        undo(form, FORMS[form](PLAIN) + tail)


@forms
def test_no_body_at_all_is_refused(form):
    with pytest.raises(BadBody):
        undo(form, b"")


@forms
def test_damage_anywhere_raises_nothing_else(form):
    body = bytearray(FORMS[form](PLAIN[-2_000:]))
    for at in range(len(body)):
        damaged = bytearray(body)
        damaged[at] ^= 0x41
        with contextlib.suppress(BadBody, BodyTooLarge):
            undo(form, bytes(damaged))


BOMB = 1 << 30
LIMIT = 8 << 20


def streamed():
    packer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    block = bytes(1 << 20)
    return b"".join(packer.compress(block) for _ in range(BOMB >> 20)) + packer.flush()


BOMBS = {
    "zstd": streamed,
    "zstd, one frame": lambda: sized(bytes(BOMB >> 2)),
    "gzip": lambda: gzip.compress(bytes(BOMB >> 2)),
    "gzip, members": lambda: gzip.compress(bytes(1 << 20)) * 100,
}


@pytest.mark.parametrize("form", BOMBS)
def test_a_bomb_is_refused_before_it_fills_the_memory(form):
    body = BOMBS[form]()
    assert len(body) < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(BodyTooLarge):
            undo(form, body, LIMIT)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < LIMIT + (64 << 20)


def test_a_size_that_lies_is_found_out():
    body = bytearray(sized(bytes(200)))
    assert body[4] & 0x20  # a single segment: the next byte is the size
    body[5] = 100
    with pytest.raises((BadBody, BodyTooLarge)):
        undo("zstd", bytes(body))


def test_a_window_that_would_take_much_memory_is_refused():
    wide = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
    packer = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    body = packer.compress(bytes(1 << 20)) + packer.flush()
    with pytest.raises(BadBody):
        undo("zstd", body, 1 << 30)


@forms
def test_empty_frames_without_end_are_refused(form):
    with pytest.raises(BadBody, match="frames"):
        undo(form, FORMS[form](b"") * (MAX_PARTS + 1))


@pytest.mark.parametrize(
    ("header", "packing"),
    [("", None), ("identity", None), (" gzip ", "gzip"), ("x-gzip", "gzip"), ("Zstd", "zstd")],
)
def test_names_of_packings(header, packing):
    assert packing_of(header) == packing


def test_another_packing_is_named_shortened():
    with pytest.raises(UnknownMediaType) as caught:
        packing_of("b" * 5_000)
    assert len(caught.value.where) < 200
