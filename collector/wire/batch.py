"""A checked batch of rows: what every body form becomes before it may enter the queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cascade_runtime.vocabulary.errors import CascadeError
from cascade_runtime.vocabulary.events import Record

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
MSGPACK = "application/vnd.msgpack"


SCAN_BYTES = 64
"""What a scan keeps of a record beside the body."""

RECORD_GROWTH = 8
"""How much larger records are than the body that they were made of; measured 4 to 30."""


class BadBatch(CascadeError):
    """A body that is not a batch of rows; ``where`` names line or record and field (HTTP 422)."""


class Scan(NamedTuple):
    """The records of a body, found and checked without making them (scan.py). All are of one run.

    Attributes:
        run_id: the run.
        kinds: number of each record's kind in scan_plan.TABLES.
        starts: first byte of each record in the body.
        ends: the byte behind it.
        rank, incarnation, seq: of each record; a completion's seq is that of its row.
        opens: 1 for a collective that is entered and not completed.
        rare: records of kinds that have fields beyond the scan, as records.
    """

    run_id: str
    kinds: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    rank: npt.NDArray[np.int64]
    incarnation: npt.NDArray[np.int64]
    seq: npt.NDArray[np.int64]
    opens: npt.NDArray[np.bool_]
    rare: list[Record]


class Batch:
    """Rows that passed every check. Either ``records`` or ``tables`` holds them.

    Args:
        media_type: of ``body``.
        body: the rows as they came, decompressed; what a store may keep to read them again.
        records: of NDJSON and MessagePack bodies, in the order sent; None where they are in
            ``tables``, or shall be made from the body when somebody asks for them.
        tables: of Arrow bodies, by table; each with exactly the schema's columns.
        num_rows: records, or rows of all tables.
        scan: what a native scan of a MessagePack body found; its records are made on demand.
        make_records: makes them.
    """

    __slots__ = ("_make", "_records", "body", "media_type", "num_rows", "scan", "tables")

    def __init__(
        self,
        media_type: str,
        body: bytes,
        records: list[Record] | None,
        tables: dict[str, pa.Table] | None,
        num_rows: int,
        *,
        scan: Scan | None = None,
        make_records: Callable[[], list[Record]] | None = None,
    ) -> None:
        self.media_type = media_type
        self.body = body
        self.tables = tables
        self.num_rows = num_rows
        self.scan = scan
        self._records = records
        self._make = make_records

    @property
    def num_bytes(self) -> int:
        """About what it holds in memory; records are several times as large as their body."""
        if self.tables is not None:
            return len(self.body) + sum(int(rows.nbytes) for rows in self.tables.values())
        if self.scan is not None and self._records is None:
            return len(self.body) + SCAN_BYTES * self.num_rows
        return RECORD_GROWTH * len(self.body)

    @property
    def records(self) -> list[Record] | None:
        """The records; None for a batch of tables."""
        if self._records is None and self._make is not None:
            self._records = self._make()
        return self._records
