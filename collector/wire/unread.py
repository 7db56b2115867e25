"""Small bodies of records that wait to be read, many at a time.

A thousand agents send some ten records a second each. Read one by one, their bodies cost more than all
that is done with them; read together, they share one pass of the compiled scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from collector.wire.batch import RECORD_GROWTH, SCAN_BYTES, BadBatch, Batch, Scan
from collector.wire.records import LEAST_SCANNED, array_length, batch_of_scan, decode_msgpack
from collector.wire.run_ids import fits_a_path
from collector.wire.scan import believed, lead_of, scan_many
from collector.wire.scan_plan import Ints

MOST_UNREAD = 1000
"""Records from which on a body is read when it comes: it would keep the others waiting."""

_ARRAY32 = b"\xdd"


class Unread(NamedTuple):
    """A small MessagePack body that nobody has looked into.

    Attributes:
        body: decompressed.
        num_rows: the records that it announces; at least 1, and no more than it has room for.
    """

    body: bytes
    num_rows: int

    @property
    def num_bytes(self) -> int:
        """About what it holds in memory once it is read."""
        if self.num_rows < LEAST_SCANNED:
            return RECORD_GROWTH * len(self.body)
        return len(self.body) + SCAN_BYTES * self.num_rows


def unread(body: bytes) -> Unread | None:
    """The body, to be read later with others; None where it is to be read at once.

    That is a large one, which would keep the others waiting, and one that is wrong at first sight.
    """
    length = array_length(body)
    if length >= MOST_UNREAD or not believed(body, length):
        return None
    return Unread(body, length)


def read_together(bodies: Sequence[Unread]) -> list[Batch | BadBatch]:
    """Every body's batch, or what is wrong with it: one that is wrong harms no other."""
    scans: Sequence[Scan | None] = [None] * len(bodies)
    # Alone, a very small one is the codec's: the pass costs 0.2 ms whatever there is.
    if len(bodies) > 1 or sum(body.num_rows for body in bodies) >= LEAST_SCANNED:
        scans = scan_many([b.body for b in bodies], [b.num_rows for b in bodies])
    found: list[Batch | BadBatch] = []
    for body, scan in zip(bodies, scans, strict=True):
        if scan is not None and fits_a_path(scan.run_id):
            found.append(batch_of_scan(body.body, scan))
            continue
        try:
            found.append(decode_msgpack(body.body))
        except BadBatch as error:
            found.append(error)
    return found


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
