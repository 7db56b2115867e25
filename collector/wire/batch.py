"""A checked batch of rows: what every body form becomes before it may enter the queue."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from cascade_runtime.vocabulary.errors import CascadeError
from cascade_runtime.vocabulary.events import Record

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
MSGPACK = "application/vnd.msgpack"


class BadBatch(CascadeError):
    """A body that is not a batch of rows; ``where`` names line or record and field (HTTP 422)."""


class Batch(NamedTuple):
    """Rows that passed every check. Either ``records`` or ``tables`` holds them.

    Attributes:
        media_type: of ``body``.
        body: the rows as they came, decompressed; what a store may keep to read them again.
        records: of NDJSON and MessagePack bodies, in the order sent.
        tables: of Arrow bodies, by table; each with exactly the schema's columns.
        num_rows: records, or rows of all tables.
    """

    media_type: str
    body: bytes
    records: list[Record] | None
    tables: dict[str, pa.Table] | None
    num_rows: int
