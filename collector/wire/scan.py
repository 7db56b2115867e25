"""Finds and checks the records of MessagePack bodies without making them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from cascade_runtime.vocabulary.events import Record
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.wire.batch import Scan
from collector.wire.msgpack_native import scan_bodies
from collector.wire.scan_plan import FLAT, NUMBER, PLAN, TABLES, Ints

_LEADS = {0xDC: 3, 0xDD: 5}
_FIELDS = EVENT_TABLES["collectives"].struct.__struct_fields__
_OPENS = (NUMBER["collectives"], _FIELDS.index("done_seq"), _FIELDS.index("completed"))
_IS_RARE = np.array([name not in FLAT for name in TABLES])
_GAPS = NUMBER["gaps"]
_LEAST_BYTES = 10
"""Of a record: so many leading fields. A length that the body cannot hold is not believed."""

_NONE = np.zeros(0, np.int64)
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
    return scan_many([body], [length])[0]


def scan_many(bodies: Sequence[bytes], lengths: Sequence[int]) -> list[Scan | None]:
    """``scan_body`` of each, in one pass: what a call costs beside its records is paid once."""
    counts = [believed(body, length) for body, length in zip(bodies, lengths, strict=True)]
    num_all = sum(counts)
    if not num_all:
        return [None] * len(bodies)
    nums = np.array(counts, np.int64)
    ends = np.cumsum([len(body) for body in bodies])
    leads = np.array([lead_of(body) for body in bodies], np.int64)
    found = np.zeros((6, num_all), np.int64)
    opens = np.zeros(found.shape[1], np.uint8)
    runs, good = np.zeros((len(bodies), 2), np.int64), np.zeros(len(bodies), np.uint8)
    data = np.frombuffer(bodies[0] if len(bodies) == 1 else b"".join(bodies), np.uint8)
    scan_bodies(data, ends, leads, nums, PLAN, *_OPENS, found, opens, runs, good)
    is_open, is_rare, first = opens.astype(bool), _IS_RARE[found[0]], 0
    rare_before, last = np.concatenate(([0], np.cumsum(is_rare))), np.cumsum(nums)
    has_rare = rare_before[last] > rare_before[last - nums]
    scans: list[Scan | None] = []
    columns = (bodies, runs.tolist(), counts, good.tolist(), has_rare.tolist())
    for body, run, num, is_good, any_rare in zip(*columns, strict=True):
        mine = slice(first, first + num)
        first += num
        if not num or not is_good:
            scans.append(None)
            continue
        rare = np.flatnonzero(is_rare[mine]) if any_rare else _NONE
        scans.append(_scan_of(body, found[:, mine], is_open[mine], run, rare))
    return scans


def lead_of(body: bytes) -> int:
    """Bytes before the first record of an array."""
    return _LEADS.get(body[0] if body else 0, 1)


def decode_some(body: bytes, starts: np.ndarray, ends: np.ndarray) -> list[Record]:
    """Some records of a body that was scanned.

    Raises:
        msgspec.MsgspecError: they break the schema in a field that the scan passes over.
    """
    parts = [body[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    return _decoder.decode(b"\xdd" + len(parts).to_bytes(4, "big") + b"".join(parts))


def believed(body: bytes, length: int) -> int:
    """The length that a body announces; 0 where it has no room for so many records."""
    return length if 0 < length <= len(body) // _LEAST_BYTES else 0


def _scan_of(
    body: bytes, found: Ints, opens: np.ndarray, run: Sequence[int], rare: Ints
) -> Scan | None:
    """What the pass found in a body; None for a ``gaps`` row, or a rare record that is none."""
    records: list[Record] = []
    if len(rare):
        if (found[0, rare] == _GAPS).any():
            return None
        try:
            records = decode_some(body, found[1, rare], found[2, rare])
        except msgspec.MsgspecError:
            return None
    run_id = body[run[0] : run[0] + run[1]].decode("ascii")
    kinds, starts, ends, rank, incarnation, seq = found
    return Scan(run_id, kinds, starts, ends, rank, incarnation, seq, opens, records)
