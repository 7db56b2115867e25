"""Events to bytes and back: MessagePack in the spool, JSON lines on the wire. The only codec.

Raises ``msgspec.ValidationError`` (which names the path of the bad field) or
``msgspec.DecodeError`` on input that is not an event.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cascade_runtime.vocabulary.events import Record

_pack = msgspec.msgpack.Encoder()
_unpack = msgspec.msgpack.Decoder(Record)
_to_json = msgspec.json.Encoder()
_from_json = msgspec.json.Decoder(Record)


def pack(record: Record | tuple[Any, ...]) -> bytes:
    """One record as MessagePack. A tuple ``(table, *fields)`` gives the same bytes as the struct."""
    return _pack.encode(record)


def unpack(data: bytes | memoryview) -> Record:
    """One record from MessagePack, validated."""
    return _unpack.decode(data)


def to_json(record: Record) -> bytes:
    """One record as a JSON line (without the newline)."""
    return _to_json.encode(record)


def from_json(line: bytes | str) -> Record:
    """One record from a JSON line, validated."""
    return _from_json.decode(line)
