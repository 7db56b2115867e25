"""The spool's byte layout (docs/spool.md): written by the job, read by agent and collector.

A segment is a 16-byte header, ``CSPL``, u16 version, u16 flags, u64 first seq, then records:
u32 length (written last; 0 ends the segment), u32 CRC-32 of the payload, the payload (one event in
the codec's MessagePack form). All little-endian. A torn record ends the segment.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

MAGIC = b"CSPL"
VERSION = 1
HEADER = struct.Struct("<4sHHQ")
RECORD = struct.Struct("<II")
ACTOR_DIR = re.compile(r"(\d+)-(\d+)")
"""Name of an actor's folder in the spool: ``<rank>-<incarnation>``."""

SEGMENT_FILE = re.compile(r"(\d+)\.seg")
"""Name of a segment file in it: ``<n>.seg``."""


class BadSegment(ValueError):
    """The header is not one of ours, or of a newer version."""


class Torn(NamedTuple):
    """Where reading a segment stopped before its end: byte offset and what was wrong."""

    offset: int
    why: str


def pack_header(first_seq: int) -> bytes:
    """The 16 bytes a segment starts with."""
    return HEADER.pack(MAGIC, VERSION, 0, first_seq)


def read_header(data: bytes | memoryview) -> int:
    """The segment's first seq.

    Raises:
        BadSegment: too short, wrong magic, or a version above ours.
    """
    if len(data) < HEADER.size:
        raise BadSegment(f"{len(data)} bytes is too short for a segment header")
    magic, version, _flags, first_seq = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise BadSegment("it does not start with CSPL")
    if version > VERSION:
        raise BadSegment(f"its version {version} is newer than {VERSION}, which this reader knows")
    return int(first_seq)


def read_records(
    data: bytes | memoryview, offset: int = HEADER.size
) -> Iterator[memoryview | Torn]:
    """Payloads from ``offset`` on; the last item is a Torn when the segment does not end cleanly."""
    view = memoryview(data)
    end = len(view)
    while offset + RECORD.size <= end:
        length, crc = RECORD.unpack_from(view, offset)
        if length == 0:
            return
        start = offset + RECORD.size
        if start + length > end:
            yield Torn(offset, "the record runs past the end of the file")
            return
        payload = view[start : start + length]
        if zlib.crc32(payload) != crc:
            yield Torn(offset, "the record's checksum is wrong")
            return
        yield payload
        offset = start + length
    if any(view[offset:]):
        yield Torn(offset, "the file ends inside a record's header")
