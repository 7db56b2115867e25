"""Finds and checks the records of a MessagePack body without making them."""

from __future__ import annotations

import msgspec
import numpy as np

from cascade_runtime.vocabulary.events import Record
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.wire.batch import Scan
from collector.wire.msgpack_native import scan_records
from collector.wire.scan_plan import FLAT, NUMBER, PLAN, TABLES

_LEADS = {0x90: 1, 0xDC: 3, 0xDD: 5}
_FIELDS = EVENT_TABLES["collectives"].struct.__struct_fields__
_OPENS = (NUMBER["collectives"], _FIELDS.index("done_seq"), _FIELDS.index("completed"))
_IS_RARE = np.array([name not in FLAT for name in TABLES])
_GAPS = NUMBER["gaps"]
_LEAST_BYTES = 10
"""Of a record: so many leading fields. A length that the body cannot hold is not believed."""

_decoder = msgspec.msgpack.Decoder(list[Record])


def scan_body(body: bytes, length: int) -> Scan | None:
    """What is in a MessagePack array of records.

    Args:
        body: the array.
        length: the number of records that it announces.

    Returns:
        None when the scan cannot vouch for it: damage, records of several runs, text beyond ASCII, a
        ``gaps`` row (which says more than its own place), or no record at all.
    """
    at = _LEADS.get(body[0] if body and body[0] >= 0xDC else 0x90, 1)
    if not 0 < length <= len(body) // _LEAST_BYTES:
        return None
    found = np.zeros((6, length), np.int64)
    opens = np.zeros(length, np.uint8)
    data = np.frombuffer(body, np.uint8)
    if not scan_records(data, at, length, PLAN, *_OPENS, found, opens):
        return None
    kinds, starts, ends, rank, incarnation, seq = found
    rare = np.flatnonzero(_IS_RARE[kinds])
    if (kinds == _GAPS).any():
        return None
    try:
        records = decode_some(body, starts[rare], ends[rare])
        run_id = msgspec.msgpack.decode(body[starts[0] : ends[0]])[1]
    except msgspec.MsgspecError:
        return None
    return Scan(run_id, kinds, starts, ends, rank, incarnation, seq, opens.astype(bool), records)


def decode_some(body: bytes, starts: np.ndarray, ends: np.ndarray) -> list[Record]:
    """Some records of a body that was scanned.

    Raises:
        msgspec.MsgspecError: they break the schema in a field that the scan passes over.
    """
    parts = [body[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    return _decoder.decode(b"\xdd" + len(parts).to_bytes(4, "big") + b"".join(parts))
