"""Small bodies of records that wait to be read, many at a time.

A thousand agents send some ten records a second each. Read one by one, their bodies cost more than all
that is done with them; read together, they share one pass of the compiled scan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cascade_runtime.vocabulary.errors import CascadeError
from collector.wire.batch import RECORD_GROWTH, SCAN_BYTES, BadBatch, Batch, Scan
from collector.wire.packed import size_of_one_frame, unpack_together
from collector.wire.records import (
    LEAST_SCANNED,
    MAX_RECORDS,
    array_length,
    batch_of_scan,
    decode_msgpack,
)
from collector.wire.run_ids import fits_a_path
from collector.wire.scan import believed, lead_of, scan_many
from collector.wire.scan_plan import Ints

MOST_UNREAD = 1000
"""Records from which on a body is read when it comes: it would keep the others waiting."""

_LEAST_BYTES = 10
"""Of a body with a record; one without needs no store."""

_ROW_BYTES = 100
"""About what a record takes; of a packed body it is only known how large it is."""

_ARRAY32 = b"\xdd"


class Unread(NamedTuple):
    """A small MessagePack body that nobody has looked into.

    Attributes:
        body: as it came.
        num_rows: the records that it announces; at least 1, and no more than it has room for. Of a
            packed one, about as many.
        num_plain: bytes that it unpacks to.
        unpack: unpacks it, alone, and says what is wrong with it; None where it is not packed.
    """

    body: bytes
    num_rows: int
    num_plain: int
    unpack: Callable[[bytes], bytes] | None = None

    @property
    def num_bytes(self) -> int:
        """About what it holds in memory once it is read."""
        if self.num_rows < LEAST_SCANNED:
            return RECORD_GROWTH * self.num_plain
        return self.num_plain + SCAN_BYTES * self.num_rows


def unread(body: bytes) -> Unread | None:
    """The body, to be read later with others; None where it is to be read at once.

    That is a large one, which would keep the others waiting, and one that is wrong at first sight.
    """
    length = array_length(body)
    if length >= MOST_UNREAD or not believed(body, length):
        return None
    return Unread(body, length, len(body))


def unread_zstd(body: bytes, limit: int, unpack: Callable[[bytes], bytes]) -> Unread | None:
    """The packed body, to be unpacked and read later with others; None where it is to be done at once.

    Args:
        body: packed with zstd.
        limit: bytes that it may unpack to.
        unpack: see Unread.
    """
    size = size_of_one_frame(body)
    if size is None or not _LEAST_BYTES <= size <= limit:
        return None
    return Unread(body, max(1, size // _ROW_BYTES), size, unpack)


def read_together(bodies: Sequence[Unread]) -> list[Batch | CascadeError]:
    """Every body's batch, or what is wrong with it: one that is wrong harms no other."""
    plain = _unpacked(bodies)
    whole = [body for body in plain if isinstance(body, bytes)]
    lengths = [array_length(body) for body in whole]
    scans: Sequence[Scan | None] = [None] * len(whole)
    # Alone, a very small one is the codec's: the pass costs 0.2 ms whatever there is.
    if len(whole) > 1 or sum(lengths) >= LEAST_SCANNED:
        scans = scan_many(whole, [n if n <= MAX_RECORDS else 0 for n in lengths])
    scanned = iter(scans)
    return [
        body if isinstance(body, CascadeError) else _read(body, next(scanned)) for body in plain
    ]


def _unpacked(bodies: Sequence[Unread]) -> list[bytes | CascadeError]:
    packed = [body.body for body in bodies if body.unpack is not None]
    together = unpack_together(packed) if len(packed) > 1 else None
    found = iter(together or ())
    plain: list[bytes | CascadeError] = []
    for body in bodies:
        if body.unpack is None:
            plain.append(body.body)
        elif together is not None:
            plain.append(next(found))
        else:
            try:
                plain.append(body.unpack(body.body))
            except CascadeError as error:
                plain.append(error)
    return plain


def _read(body: bytes, scan: Scan | None) -> Batch | CascadeError:
    if scan is not None and fits_a_path(scan.run_id):
        return batch_of_scan(body, scan)
    try:
        return decode_msgpack(body)
    except BadBatch as error:
        return error


def join(batches: Sequence[Batch]) -> Batch:
    """One batch with the rows of several, in their order.

    Args:
        batches: scanned, all of one run.
    """
    scans = [batch.scan for batch in batches if batch.scan is not None]
    leads = [lead_of(batch.body) for batch in batches]
    num_rows = sum(batch.num_rows for batch in batches)
    parts = [batch.body[lead:] for batch, lead in zip(batches, leads, strict=True)]
    body = b"".join([_ARRAY32, num_rows.to_bytes(4, "big"), *parts])
    sizes = np.array([len(part) for part in parts])
    # From a place in its own body to one in the joined one, which has a lead of five bytes.
    shift = 1 + 4 + np.cumsum(sizes) - sizes - np.array(leads)
    shifts: Ints = np.repeat(shift, [len(scan.kinds) for scan in scans])
    joined = Scan(
        scans[0].run_id,
        np.concatenate([scan.kinds for scan in scans]),
        np.concatenate([scan.starts for scan in scans]) + shifts,
        np.concatenate([scan.ends for scan in scans]) + shifts,
        np.concatenate([scan.rank for scan in scans]),
        np.concatenate([scan.incarnation for scan in scans]),
        np.concatenate([scan.seq for scan in scans]),
        np.concatenate([scan.opens for scan in scans]),
        [record for scan in scans for record in scan.rare],
    )
    return batch_of_scan(body, joined)
