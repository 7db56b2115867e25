"""Batches that were scanned and stored, turned into Arrow many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cascade_runtime.vocabulary.events import CollectiveDone, Collectives, Record
from collector.hot.scanned import Completions, paired
from collector.schema.arrow import arrow_schema
from collector.wire.batch import Scan
from collector.wire.scan import decode_some
from collector.wire.scan_columns import columns_of, table_of
from collector.wire.scan_plan import DONE, FLAT, NUMBER, TABLES, Ints

_COLLECTIVES, _DONE = NUMBER["collectives"], NUMBER[DONE]
_DONE_COLUMNS = ("done_seq", "start_ns", "complete_ns", "completed", "payload_digest")
_FIRST_DONE = 4
"""Field of a completion that the first of those is; before it stand run, rank, incarnation, seq."""


class Raw(NamedTuple):
    """A batch as it came, what the scan found in it, how many rows it has, what it completes."""

    body: bytes
    scan: Scan
    num_rows: int
    completions: Completions | None = None


class Converted(NamedTuple):
    """Rows of scanned batches.

    Attributes:
        tables: whole rows, collectives that completed among these batches included.
        rare: records of the other kinds, in the order in which they came.
        entered: collectives that did not.
        done: completions of collectives that were entered before.
    """

    tables: dict[str, pa.Table]
    rare: list[Record]
    entered: list[Collectives]
    done: list[CollectiveDone]


class _All(NamedTuple):
    """Several bodies end to end."""

    body: bytes
    data: np.ndarray
    kinds: Ints
    starts: Ints
    ends: Ints
    rank: Ints
    incarnation: Ints
    seq: Ints
    opens: np.ndarray


def convert(batches: Sequence[Raw]) -> Converted:
    """Arrow tables of the batches of one run, in the order in which they were stored."""
    every = _joined(batches)
    tables = {}
    for kind in np.unique(every.kinds).tolist():
        name = TABLES[kind]
        if name in FLAT and name != DONE:
            mine = (every.kinds == kind) & ~every.opens
            if mine.any():
                tables[name] = table_of(name, every.data, every.starts[mine])
    opened = np.flatnonzero(every.opens)
    done = np.flatnonzero(every.kinds == _DONE)
    of_opened, of_done, _ = paired(every.rank, every.incarnation, every.seq, opened, done)
    here = np.flatnonzero(of_opened >= 0)
    if len(here):
        rows = _complete(every, opened[here], done[of_opened[here]])
        known = [tables["collectives"]] if "collectives" in tables else []
        tables["collectives"] = pa.concat_tables([*known, rows])
    return Converted(
        tables,
        [record for batch in batches for record in batch.scan.rare],
        cast("list[Collectives]", _records(every, opened[of_opened < 0])),
        cast("list[CollectiveDone]", _records(every, done[of_done < 0])),
    )


def _joined(batches: Sequence[Raw]) -> _All:
    body = b"".join(batch.body for batch in batches)
    sizes = [len(batch.body) for batch in batches]
    offsets = np.cumsum([0, *sizes[:-1]])
    scans = [batch.scan for batch in batches]
    starts = [scan.starts + offset for scan, offset in zip(scans, offsets, strict=True)]
    ends = [scan.ends + offset for scan, offset in zip(scans, offsets, strict=True)]
    return _All(
        body,
        np.frombuffer(body, np.uint8),
        np.concatenate([scan.kinds for scan in scans]),
        np.concatenate(starts),
        np.concatenate(ends),
        np.concatenate([scan.rank for scan in scans]),
        np.concatenate([scan.incarnation for scan in scans]),
        np.concatenate([scan.seq for scan in scans]),
        np.concatenate([scan.opens for scan in scans]),
    )


def _complete(every: _All, opened: Ints, done: Ints) -> pa.Table:
    """The stored rows: the union of the two records (doorway.joined, by columns)."""
    rows = table_of("collectives", every.data, every.starts[opened])
    schema = arrow_schema("collectives")
    types = [schema.field(name).type for name in _DONE_COLUMNS]
    fresh = columns_of(DONE, every.data, every.starts[done], _FIRST_DONE, types)
    done_seq, start, complete, completed, digest = fresh
    digest = pc.if_else(pc.equal(digest, ""), pa.scalar(None, pa.string()), digest)
    union = {
        "done_seq": done_seq,
        "start_ns": pc.coalesce(start, rows["start_ns"]),
        "complete_ns": pc.coalesce(complete, rows["complete_ns"]),
        "completed": pc.fill_null(completed, True),  # what a completion says when it says nothing
        "payload_digest": pc.coalesce(digest, rows["payload_digest"]),
    }
    for name, column in union.items():
        at = schema.get_field_index(name)
        rows = rows.set_column(at, schema.field(at), column)
    return rows


def _records(every: _All, places: Ints) -> list[Record]:
    return decode_some(every.body, every.starts[places], every.ends[places])
