"""Packed bodies, unpacked within a limit: what would become too large never exists whole."""

from __future__ import annotations

import threading
import zlib

import zstandard

from collector.web.errors import BadBody, BodyTooLarge, UnknownMediaType

PACKINGS = ("zstd", "gzip")
"""Names of Content-Encoding that are understood."""

MAX_PARTS = 4096
"""Frames or members of one body. Each costs a few microseconds, and an empty one only 9 bytes."""

_WINDOW = 8 << 20  # what every zstd decoder should support (RFC 8878); --ultra levels want more
_GZIP = 16 + zlib.MAX_WBITS
_GZIP_SLICE = 64 << 10
_MOST_OF_GZIP = 1032  # deflate makes at most 258 bytes of two bits

# A zstd block of 4 bytes can stand for 128 KiB, so one slice makes 32 MiB at most.
_ZSTD_SLICE = 1 << 10


class _Mine(threading.local):
    """Each thread's own decompressor: making one costs more than unpacking a small body with it."""

    def __init__(self) -> None:
        self.whole = zstandard.ZstdDecompressor(max_window_size=_WINDOW)


_mine = _Mine()


def packing_of(header: str) -> str | None:
    """The packing that a Content-Encoding names; None for none.

    Raises:
        UnknownMediaType: another one, or several.
    """
    name = header.strip().lower()
    if name in ("", "identity"):
        return None
    if name == "x-gzip":
        return "gzip"
    if name not in PACKINGS:
        raise UnknownMediaType(
            "the body is packed in a way that is not understood here",
            where=f"Content-Encoding: {header[:80]}",
            hint=f"use one of {', '.join(PACKINGS)}, or none",
        )
    return name


def unpack(packing: str, body: bytes, limit: int) -> bytes:
    """The body, unpacked.

    Args:
        packing: one of ``PACKINGS``.
        body: one frame (member) or several, one after the other.
        limit: bytes that it may become.

    Raises:
        BodyTooLarge: it would become larger.
        BadBody: it is damaged, cut off, or something follows its last frame.
    """
    try:
        return _unzstd(body, limit) if packing == "zstd" else _gunzip(body, limit)
    except (zstandard.ZstdError, zlib.error) as error:
        raise _damaged(packing, str(error)) from error


def unpacks_to(packing: str, body: bytes) -> int | None:
    """The size that a zstd body says it unpacks to; None where it does not say."""
    if packing != "zstd":
        return None
    try:
        size = int(zstandard.get_frame_parameters(body).content_size)
    except zstandard.ZstdError:
        return None
    return None if size == zstandard.CONTENTSIZE_UNKNOWN else size


def most_bytes(packing: str, body: bytes, limit: int) -> int:
    """The most that a body becomes, as far as it says; ``limit`` when it says nothing.

    A zstd body of several frames tells of the first one only, so it may become more after all.
    """
    size = unpacks_to(packing, body) if packing == "zstd" else len(body) * _MOST_OF_GZIP
    return limit if not size else min(size, limit)


def _unzstd(body: bytes, limit: int) -> bytes:
    size = unpacks_to("zstd", body)
    if size:  # the common case, in one call: a whole body in one frame that says its size
        if size > limit:
            raise _too_large(limit)
        try:
            return _mine.whole.decompress(body, allow_extra_data=False)
        except zstandard.ZstdError:
            pass  # several frames, a large window, or damaged: the slow way tells which
    parts: list[bytes] = []
    room = limit
    frame = _new_frame()
    fresh, num_frames = True, 0
    for start in range(0, len(body), _ZSTD_SLICE):
        data = body[start : start + _ZSTD_SLICE]
        while data:
            part = frame.decompress(data)
            fresh = False
            room -= len(part)
            if room < 0:
                raise _too_large(limit)
            parts.append(part)
            data = frame.unused_data if frame.eof else b""
            if frame.eof:
                num_frames = _one_more(num_frames, "zstd")
                frame, fresh = _new_frame(), True
    if not fresh or not num_frames:
        raise _damaged("zstd", "it ends before its last frame does")
    return b"".join(parts)


def _new_frame() -> zstandard.ZstdDecompressionObj:
    return zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()


def _gunzip(body: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    room = limit
    member = zlib.decompressobj(_GZIP)
    fresh, num_members = True, 0
    for start in range(0, len(body), _GZIP_SLICE):
        data = body[start : start + _GZIP_SLICE]
        while data:
            part = member.decompress(data, room + 1)
            fresh = False
            room -= len(part)
            if room < 0:
                raise _too_large(limit)
            parts.append(part)
            data = member.unused_data if member.eof else member.unconsumed_tail
            if member.eof:
                num_members = _one_more(num_members, "gzip")
                member, fresh = zlib.decompressobj(_GZIP), True
    if not fresh or not num_members:
        raise _damaged("gzip", "it ends before its last member does")
    return b"".join(parts)


def _one_more(num_parts: int, packing: str) -> int:
    if num_parts == MAX_PARTS:
        raise _damaged(packing, f"it has more than {MAX_PARTS} frames")
    return num_parts + 1


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"unpacked, the body is larger than {limit} bytes",
        where="body",
        hint="send smaller batches",
    )


def _damaged(packing: str, why: str) -> BadBody:
    return BadBody(
        f"the body cannot be unpacked: {why}",
        where="body",
        hint=f"the header says Content-Encoding: {packing}; is that so?",
    )
