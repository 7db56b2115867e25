"""Small zstd bodies, unpacked many at a time.

Unpacking gives the interpreter lock away. On the event loop that is once a request, and whoever computes
takes it for up to 5 ms; in the writer it is once a commit.
"""

from __future__ import annotations

from collections.abc import Sequence

import zstandard

_CHECKSUM_BYTES = 4
_BLOCK_HEAD = 3
_REPEATED = 1
"""Type of a block that is one byte, however much it stands for (RFC 8878, 3.1.1.2)."""


def size_of_one_frame(body: bytes) -> int | None:
    """The size that a zstd body unpacks to; None unless it is exactly one frame, which says its size."""
    try:
        frame = zstandard.get_frame_parameters(body)
        at = zstandard.frame_header_size(body)
    except zstandard.ZstdError:
        return None
    if frame.content_size == zstandard.CONTENTSIZE_UNKNOWN or not frame.content_size:
        return None
    is_last = False
    while not is_last:
        head = int.from_bytes(body[at : at + _BLOCK_HEAD], "little")
        if at + _BLOCK_HEAD > len(body):
            return None
        is_last, kind, size = bool(head & 1), head >> 1 & 3, head >> 3
        at += _BLOCK_HEAD + (1 if kind == _REPEATED else size)
    if frame.has_checksum:
        at += _CHECKSUM_BYTES
    return int(frame.content_size) if at == len(body) else None


def unpack_together(bodies: Sequence[bytes]) -> list[bytes] | None:
    """Every body, unpacked; None where one of them is damaged.

    Args:
        bodies: each for which ``size_of_one_frame`` gave a size.
    """
    try:
        plain = zstandard.ZstdDecompressor().multi_decompress_to_buffer(list(bodies))
    except (zstandard.ZstdError, ValueError):
        return None
    return [plain[i].tobytes() for i in range(len(plain))]
