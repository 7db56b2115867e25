"""How many bytes an Arrow IPC body says it will unpack to, read without unpacking it.

Layout: Arrow columnar format, "Encapsulated message format" and "Body compression": each message is
0xFFFFFFFF, i32 metadata length, a flatbuffer, and a body; each compressed buffer of the body starts
with its unpacked length as i64, -1 for one that was left as it is.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_CONTINUATION = 0xFFFFFFFF
_RECORD_BATCH = 3
_DICTIONARY_BATCH = 2
_U16, _I32, _U32, _I64 = (struct.Struct(form) for form in ("<H", "<i", "<I", "<q"))
_BUFFER = struct.Struct("<qq")

# Field numbers of the flatbuffer tables (format/Message.fbs).
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3
_BUFFERS, _COMPRESSION = 2, 3


MAX_MESSAGES = 10_000
"""Messages of one body. An empty one costs 200 bytes to send and some kilobytes to read."""


class BadMessage(ValueError):
    """The bytes are no sequence of Arrow messages."""


def claimed_bytes(body: bytes) -> int:
    """The sum over all record batches of what their buffers unpack to.

    Raises:
        BadMessage: the framing or a flatbuffer leads outside of the body.
    """
    view = memoryview(body)
    try:
        return sum(_batch_bytes(meta, data) for meta, data in _messages(view))
    except (struct.error, IndexError) as error:
        raise BadMessage("a message leads outside of the body") from error


def _messages(view: memoryview) -> Iterator[tuple[memoryview, memoryview]]:
    """(flatbuffer, body) of each message; ends of streams are passed over."""
    offset = number = 0
    while offset < len(view):
        number += 1
        if number > MAX_MESSAGES:
            raise BadMessage(f"it has more than {MAX_MESSAGES} messages")
        (marker,) = _U32.unpack_from(view, offset)
        if marker != _CONTINUATION:
            raise BadMessage("a message does not begin with the continuation marker")
        (length,) = _I32.unpack_from(view, offset + 4)
        offset += 8
        if length == 0:
            continue
        if length < 0 or offset + length > len(view):
            raise BadMessage("a message's metadata runs past the end of the body")
        meta = view[offset : offset + length]
        offset += length
        (size,) = _scalar(meta, _root(meta), _BODY_LENGTH, _I64) or (0,)
        if size < 0 or offset + size > len(view):
            raise BadMessage("a message's data runs past the end of the body")
        yield meta, view[offset : offset + size]
        offset += size


def _batch_bytes(meta: memoryview, data: memoryview) -> int:
    root = _root(meta)
    kind = _field(meta, root, _HEADER_TYPE)
    if kind is None or meta[kind] not in (_RECORD_BATCH, _DICTIONARY_BATCH):
        return 0
    if meta[kind] == _DICTIONARY_BATCH:
        raise BadMessage("dictionaries are not taken")
    header = _table(meta, root, _HEADER)
    if header is None:
        raise BadMessage("a record batch without a header")
    buffers = _field(meta, header, _BUFFERS)
    if buffers is None:
        return 0
    start = _follow(meta, buffers)
    (count,) = _U32.unpack_from(meta, start)
    if count > len(meta) // _BUFFER.size:
        raise BadMessage("a record batch names more buffers than it has")
    places = (_BUFFER.unpack_from(meta, start + 4 + i * _BUFFER.size) for i in range(count))
    if _field(meta, header, _COMPRESSION) is None:
        return sum(max(length, 0) for _, length in places)
    return sum(_unpacked(data, offset, length) for offset, length in places if length)


def _unpacked(data: memoryview, offset: int, length: int) -> int:
    if offset < 0 or length < 0 or offset + length > len(data):
        raise BadMessage("a buffer lies outside of its message")
    (size,) = _I64.unpack_from(data, offset)
    return length if size < 0 else int(size)


def _root(meta: memoryview) -> int:
    return _follow(meta, 0)


def _follow(meta: memoryview, position: int) -> int:
    (offset,) = _U32.unpack_from(meta, position)
    return int(position + offset)


def _field(meta: memoryview, table: int, number: int) -> int | None:
    """Where a table's field lies; None when it is not there."""
    (back,) = _I32.unpack_from(meta, table)
    vtable = table - back
    if vtable < 0:
        raise BadMessage("a table leads outside of its message")
    (size,) = _U16.unpack_from(meta, vtable)
    slot = 4 + 2 * number
    if slot + 2 > size:
        return None
    (offset,) = _U16.unpack_from(meta, vtable + slot)
    return table + offset if offset else None


def _table(meta: memoryview, table: int, number: int) -> int | None:
    place = _field(meta, table, number)
    return None if place is None else _follow(meta, place)


def _scalar(
    meta: memoryview, table: int, number: int, form: struct.Struct
) -> tuple[int, ...] | None:
    place = _field(meta, table, number)
    return None if place is None else form.unpack_from(meta, place)
