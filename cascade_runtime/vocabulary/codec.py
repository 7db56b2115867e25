"""Events to bytes and back: MessagePack in the spool, JSON lines on the wire. The only codec.

Raises ``msgspec.ValidationError`` (which names the path of the bad field) or
``msgspec.DecodeError`` on input that is not an event. JSON has no NaN and no infinity: such a value
travels as null there, and as itself in MessagePack.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cascade_runtime.vocabulary.events import Record

_pack = msgspec.msgpack.Encoder()
_unpack = msgspec.msgpack.Decoder(Record)
_to_json = msgspec.json.Encoder()
_from_json = msgspec.json.Decoder(Record)
_TOO_DEEP = "values are nested too deep for an event"


def pack(record: Record | tuple[Any, ...]) -> bytes:
    """One record as MessagePack. A tuple ``(table, *fields)`` gives the same bytes as the struct."""
    return _pack.encode(record)


def unpack(data: bytes | memoryview) -> Record:
    """One record from MessagePack, validated."""
    try:
        return _unpack.decode(data)
    except RecursionError as error:
        raise msgspec.DecodeError(_TOO_DEEP) from error


def to_json(record: Record) -> bytes:
    """One record as a JSON line (without the newline)."""
    return _to_json.encode(record)


def from_json(line: bytes | str) -> Record:
    """One record from a JSON line, validated."""
    try:
        return _from_json.decode(line)
    except RecursionError as error:
        raise msgspec.DecodeError(_TOO_DEEP) from error
