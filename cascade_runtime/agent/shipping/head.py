"""The first fields of a packed record, without reading the rest of it."""

from __future__ import annotations

import msgspec

_DONE = b"\xafcollective_done"  # the table's name, as MessagePack; one byte of array head before it


class Head(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What every event row starts with."""

    table: str
    run_id: str
    rank: int
    incarnation: int
    seq: int
    group_id: str
    epoch: int | None
    regime: str | None
    step: int | None
    wall_ns: int
    mono_ns: int | None


_decode = msgspec.msgpack.Decoder(Head).decode


def takes_seq(payload: bytes) -> bool:
    """False for a ``collective_done`` record: it names another record's seq."""
    return payload[1:17] != _DONE


def read_head(payload: bytes) -> Head | None:
    """None when this is no event row."""
    if not takes_seq(payload):
        return None
    try:
        return _decode(payload)
    except msgspec.MsgspecError:
        return None


def last_head(payloads: list[bytes], start: int) -> Head | None:
    """Of the last event row from ``start`` on."""
    for at in range(len(payloads) - 1, start - 1, -1):
        head = read_head(payloads[at])
        if head is not None:
            return head
    return None
